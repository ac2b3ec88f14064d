//! One module a command.

pub(crate) mod bench;
pub(crate) mod equivariance;
pub(crate) mod pose;
