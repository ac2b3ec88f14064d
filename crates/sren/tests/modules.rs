//! The modules as parts of a user's network: equivariance of a stack, records, errors.

mod support;

use burn::module::{Module, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};
use sren::{
    Equivariance, Error, FeatureMap, Frames, Grid, Image, Mask, MaskedBatchNorm,
    MaskedBatchNormConfig, PoseEstimatorConfig, PoseField, Result, SimConv2d, SimConv2dConfig,
    pool,
};
use support::{assert_close, device, poses, tensor};

/// Stem with stride 2, residual block, pools: what a user would write.
#[derive(Module, Debug)]
struct Stack {
    stem: SimConv2d,
    norm: MaskedBatchNorm,
    conv: SimConv2d,
    residual: MaskedBatchNorm,
}

impl Stack {
    fn new(relative_pose: bool, device: &Device) -> Result<Self> {
        let norm = || MaskedBatchNormConfig::new(8).with_relu(true).init(device);
        Ok(Self {
            stem: SimConv2dConfig::new([2, 8], 5)
                .with_stride(2)
                .with_reference_scale(1.6)
                .init(device)?,
            norm: norm()?,
            conv: SimConv2dConfig::new([8, 8], 3)
                .with_bias(false)
                .with_relative_pose(relative_pose)
                .init(device)?,
            residual: norm()?,
        })
    }

    /// Features `[n, h / 2, w / 2, 8]`.
    fn features(&self, x: Tensor<4>, frames: &Frames) -> Result<Tensor<4>> {
        let [_, height, width, _] = x.dims();
        let taps = self.stem.taps(frames, &Grid::pixels(height, width))?;
        let grid = *taps.output_grid();
        let mask = Mask { active: taps.shared_active(), gate: None };
        let x = self.norm.forward(self.stem.convolve(x, &taps)?, &mask)?;
        let y = self.conv.convolve(x.clone(), &self.conv.taps(frames, &grid)?)?;
        self.residual.forward_residual(y, x, &mask)
    }

    /// `[n, 16]`.
    fn pooled(&self, x: Tensor<4>, frames: &Frames) -> Result<Tensor<2>> {
        let [_, height, width, _] = x.dims();
        let grid = Grid::pixels(height, width).cell_centred(2)?;
        let gate = frames.gate(&grid, &x.device())?;
        let z = FeatureMap::new(self.features(x, frames)? * gate, grid)?;
        Ok(Tensor::cat(vec![pool::global_max(&z)?, pool::gated_mean(&z, frames)?], 1))
    }
}

/// A rotation by 90 degrees of `[n, s, s, c]`: the image of (x, y) is (s - 1 - y, x).
fn rotate(x: Tensor<4>) -> Tensor<4> {
    x.swap_dims(1, 2).flip([2])
}

/// The pose field of the rotated image.
fn rotated_field(field: &PoseField) -> PoseField {
    let grid = *field.grid();
    let (n, side) = (field.batch(), grid.width);
    let move_to = |source: &[f32], add: f32| {
        let mut target = vec![0.0; source.len()];
        for image in 0..n {
            for row in 0..side {
                for column in 0..side {
                    let to = (image * side + column) * side + (side - 1 - row);
                    target[to] = source[(image * side + row) * side + column] + add;
                }
            }
        }
        target
    };
    PoseField::new(
        grid,
        n,
        1,
        move_to(field.scale(), 0.0),
        move_to(field.angle(), std::f32::consts::FRAC_PI_2),
        field.weight().to_vec(),
        move_to(field.confidence(), 0.0),
    )
    .unwrap()
}

#[test]
fn rotating_the_image_rotates_the_features_and_keeps_the_pools() -> Result<()> {
    let device = device();
    let grid = Grid::pixels(12, 12).cell_centred(2)?;
    for (relative_pose, active_only) in [(false, false), (false, true), (true, true)] {
        let stack = Stack::new(relative_pose, &device)?;
        let x = tensor(1, [2, 12, 12, 2], &device);
        let field = poses(5, grid, 2, 0.7);
        let frames = |field: PoseField| {
            Ok::<_, Error>(
                Frames::new(vec![field], Equivariance::Similarity)?.with_active_only(active_only),
            )
        };
        let (upright, rotated) = (frames(field.clone())?, frames(rotated_field(&field))?);
        let expected = rotate(stack.features(x.clone(), &upright)?);
        let got = stack.features(rotate(x.clone()), &rotated)?;
        assert_close("features", &got, &expected, 1e-5);
        let expected = stack.pooled(x.clone(), &upright)?;
        assert_close("pools", &stack.pooled(rotate(x), &rotated)?, &expected, 1e-5);
    }
    Ok(())
}

#[test]
fn without_equivariance_it_is_the_plain_network() -> Result<()> {
    let device = device();
    let stack = Stack::new(false, &device)?;
    let x = tensor(1, [2, 12, 12, 2], &device);
    let grid = Grid::pixels(12, 12).cell_centred(2)?;
    let plain = Frames::plain(2);
    let frozen = Frames::new(vec![poses(5, grid, 2, 0.5)], Equivariance::None)?;
    let expected = stack.features(x.clone(), &plain)?;
    assert_close("features", &stack.features(x, &frozen)?, &expected, 0.0);
    Ok(())
}

#[test]
fn a_group_restricts_poses_to_what_it_includes() -> Result<()> {
    let field = poses(5, Grid::pixels(4, 5), 2, 0.5);
    let rotation = Equivariance::Rotation.restrict(field.clone())?;
    assert!(rotation.scale().iter().all(|&s| s == 1.0));
    assert_eq!(rotation.angle(), field.angle());
    let scale = Equivariance::Scale.restrict(field.clone())?;
    assert!(scale.angle().iter().all(|&a| a == 0.0));
    assert_eq!(scale.scale(), field.scale());
    assert_eq!(Equivariance::Similarity.restrict(field.clone())?, field);
    Ok(())
}

#[test]
fn layers_share_their_taps() -> Result<()> {
    let device = device();
    let grid = Grid::pixels(6, 6);
    let frames =
        Frames::new(vec![poses(1, grid, 2, 0.5)], Equivariance::Similarity)?.with_active_only(true);
    let layer = |c| SimConv2dConfig::new([c, 4], 3).init(&device);
    let shared = |c| Ok::<_, Error>(layer(c)?.taps(&frames, &grid)?.shared_active().unwrap());
    assert!(std::sync::Arc::ptr_eq(&shared(4)?, &shared(7)?));
    Ok(())
}

#[test]
fn records_bring_back_the_same_network() -> Result<()> {
    let device = device();
    let grid = Grid::pixels(12, 12).cell_centred(2)?;
    let frames = Frames::new(vec![poses(5, grid, 2, 0.7)], Equivariance::Similarity)?;
    let x = tensor(1, [2, 12, 12, 2], &device);
    let stack = Stack::new(false, &device)?;
    stack.pooled(x.clone(), &frames)?; // moves the running averages
    let other = Stack::new(false, &device)?.load_record(stack.valid().into_record());
    let x = x.without_autodiff();
    let expected = stack.valid().pooled(x.clone(), &frames)?;
    assert_close("record", &other.valid().pooled(x.clone(), &frames)?, &expected, 0.0);

    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("stack");
    stack.valid().save_file(&path).unwrap();
    let other = Stack::new(false, &Device::flex())?.load_file(&path);
    assert_close("file", &other.pooled(x, &frames)?, &expected, 0.0);
    Ok(())
}

#[test]
fn gradient_checkpointing_gives_the_same_gradients() -> Result<()> {
    let grid = Grid::pixels(12, 12).cell_centred(2)?;
    let frames = Frames::new(vec![poses(5, grid, 2, 0.7)], Equivariance::Similarity)?;
    let kept = Stack::new(true, &device())?;
    let recomputed = Stack::new(true, &device().gradient_checkpointing())?
        .load_record(kept.clone().into_record());
    let gradient = |stack: &Stack, device: &Device| {
        let x = tensor(1, [2, 12, 12, 2], device).require_grad();
        let gradients = stack.pooled(x.clone(), &frames)?.powi_scalar(2).sum().backward();
        let stem = stack.stem.weight.grad(&gradients).unwrap();
        Ok::<_, Error>((x.grad(&gradients).unwrap(), stem))
    };
    let (dx, dw) = gradient(&kept, &device())?;
    let (x, w) = gradient(&recomputed, &device().gradient_checkpointing())?;
    assert_close("input's", &x, &dx, 1e-6);
    assert_close("weight's", &w, &dw, 1e-6);
    Ok(())
}

#[test]
fn invalid_arguments_are_errors() -> Result<()> {
    let device = device();
    let grid = Grid::pixels(6, 6);
    let frames = Frames::new(vec![poses(1, grid, 2, 0.5)], Equivariance::Similarity)?;
    let layer = SimConv2dConfig::new([3, 4], 3).init(&device)?;
    let taps = layer.taps(&frames, &grid)?;
    for shape in [[2, 6, 6, 4], [1, 6, 6, 3], [2, 5, 6, 3], [2, 6, 7, 3]] {
        let error = layer.convolve(tensor(1, shape, &device), &taps).unwrap_err();
        assert!(error.to_string().contains("expected input of [2, 6, 6, 3], got"), "{error}");
    }
    let wide = SimConv2dConfig::new([3, 4], 5).init(&device)?;
    assert!(wide.convolve(tensor(1, [2, 6, 6, 3], &device), &taps).is_err());
    let relative = SimConv2dConfig::new([3, 4], 3).with_relative_pose(true).init(&device)?;
    assert!(relative.convolve(tensor(1, [2, 6, 6, 3], &device), &taps).is_err());
    let taps = relative.taps(&frames, &grid)?;
    assert!(relative.convolve(tensor(1, [2, 6, 6, 3], &device), &taps).is_ok());
    let strided = SimConv2dConfig::new([3, 4], 3).with_stride(2).init(&device)?;
    assert!(strided.taps(&frames, &grid).unwrap_err().to_string().starts_with("Frames::field"));

    for config in [
        SimConv2dConfig::new([3, 4], 2),
        SimConv2dConfig::new([0, 4], 3),
        SimConv2dConfig::new([3, 0], 3),
        SimConv2dConfig::new([3, 4], 3).with_stride(0),
        SimConv2dConfig::new([3, 4], 3).with_reference_scale(f64::NAN),
        SimConv2dConfig::new([3, 4], 3).with_dilation(0),
    ] {
        assert!(config.init(&device).is_err(), "{config}");
    }
    assert!(MaskedBatchNormConfig::new(0).init(&device).is_err());
    assert!(MaskedBatchNormConfig::new(3).with_epsilon(0.0).init(&device).is_err());
    assert!(MaskedBatchNormConfig::new(3).with_momentum(2.0).init(&device).is_err());

    let norm = MaskedBatchNormConfig::new(3).init(&device)?;
    let x = || tensor(1, [2, 2, 2, 3], &device);
    assert!(norm.forward(tensor(1, [2, 2, 2, 4], &device), &Mask::default()).is_err());
    assert!(
        norm.forward_residual(x(), tensor(1, [2, 2, 1, 3], &device), &Mask::default()).is_err()
    );
    for active in [&[3u32, 1][..], &[8]] {
        assert!(norm.forward(x(), &Mask { active: Some(active.into()), gate: None }).is_err());
    }
    assert!(norm.forward(x(), &Mask { active: None, gate: Some([1.0; 7].into()) }).is_err());
    // Features of another size than their grid, or without positions.
    assert!(FeatureMap::new(x(), Grid::pixels(2, 3)).is_err());
    let wrong = FeatureMap { values: x(), grid: Grid::pixels(3, 3) };
    assert!(pool::gated_mean(&wrong, &Frames::plain(2)).is_err());
    let empty = FeatureMap::from_images(Tensor::zeros([2, 0, 2, 3], &device));
    assert!(pool::global_max(&empty).is_err());

    assert!(Frames::new(vec![], Equivariance::None).is_err());
    let twice = vec![poses(1, grid, 2, 0.5), poses(2, grid, 2, 0.5)];
    assert!(Frames::new(twice, Equivariance::None).is_err());
    let mixed = vec![poses(1, grid, 2, 0.5), poses(2, Grid::pixels(3, 3), 1, 0.5)];
    assert!(Frames::new(mixed, Equivariance::None).is_err());
    Ok(())
}

#[test]
fn replaced_parameters_are_checked() -> Result<()> {
    let (device, grid) = (device(), Grid::pixels(6, 6));
    let frames = Frames::plain(2);
    let x = || FeatureMap::from_images(tensor(1, [2, 6, 6, 3], &device));
    let layer = || SimConv2dConfig::new([3, 4], 3).init(&device);
    let fails = |layer: SimConv2d| layer.forward(x(), &frames).unwrap_err().to_string();
    assert_eq!(layer()?.forward(x(), &frames)?.grid, grid);

    let mut wrong = layer()?;
    wrong.weight = Param::from_tensor(tensor(1, [3, 3, 5, 4], &device));
    assert_eq!(fails(wrong), "SimConv2d: expected weight of [3, 3, 3, 4], got [3, 3, 5, 4]");
    let mut wrong = layer()?;
    wrong.bias = Some(Param::from_tensor(tensor(1, [5], &device)));
    assert_eq!(fails(wrong), "SimConv2d: expected bias of [4], got [5]");
    let mut wrong = layer()?;
    wrong.weight = wrong.weight.map(|weight| weight.cast(DType::F64));
    assert_eq!(fails(wrong), "SimConv2d: expected weight of F32, got F64");
    let norm = || MaskedBatchNormConfig::new(3).init(&device);
    let fails =
        |norm: MaskedBatchNorm| norm.forward(x().values, &Mask::default()).unwrap_err().to_string();
    let mut wrong = norm()?;
    wrong.beta = Param::from_tensor(tensor(1, [2], &device));
    assert_eq!(fails(wrong), "MaskedBatchNorm::forward: expected beta of [3], got [2]");
    let mut wrong = norm()?;
    wrong.gamma = wrong.gamma.map(|gamma| gamma.cast(DType::F16));
    assert_eq!(fails(wrong), "MaskedBatchNorm::forward: expected gamma of F32, got F16");
    Ok(())
}

#[test]
fn inputs_in_another_memory_order_are_read_right() -> Result<()> {
    let device = device();
    let grid = Grid::pixels(6, 5);
    let frames = Frames::new(vec![poses(1, grid, 2, 1.0)], Equivariance::Similarity)?;
    let layer = SimConv2dConfig::new([3, 4], 3).init(&device)?;
    let taps = layer.taps(&frames, &grid)?;
    let channels_first: Tensor<4> = tensor(1, [2, 3, 6, 5], &device);
    let leaf = channels_first.require_grad();
    let view = leaf.clone().permute([0, 2, 3, 1]);
    let copy = Tensor::from_data(view.to_data(), &device).require_grad();
    let got = layer.convolve(view, &taps)?;
    let expected = layer.convolve(copy.clone(), &taps)?;
    assert_close("output", &got, &expected, 0.0);
    // A gradient that arrives in another order, too.
    let upstream = tensor(3, [2, 4, 6, 5], &device);
    let loss = |output: Tensor<4>| (output.permute([0, 3, 1, 2]) * upstream.clone()).sum();
    let (got, expected) = (loss(got).backward(), loss(expected).backward());
    let got = leaf.grad(&got).unwrap().permute([0, 2, 3, 1]);
    assert_close("gradient", &got, &copy.grad(&expected).unwrap(), 1e-6);
    Ok(())
}

#[test]
fn an_enlarged_range_of_scales_is_as_fine_and_reaches_as_far_into_larger_images() {
    let small = PoseEstimatorConfig::new();
    let large = small.enlarged(3.0);
    assert_eq!((large.max_scale, large.outer), (3.0 * small.max_scale, 3.0 * small.outer));
    assert_eq!((large.min_scale, large.inner), (small.min_scale, small.inner));
    let step = |low: f64, high: f64, count: usize| (high / low).ln() / count as f64;
    let scales = |c: &PoseEstimatorConfig| step(c.min_scale, c.max_scale, c.scales);
    let rings = |c: &PoseEstimatorConfig| step(c.inner, c.outer, c.rings);
    assert!((scales(&large) / scales(&small) - 1.0).abs() < 0.02);
    assert!((rings(&large) / rings(&small) - 1.0).abs() < 0.02);
    // A blob that is too large for the one, and not for the other.
    let image = Image::from_fn(160, 160, |x, y| {
        (-((x - 60.0).powi(2) + (y - 79.5).powi(2)) / (2.0 * 22f64.powi(2))).exp()
    });
    let device = device();
    let data = TensorData::new(image.unwrap().data().to_vec(), [1, 160, 160, 1]);
    let images = Tensor::<4>::from_data(data, &device);
    let grid = Grid::pixels(160, 160).cell_centred(16).unwrap();
    let posed = |config: &PoseEstimatorConfig| {
        let field = config.init().unwrap().fields(&images, &[grid]).unwrap().remove(0);
        field.confidence().iter().filter(|confidence| **confidence > 0.0).count()
    };
    assert!(posed(&large) > posed(&small), "{} {}", posed(&large), posed(&small));
}
