//! How large a network may be. A configuration may come from a file of someone else: what it asks
//! for is counted before anything of it is made.

use super::resnet::SimResNetConfig;
use crate::PoseEstimatorConfig;
use crate::error::{Error, Result};

const OPERATION: &str = "SimResNetConfig";
/// Most learned values.
const MAX_PARAMETERS: usize = 1 << 27;
/// Most blocks.
const MAX_BLOCKS: usize = 1000;
/// Most taps along one side of a kernel.
const MAX_KERNEL: usize = 63;
/// Most pixels between two positions.
const MAX_STRIDE: usize = 256;
/// Most values that one layer makes of one image.
const MAX_FEATURES: usize = 1 << 24;
/// Most taps of one layer for one image.
const MAX_TAPS: usize = 1 << 24;
/// Most rings, and most scales.
const MAX_RINGS: usize = 512;
/// Most poses a position.
const MAX_POSES: usize = 16;
/// Largest radius that is read, and largest kappa.
const MAX_LENGTH: f64 = 4096.0;

impl SimResNetConfig {
    /// Refuses a network for images of `height` x `width` that is too large to be meant.
    pub fn check_bounds(&self, [height, width]: [usize; 2]) -> Result<()> {
        within("channels of images", self.image_channels, 1, 1024)?;
        within("classes", self.classes, 2, 1_000_000)?;
        let mut count = Count {
            sides: [height, width],
            channels: self.image_channels,
            stride: 1,
            parameters: 0,
        };
        count.stem(self)?;
        let blocks = self.stages.iter().fold(0usize, |n, stage| n.saturating_add(stage.blocks));
        within("blocks", blocks, 0, MAX_BLOCKS)?;
        let wide = if self.relative_pose { 3 } else { 1 };
        for stage in &self.stages {
            for block in 0..stage.blocks {
                count.layer(3, stage.channels, if block == 0 { stage.stride } else { 1 }, wide)?;
                count.layer(3, stage.channels, 1, wide)?;
            }
        }
        let mut last = count.channels.saturating_mul(2);
        if let Some(orientation) = &self.orientation {
            orientation.check()?;
            count.add(orientation.parameters(count.channels, last))?;
            last = orientation.channels;
            let values = orientation.turns.saturating_mul(last.max(self.classes));
            within("values of a layer", values, 1, MAX_FEATURES)?;
        }
        count.add(last.saturating_mul(self.classes))?;
        if let Some(look) = &self.second_look {
            look.check(self)?;
            // No more than the first.
            count.add(count.parameters)?;
        }
        for (name, kappa) in [("stem_kappa", self.stem_kappa), ("kappa", self.kappa)] {
            length(name, kappa)?;
        }
        check_pose(&self.pose)
    }
}

fn check_pose(pose: &PoseEstimatorConfig) -> Result<()> {
    within("rings", pose.rings, 1, MAX_RINGS)?;
    within("scales", pose.scales, 1, MAX_RINGS)?;
    within("poses", pose.poses, 1, MAX_POSES)?;
    length("outer", pose.outer)
}

/// What the layers so far come to.
struct Count {
    /// Of the grid.
    sides: [usize; 2],
    channels: usize,
    stride: usize,
    parameters: usize,
}

impl Count {
    /// The stem, with the layers inside of its window.
    fn stem(&mut self, network: &SimResNetConfig) -> Result<()> {
        let SimResNetConfig { stem_kernel, stem_stride, stem_channels, .. } = *network;
        if network.stem_window.is_empty() {
            return self.layer(stem_kernel, stem_channels, stem_stride, 1);
        }
        within("taps along a kernel's side", stem_kernel, 1, MAX_KERNEL)?;
        within("stride", stem_stride, 1, MAX_STRIDE)?;
        within("layers of a window", network.stem_window.len(), 1, MAX_BLOCKS)?;
        let sides = self.sides.map(|side| side.div_ceil(stem_stride));
        let positions = sides[0].saturating_mul(sides[1]);
        // One window, then as many as there are positions.
        let mut window = Count { sides: [stem_kernel; 2], stride: 1, ..*self };
        let mut values = stem_kernel * stem_kernel * self.channels;
        for layer in &network.stem_window {
            window.layer(layer.kernel, layer.channels, layer.stride, 1)?;
            values = values.max(window.sides[0] * window.sides[1] * window.channels);
        }
        within("values of a layer", positions.saturating_mul(values), 1, MAX_FEATURES)?;
        window.layer(window.sides[0], stem_channels, window.sides[0], 1)?;
        let (channels, parameters) = (window.channels, window.parameters);
        *self = Count { sides, channels, stride: stem_stride, parameters };
        Ok(())
    }

    /// One more convolution with its batch norm.
    fn layer(&mut self, kernel: usize, channels: usize, stride: usize, wide: usize) -> Result<()> {
        within("taps along a kernel's side", kernel, 1, MAX_KERNEL)?;
        within("channels", channels, 1, MAX_PARAMETERS)?;
        within("stride", stride, 1, MAX_STRIDE)?;
        self.stride *= stride;
        within("pixels between two positions", self.stride, 1, MAX_STRIDE)?;
        self.sides = self.sides.map(|side| side.div_ceil(stride));
        let positions = self.sides[0].saturating_mul(self.sides[1]);
        let taps = kernel * kernel;
        let weights = taps.saturating_mul(wide).saturating_mul(self.channels);
        self.add(weights.saturating_mul(channels))?;
        self.channels = channels;
        within("taps of a layer", positions.saturating_mul(taps), 1, MAX_TAPS)?;
        let features = positions.saturating_mul(channels);
        within("values of a layer", features, 1, MAX_FEATURES)
    }

    fn add(&mut self, parameters: usize) -> Result<()> {
        self.parameters = self.parameters.saturating_add(parameters);
        within("parameters", self.parameters, 0, MAX_PARAMETERS)
    }
}

fn within(name: &str, value: usize, low: usize, high: usize) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::shape(OPERATION, format!("{low} to {high} {name}"), value.to_string()))
}

fn length(name: &str, value: f64) -> Result<()> {
    if value > 0.0 && value <= MAX_LENGTH {
        return Ok(());
    }
    Err(Error::shape(OPERATION, format!("{name} above 0, at most {MAX_LENGTH}"), value.to_string()))
}

#[cfg(test)]
mod tests {
    use crate::PoseEstimatorConfig;
    use crate::models::{Architecture, SimResNetConfig, StageConfig, WindowLayerConfig};

    #[test]
    fn the_known_networks_are_within_and_absurd_ones_refused() {
        for arch in Architecture::ALL {
            arch.config(3, 1000).check_bounds([224, 224]).unwrap();
        }
        let small = || Architecture::Small.config(1, 10);
        let pose = PoseEstimatorConfig::new;
        let absurd: [(&str, SimResNetConfig); 8] = [
            ("parameters", small().with_relative_pose(true).stage(20_000, 1)),
            ("channels", small().stage(usize::MAX, 1)),
            ("blocks", small().stage(1, usize::MAX)),
            ("rings", small().with_pose(pose().with_rings(usize::MAX))),
            ("scales", small().with_pose(pose().with_scales(1 << 40))),
            ("poses", small().with_pose(pose().with_poses(100))),
            ("outer", small().with_pose(pose().with_outer(1e300))),
            ("kappa", small().with_kappa(f64::NAN)),
        ];
        for (name, config) in absurd {
            let error = config.check_bounds([56, 56]).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        for (kernel, stride) in [(usize::MAX, 1), (0, 1), (1001, 1), (3, 0), (3, usize::MAX)] {
            let config = SimResNetConfig::new(10, 1, 8, kernel, stride, vec![]);
            assert!(config.stage(8, 1).check_bounds([56, 56]).is_err());
        }
        assert!(small().check_bounds([usize::MAX, 2]).is_err());
        let large = || Architecture::Resnet16.config(1, 10);
        for (config, side, name) in [
            (large(), 2048, "taps of a layer"),
            (large().stage(3000, 1), 512, "values of a layer"),
            (Architecture::Small.config(1, 10), 2048, "values of a layer"),
            (small().window(7, 0), 56, "stride"),
            (small().window(1 << 40, 1), 56, "channels"),
        ] {
            let error = config.check_bounds([side, side]).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    impl SimResNetConfig {
        fn window(mut self, channels: usize, stride: usize) -> Self {
            self.stem_window = vec![WindowLayerConfig::new(channels, 3, stride)];
            self
        }

        fn stage(mut self, channels: usize, blocks: usize) -> Self {
            self.stages = vec![StageConfig::new(channels, blocks, 1)];
            self
        }
    }
}
