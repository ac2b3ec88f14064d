//! The error of every layer of a network, beside the plain CNN of the same shape, and its causes.

mod carried;
mod causes;
mod result;
mod scenes;
mod survey;

pub use causes::{Causes, Parts, PoseError, causes};
pub(crate) use result::figure;
pub use result::{
    Companion, EquivarianceResult, NO_FRAMES, Plan, Subject, measure_equivariance, plain_companion,
};
pub use scenes::Scenes;
pub use survey::{CurvePoint, Errors, LayerErrors, Survey, Transforms, survey};
