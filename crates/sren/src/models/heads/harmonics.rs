//! Layers that see circular harmonics rotated by every orientation.

use std::f64::consts::TAU;

use burn::nn::{Dropout, Linear};
use burn::tensor::activation::relu;
use burn::tensor::{Tensor, TensorData};

use crate::error::Result;
use crate::models::geometry::{Geometry, check_features};
use crate::pose::Equivariance;

/// Moments that rotate with the image: a rotation by a multiplies that of order k by `e^(i k a)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Harmonics<'a> {
    /// The order of each moment.
    pub(crate) orders: &'a [i32],
    /// Orientations of a circle.
    pub(crate) orientations: usize,
}

/// The layers from moments to classes.
pub(crate) struct HarmonicLayers<'a> {
    /// From pooled features to the hidden layer.
    pub(crate) pooled: &'a Linear,
    /// From rotated moments to the hidden layer.
    pub(crate) moments: &'a Linear,
    /// Before the last layer.
    pub(crate) dropout: Option<&'a Dropout>,
    /// From the hidden layer to classes.
    pub(crate) linear: &'a Linear,
}

/// Sizes of the [`HarmonicLayers`] of a configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HarmonicSizes {
    /// Pooled features.
    pub(crate) pooled: usize,
    /// Channels of a moment.
    pub(crate) channels: usize,
    /// Moments.
    pub(crate) moments: usize,
    /// Channels of the hidden layer.
    pub(crate) hidden: usize,
    /// Classes.
    pub(crate) classes: usize,
    /// Orientations of a circle.
    pub(crate) orientations: usize,
}

impl HarmonicSizes {
    /// Adds the layers to `geometry`, their names after `prefix`.
    pub(crate) fn trace(
        self,
        prefix: &str,
        group: Equivariance,
        geometry: &mut Geometry,
    ) -> Result<()> {
        let Self { pooled, channels, moments, hidden, classes, orientations } = self;
        let rows = rows(orientations, group);
        let parts = moments.saturating_mul(2);
        // The moments as the hidden layer sees them, before they are rotated.
        check_features(parts.saturating_mul(hidden))?;
        let read = channels.saturating_mul(parts);
        let inputs = pooled.saturating_add(read).saturating_add(1);
        // Both parts of a moment are multiplied with both parts of a weight, then rotated.
        let work = pooled
            .saturating_add(read.saturating_mul(2))
            .saturating_add(parts.saturating_mul(rows));
        geometry.push(
            format!("{prefix}hidden"),
            [1, rows, hidden],
            inputs.saturating_mul(hidden),
            work.saturating_mul(hidden),
        )?;
        let weights = hidden.saturating_mul(classes);
        geometry.push(
            format!("{prefix}linear"),
            [1, rows, classes],
            weights.saturating_add(classes),
            rows.saturating_mul(weights),
        )
    }
}

/// Orientations, of a circle's, that a network of `group` tells apart.
fn rows(orientations: usize, group: Equivariance) -> usize {
    if group.includes_rotation() { orientations } else { 1 }
}

impl HarmonicLayers<'_> {
    /// Pooled features `[n, width]` and moments `[n, 2 moments, c]`, real and imaginary parts ->
    /// scores `[n, orientations, classes]`, upright first; one row in a group without rotation.
    pub(crate) fn scores(
        &self,
        harmonics: Harmonics,
        pooled: Tensor<2>,
        moments: Tensor<3>,
        group: Equivariance,
    ) -> Tensor<3> {
        let rotated = harmonics.apply(self.moments.weight.val(), moments, group);
        let hidden = relu(rotated + self.pooled.forward(pooled).unsqueeze_dim::<3>(1));
        let hidden = match self.dropout {
            Some(dropout) => dropout.forward(hidden),
            None => hidden,
        };
        self.linear.forward(hidden)
    }
}

impl Harmonics<'_> {
    /// Orientations that a network of `group` tells apart.
    pub(crate) fn rows(self, group: Equivariance) -> usize {
        rows(self.orientations, group)
    }

    /// `weight` `[2 moments c, hidden]` applied to moments `[n, 2 moments, c]` that are rotated by
    /// each orientation: `[n, orientations, hidden]`.
    ///
    /// With `W_x`, `W_y` for the parts of a moment z, rotated by a, that is
    /// `cos a (W_x z_x + W_y z_y) + sin a (W_y z_x - W_x z_y)`: two products per moment, not one per
    /// orientation.
    fn apply(self, weight: Tensor<2>, moments: Tensor<3>, group: Equivariance) -> Tensor<3> {
        let ([n, _, c], count, rows) = (moments.dims(), self.orders.len(), self.rows(group));
        let [_, hidden] = weight.dims();
        // [n, 2 moments, c] -> [moments, n, 2, c], as it is and rotated by a right angle
        let upright = moments.reshape([n, count, 2, c]).swap_dims(0, 1);
        let aside = Tensor::cat(
            vec![upright.clone().narrow(2, 1, 1).neg(), upright.clone().narrow(2, 0, 1)],
            2,
        );
        let both = [upright, aside].map(|moments| moments.reshape([count, n, 2 * c]));
        // [moments, 2 n, 2 c] x [moments, 2 c, hidden] -> [n, 2 moments, hidden]
        let parts = Tensor::cat(both.to_vec(), 1).matmul(weight.reshape([count, 2 * c, hidden]));
        let parts = parts.reshape([count, 2, n, hidden]).permute([2, 0, 1, 3]);
        let parts = parts.reshape([n, 2 * count, hidden]);
        let circle = TensorData::new(self.circle(rows), [1, rows, 2 * count]);
        let circle = Tensor::<3>::from_data(circle, &parts.device());
        // [n, rows, 2 moments] x [n, 2 moments, hidden]
        circle.expand([n, rows, 2 * count]).matmul(parts)
    }

    /// Cosine and sine by which each of the first `rows` orientations rotates each moment:
    /// `[rows, 2 moments]`.
    pub(crate) fn circle(self, rows: usize) -> Vec<f32> {
        let rotation = |step: usize| {
            let angle = TAU * step as f64 / self.orientations as f64;
            self.orders.iter().map(move |order| (f64::from(*order) * angle).sin_cos())
        };
        (0..rows).flat_map(rotation).flat_map(|(sin, cos)| [cos as f32, sin as f32]).collect()
    }
}
