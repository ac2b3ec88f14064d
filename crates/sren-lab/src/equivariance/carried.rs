//! Features in frames of one's choice: those that the estimator reads from the transformed image,
//! or those of the original image, transformed with the image as the lemma requires.

use std::sync::{Arc, Mutex};

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use rayon::prelude::*;
use sren::equivariance::NamedFeatures;
use sren::models::{Network, NetworkConfig};
use sren::pose::{Images, PoseReading};
use sren::{
    FeatureMap, Frames, Grid, Image, PoseEstimator, PoseField, SimConv2d, SimConv2dConfig,
    Similarity, read_pose, wrap_angle,
};

use super::scenes::Scenes;
use crate::error::Result;
use crate::inference::inference_device;

/// A pose has jumped if its angle is off by this many degrees
const JUMP_DEG: f64 = 10.0;
/// or its scale by this in ln scale.
const JUMP_LOG_SCALE: f64 = 0.1;

/// Which frames a transformed image has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Those the estimator reads.
    Read,
    /// The same, but carried ones where they have jumped.
    WithoutJumps,
    /// The same again, with carried gates and, where no pose is read, carried poses.
    CarriedGates,
    /// Those of the original, carried along.
    Carried,
}

/// How one position's pose differs from the carried one.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoseChange {
    pub(super) angle_deg: f64,
    pub(super) log_scale: f64,
    /// Confidence read and carried.
    pub(super) gate: [f64; 2],
}

impl PoseChange {
    pub(super) fn jumped(&self) -> bool {
        let both = self.gate.iter().all(|gate| *gate > 0.0);
        both && (self.angle_deg > JUMP_DEG || self.log_scale > JUMP_LOG_SCALE)
    }

    /// Whether there was a pose and none is read.
    pub(super) fn vanished(&self) -> bool {
        self.gate[0] == 0.0 && self.gate[1] > 0.0
    }
}

/// A network on images whose frames can be chosen.
pub(super) struct Subject<'a> {
    network: &'a Network,
    config: &'a NetworkConfig,
    estimator: PoseEstimator,
    scenes: &'a Scenes,
    originals: Vec<Image>,
    grids: Vec<Grid>,
    /// Gives the stem's patches as they are, the mean of their colours: one channel a tap.
    patch: SimConv2d,
    device: Device,
    /// Carried poses of every grid, by transform: they are slow to read.
    carried: Mutex<Vec<(Similarity, Arc<CarriedGrids>)>>,
}

/// The poses of a position and their confidence.
type Carried = (Vec<PoseReading>, f64);
/// The positions of each grid.
type CarriedGrids = Vec<Vec<Carried>>;

impl<'a> Subject<'a> {
    pub(super) fn new(
        network: &'a Network,
        config: &'a NetworkConfig,
        scenes: &'a Scenes,
    ) -> Result<Self> {
        let device = inference_device();
        let (k, stride, reference_scale) = config.backbone.sampling();
        let (side, c) = (scenes.side(), config.image_channels);
        let data = pixels(&scenes.view(&Similarity::IDENTITY, &device)?);
        let originals = data
            .chunks_exact(side * side * c)
            .map(|pixels| Image::new(side, side, c, pixels.to_vec()))
            .collect::<Result<_, _>>()?;
        let mut patch = SimConv2dConfig::new([c, k * k], k)
            .with_stride(stride)
            .with_reference_scale(reference_scale)
            .with_bias(false)
            .init(&device)?;
        let unit = |i: usize| if i / (c * k * k) == i % (k * k) { 1.0 / c as f32 } else { 0.0 };
        let units = TensorData::new((0..c * k.pow(4)).map(unit).collect(), [k, k, c, k * k]);
        patch.weight = Param::from_tensor(Tensor::from_data(units, &device));
        Ok(Self {
            network,
            config,
            estimator: config.pose.init()?,
            scenes,
            originals,
            grids: network.grids(&Grid::pixels(side, side))?,
            patch,
            device,
            carried: Mutex::default(),
        })
    }

    /// `patches` and the network's layers under a transform.
    pub(super) fn layers(
        &self,
        transform: &Similarity,
        choice: Choice,
    ) -> Result<Vec<NamedFeatures>, sren::Error> {
        let images = self.scenes.view(transform, &self.device)?;
        let read = self.read(&images)?;
        let fields = match choice {
            Choice::Read => read,
            _ if *transform == Similarity::IDENTITY => read,
            _ => {
                let carried = self.carried_by(transform, &read);
                let pairs = read.iter().zip(carried.iter());
                pairs.map(|(field, c)| repaired(field, c, choice)).collect::<Result<_, _>>()?
            }
        };
        let frames = Frames::new(fields, self.network.equivariance())?
            .with_active_only(self.config.active_only);
        let patches = self.patch.forward(FeatureMap::from_images(images.clone()), &frames)?;
        let mut layers = vec![("patches".to_string(), patches)];
        layers.extend(self.network.feature_maps(images, &frames)?);
        Ok(layers)
    }

    /// How the poses on the finest grid, within the disc, differ from the carried ones.
    pub(super) fn pose_changes(
        &self,
        transform: &Similarity,
    ) -> Result<Vec<PoseChange>, sren::Error> {
        let field = &self.read(&self.scenes.view(transform, &self.device)?)?[0];
        let grid = field.grid();
        let middle = 0.5 * (self.scenes.side() as f64 - 1.0);
        let reach = self.scenes.radius() * transform.scale();
        let near = |at: &usize| {
            let [x, y] = grid.point(at % grid.len() / grid.width, at % grid.width);
            (x - middle).hypot(y - middle) <= reach
        };
        let positions: Vec<usize> = (0..field.batch() * grid.len()).filter(near).collect();
        Ok(positions
            .par_iter()
            .map(|at| change(field, *at, &self.carried(field, *at, transform)))
            .collect())
    }

    fn read(&self, images: &Tensor<4>) -> Result<Vec<PoseField>, sren::Error> {
        let [n, h, w, c] = images.dims();
        let data = pixels(images);
        let images = Images::new(&data, n, h, w, c)?;
        self.grids.iter().map(|grid| self.estimator.field(&images, grid)).collect()
    }

    /// The poses at position `at` of `field`, as they were in the original, carried along.
    fn carried(&self, field: &PoseField, at: usize, transform: &Similarity) -> Carried {
        let grid = field.grid();
        let (image, place) = (at / grid.len(), at % grid.len());
        let back = transform.about(self.originals[image].centre()).inverse();
        let point = back.apply(grid.point(place / grid.width, place % grid.width));
        let (mut readings, confidence) =
            read_pose(self.estimator.spec(), &self.originals[image], point);
        for reading in &mut readings {
            reading.pose.scale *= transform.scale();
            reading.pose.angle = wrap_angle(reading.pose.angle + transform.angle());
        }
        (readings, confidence)
    }

    /// The carried poses at every position of every grid.
    fn carried_by(&self, transform: &Similarity, fields: &[PoseField]) -> Arc<CarriedGrids> {
        let mut known = self.carried.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, carried)) = known.iter().find(|(of, _)| of == transform) {
            return carried.clone();
        }
        let read = |field: &PoseField| -> Vec<Carried> {
            let positions = (0..field.batch() * field.grid().len()).into_par_iter();
            positions.map(|at| self.carried(field, at, transform)).collect()
        };
        let carried: Arc<CarriedGrids> = Arc::new(fields.iter().map(read).collect());
        known.push((*transform, carried.clone()));
        carried
    }
}

/// `field` with the carried poses that `choice` says.
fn repaired(
    field: &PoseField,
    carried: &[Carried],
    choice: Choice,
) -> Result<PoseField, sren::Error> {
    let poses = field.poses();
    let [mut scale, mut angle, mut weight] =
        [field.scale(), field.angle(), field.weight()].map(<[f32]>::to_vec);
    let mut confidence = field.confidence().to_vec();
    for (at, carried) in carried.iter().enumerate() {
        let change = change(field, at, carried);
        let replace = match choice {
            Choice::Read => false,
            Choice::WithoutJumps => change.jumped(),
            Choice::CarriedGates => change.jumped() || change.vanished(),
            Choice::Carried => true,
        };
        let (readings, sure) = carried;
        if replace || choice == Choice::CarriedGates {
            confidence[at] = *sure as f32;
        }
        for (reading, j) in readings.iter().zip(at * poses..).filter(|_| replace) {
            scale[j] = reading.pose.scale as f32;
            angle[j] = reading.pose.angle as f32;
            weight[j] = reading.weight as f32;
        }
    }
    Ok(PoseField::new(*field.grid(), field.batch(), poses, scale, angle, weight, confidence)?)
}

fn change(field: &PoseField, at: usize, carried: &Carried) -> PoseChange {
    let best = at * field.poses();
    let (readings, confidence) = carried;
    let pose = readings[0].pose;
    PoseChange {
        angle_deg: wrap_angle(f64::from(field.angle()[best]) - pose.angle).abs().to_degrees(),
        log_scale: (f64::from(field.scale()[best]) / pose.scale).ln().abs(),
        gate: [f64::from(field.confidence()[at]), *confidence],
    }
}

/// The values of a tensor.
pub(super) fn pixels(tensor: &Tensor<4>) -> Vec<f32> {
    tensor.to_data().iter::<f32>().collect()
}
