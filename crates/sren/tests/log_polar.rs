//! The log-polar branch: it sees the same object at any place, size and orientation.

mod support;

use burn::tensor::{Device, Int, Tensor, TensorData};
use sren::models::{
    Architecture, ConvLayerConfig, LogPolarConfig, Network, NetworkConfig, TrainingBatch,
    parameter_count,
};
use sren::{Equivariance, Similarity, Weights};
use support::{device, values};

fn branch() -> LogPolarConfig {
    let layers = [[8, 5, 1], [12, 3, 2], [6, 1, 1]];
    let layer =
        |[channels, kernel, stride]: [usize; 3]| ConvLayerConfig::new(channels, kernel, stride);
    LogPolarConfig::new(48, 15, [0.12, 2.6], 7.0, layers.map(layer).to_vec(), 8, 16)
}

fn config(branch: LogPolarConfig) -> NetworkConfig {
    Architecture::Small.config(1, 10).with_log_polar(Some(branch))
}

/// Three soft blobs about (x, y), `scale` times as large, on 64 x 64 pixels.
fn image([x, y]: [f32; 2], scale: f32, device: &Device) -> Tensor<4> {
    let value = |at: usize| {
        let (u, v) = (((at % 64) as f32 - x) / scale, ((at / 64) as f32 - y) / scale);
        let blob = |p: f32, q: f32, s: f32| (-((u - p).powi(2) + (v - q).powi(2)) / s).exp();
        blob(-4.0, -2.0, 8.0) + 0.7 * blob(3.0, 1.0, 5.0) + 0.5 * blob(0.0, 6.0, 4.0)
    };
    let data = TensorData::new((0..64 * 64).map(value).collect::<Vec<f32>>(), [1, 64, 64, 1]);
    Tensor::from_data(data, device)
}

/// A rotation by 90 degrees.
fn rotated(x: Tensor<4>) -> Tensor<4> {
    x.swap_dims(1, 2).flip([2])
}

fn branch_scores(net: &Network, x: &Tensor<4>) -> Tensor<3> {
    let branch = net.classifier().log_polar.as_ref().unwrap();
    branch.forward(x, net.equivariance()).unwrap()
}

#[test]
fn head_and_branch_shift_together() {
    let device = Device::flex();
    device.seed(5);
    let net = config(branch()).init(&device).unwrap();
    let scores =
        |x: Tensor<4>| net.classifier().scores_in(x.clone(), &net.frames(&x).unwrap()).unwrap();
    let x = image([29.0, 33.0], 1.4, &device);
    let (own, after) = (scores(x.clone()), scores(rotated(x)));
    // 90 degrees are 6 of 24 steps.
    let shifted = Tensor::cat(vec![own.clone().narrow(1, 6, 18), own.clone().narrow(1, 0, 6)], 1);
    let change = (after - shifted).abs().max().into_scalar::<f32>();
    let spread = (own.clone().max_dim(1) - own.min_dim(1)).max().into_scalar::<f32>();
    assert!(change < 1e-3 * spread, "{change} {spread}");
}

#[test]
fn the_place_and_the_size_of_the_object_do_not_matter() {
    let device = Device::flex();
    device.seed(5);
    let net = config(branch()).init(&device).unwrap();
    let change = |net: &Network, at: [f32; 2], scale: f32| {
        let own = branch_scores(net, &image([31.5, 31.5], 1.5, &device));
        let other = branch_scores(net, &image(at, scale, &device));
        (other - own).abs().max().into_scalar::<f32>()
    };
    let (moved, enlarged) = (change(&net, [26.3, 35.8], 1.5), change(&net, [31.5, 31.5], 2.2));
    // In a group without scale only the place does not matter.
    device.seed(5);
    let net = config(branch()).with_equivariance(Equivariance::Rotation).init(&device).unwrap();
    let of_scale = change(&net, [31.5, 31.5], 2.2);
    assert!(moved < 0.1 * of_scale && enlarged < 0.2 * of_scale, "{moved} {enlarged} {of_scale}");
    assert!(change(&net, [26.3, 35.8], 1.5) < 0.1 * of_scale);
}

#[test]
fn the_shape_of_the_image_does_not_matter() {
    let device = Device::flex();
    device.seed(5);
    let net = config(branch()).init(&device).unwrap();
    let x = image([31.5, 31.5], 1.5, &device);
    let own = branch_scores(&net, &x);
    // Cut where it is black.
    for (axis, other) in [(1, x.clone().narrow(1, 11, 44)), (2, x.narrow(2, 11, 44))] {
        let change = (branch_scores(&net, &other) - own.clone()).abs().max().into_scalar::<f32>();
        let spread = (own.clone().max() - own.clone().min()).into_scalar::<f32>();
        assert!(change < 1e-2 * spread, "{axis}: {change} {spread}");
    }
}

#[test]
fn its_layers_are_counted_and_named_as_their_weights() {
    for group in Equivariance::ALL {
        let config = config(branch()).with_equivariance(group);
        let geometry = config.geometry([56, 56]).unwrap();
        let net = config.init(&Device::flex()).unwrap();
        assert_eq!(geometry.parameters(), parameter_count(&net));
        let weights = Weights::of(&net).tensors;
        let own = geometry.layers().iter().filter(|layer| layer.name.starts_with("log_polar."));
        assert_eq!(own.clone().count(), 5);
        for layer in own {
            let name = layer.name.strip_suffix("hidden").unwrap_or(&layer.name);
            assert!(weights.keys().any(|known| known.starts_with(name)), "{name}");
        }
        let rows = if group.includes_rotation() { 24 } else { 1 };
        let x = image([31.5, 31.5], 1.0, &Device::flex());
        assert_eq!(branch_scores(&net, &x).dims(), [1, rows, 10]);
    }
}

#[test]
fn it_learns_unless_frozen_and_its_jitter_follows_the_seed() {
    let device = device();
    let x = image([31.5, 31.5], 1.0, &device);
    let net = config(branch().with_jitter(0.1)).init(&device).unwrap();
    let frames = net.frames(&x).unwrap();
    let loss = |net: &Network, seed: u64| {
        device.seed(seed);
        let batch = TrainingBatch {
            images: x.clone(),
            targets: Tensor::<1, Int>::from_data(TensorData::new(vec![3i32], [1]), &device),
            transforms: vec![Similarity::IDENTITY],
        };
        net.loss(batch, &frames, None).unwrap().loss
    };
    let value = |seed: u64| loss(&net, seed).into_scalar::<f32>();
    assert_eq!(value(1), value(1));
    assert_ne!(value(1), value(2));
    let gradient = |net: &Network| {
        let gradients = loss(net, 1).backward();
        let branch = net.classifier().log_polar.as_ref().unwrap();
        let inner = branch.backbone[0].conv.weight.val().grad(&gradients);
        (inner, branch.moments.weight.val().grad(&gradients))
    };
    let (inner, outer) = gradient(&net);
    for gradient in [values(&inner.unwrap()), values(&outer.unwrap())] {
        assert!(gradient.iter().any(|value| *value != 0.0));
    }
    let (inner, outer) = gradient(&net.clone().with_frozen_backbone());
    assert!(inner.is_none() && outer.is_some());
}

#[test]
fn a_blank_image_has_an_answer() {
    let device = Device::flex();
    let net = config(branch()).init(&device).unwrap();
    let scores = branch_scores(&net, &Tensor::zeros([2, 32, 32, 1], &device));
    assert!(values(&scores).iter().all(|score| score.is_finite()));
}

#[test]
fn wrong_settings_are_errors_before_anything_is_allocated() {
    let with = |change: &dyn Fn(&mut LogPolarConfig)| {
        let mut branch = branch();
        change(&mut branch);
        branch
    };
    let layers = |layers: &[[usize; 3]]| {
        let layers = layers.iter().map(|[c, k, s]| ConvLayerConfig::new(*c, *k, *s));
        with(&|branch| branch.layers = layers.clone().collect())
    };
    for (name, bad) in [
        ("angles", with(&|branch| branch.angles = 40)),
        ("angles", with(&|branch| branch.angles = 1 << 40)),
        ("radii", with(&|branch| branch.radii = 1)),
        ("radii of 0.001", with(&|branch| branch.range = [0.0, 1.0])),
        ("radii of 0.001", with(&|branch| branch.range = [2.0, f64::NAN])),
        ("extent", with(&|branch| branch.extent = 1e39)),
        ("moments", with(&|branch| branch.moments = 13)),
        ("hidden", with(&|branch| branch.hidden = 0)),
        ("jitter", with(&|branch| branch.jitter = -0.1)),
        ("dropout", with(&|branch| branch.dropout = 1.0)),
        ("layers", layers(&[])),
        ("values of a layer", {
            let wide = vec![ConvLayerConfig::new(1, 1, 1)];
            LogPolarConfig::new(1008, 2, [0.1, 2.0], 7.0, wide, 504, 65_000)
        }),
        ("strides", layers(&[[4, 3, 0]])),
        ("strides", layers(&[[4, 3, 4]])),
        ("kernel", layers(&[[4, 3, 2], [4, 61, 1]])),
        ("channels", layers(&[[1 << 40, 3, 2]])),
    ] {
        let bad = config(bad);
        let error = bad.geometry([56, 56]).unwrap_err().to_string();
        assert!(error.contains(name), "{name}: {error}");
    }
    let pooled = Architecture::Blocks.config(1, 10).with_log_polar(Some(branch()));
    let error = pooled.geometry([56, 56]).unwrap_err().to_string();
    assert!(error.contains("an orientation head"), "{error}");
    assert!(pooled.init(&Device::flex()).is_err());
}
