//! The measure of equivariance: it knows what is equivariant and what is not, and finds what is
//! planted; the networks are as equivariant as they say.

mod support;

use burn::tensor::{Device, Tensor, TensorData};
use sren::equivariance::{LayerError, NamedFeatures, Protocol, measure, network_layers, warped};
use sren::models::Architecture;
use sren::{Equivariance, FeatureMap, Grid, Image, Result, Similarity};
use support::random;

const SIDE: usize = 48;

fn rotation(scale: f64, degrees: f64) -> Similarity {
    Similarity::new(scale, degrees.to_radians(), [0.0; 2]).unwrap()
}

/// Turns by no multiple of 90 degrees, and scales.
fn transforms() -> Vec<Similarity> {
    vec![rotation(1.0, 25.0), rotation(1.0, 160.0), rotation(0.8, 0.0), rotation(1.2, -70.0)]
}

/// Soft random waves under a window that is dark at the border.
fn image(seed: u64) -> Image {
    let r = random(seed, 9);
    Image::from_fn(SIDE, SIDE, |x, y| {
        let (u, v) = (x - 23.5, y - 23.5);
        let wave = |i: usize| {
            let angle = 3.0 * f64::from(r[i]);
            (0.35 * (u * angle.cos() + v * angle.sin()) + 3.0 * f64::from(r[i + 1])).sin()
        };
        (0.5 + 0.16 * (wave(0) + wave(2) + wave(4))) * (-(u * u + v * v) / 180.0).exp()
    })
    .unwrap()
}

fn named(name: &str, values: Tensor<4>, grid: Grid) -> NamedFeatures {
    (name.to_string(), FeatureMap { values, grid })
}

/// Measures `features` on warped waves.
fn on_waves(
    transforms: &[Similarity],
    features: impl Fn(Tensor<4>) -> Vec<(&'static str, Tensor<4>)>,
) -> Vec<LayerError> {
    let images = [image(1), image(2)];
    let grid = Grid::pixels(SIDE, SIDE);
    measure(&Protocol::new(SIDE, SIDE, 14.0), transforms, |transform| {
        let maps = features(warped(&images, transform, &Device::flex())?);
        Ok(maps.into_iter().map(|(name, x)| named(name, x, grid)).collect())
    })
    .unwrap()
}

#[test]
fn a_pointwise_map_has_none_and_an_unrelated_one_has_much() {
    let pointwise = on_waves(&transforms(), |x| {
        vec![("square", x.clone().square()), ("channels", Tensor::cat(vec![x.clone(), -x], 3))]
    });
    for layer in &pointwise {
        // The warp reads the pixel itself where a pixel is carried onto a pixel.
        assert!(layer.error < 1e-10 && layer.centred < 1e-10, "{layer:?}");
        assert_eq!((layer.by_transform.len(), layer.compared), (4, 2 * 4 * 4));
    }
    // A fixed pattern that does not know the image.
    let pattern = Tensor::<4>::from_data(
        TensorData::new(random(5, 2 * SIDE * SIDE * 8), [2, SIDE, SIDE, 8]),
        &Device::flex(),
    );
    let unrelated = on_waves(&transforms(), |_| vec![("pattern", pattern.clone())]);
    assert!((1.2..2.9).contains(&unrelated[0].error), "{unrelated:?}");
    // A mean that all positions share does not hide it from the centred error.
    let lifted = on_waves(&transforms(), |_| vec![("lifted", pattern.clone() + 5.0)]);
    assert!(lifted[0].error < 0.09 && (1.2..2.9).contains(&lifted[0].centred), "{lifted:?}");
}

#[test]
fn a_planted_error_is_found_where_it_is_and_as_large_as_it_is() {
    let half = on_waves(&[rotation(1.0, 180.0)], |x| {
        let [n, h, w, c] = x.dims();
        let left = x.clone().slice([0..n, 0..h, 0..w / 2, 0..c]).sum().into_scalar::<f32>();
        let right = x.clone().slice([0..n, 0..h, w / 2..w, 0..c]).sum().into_scalar::<f32>();
        // A tenth more when the image is the other way round.
        let gain = if left > right { 1.1 } else { 1.0 };
        // One pixel to the right, whichever way the image is turned.
        let moved = x.clone().roll(&[1], &[2]);
        vec![("sound", x.clone() * 2.0), ("gain", x.clone() * gain), ("moved", moved)]
    });
    let error = |name: &str| half.iter().find(|layer| layer.name == name).unwrap().error;
    assert_eq!(error("sound"), 0.0);
    assert!((0.0081..0.0102).contains(&error("gain")), "{}", error("gain"));
    assert!(error("moved") > 0.01, "{}", error("moved"));
    // All positions of the disc take part in a half turn.
    assert!(half[0].compared > 2 * 600, "{}", half[0].compared);
}

/// The layers of the default network with random weights.
fn network(kind: Equivariance, transforms: &[Similarity], noise: bool) -> Vec<LayerError> {
    let device = Device::flex();
    device.seed(4);
    let net = Architecture::Small.config(1, 10).with_equivariance(kind).init(&device).unwrap();
    let images = match noise {
        true => vec![
            Image::new(SIDE, SIDE, 1, random(3, SIDE * SIDE).iter().map(|v| v.abs()).collect())
                .unwrap(),
        ],
        false => vec![image(1), image(2)],
    };
    measure(&Protocol::new(SIDE, SIDE, if noise { 60.0 } else { 14.0 }), transforms, |transform| {
        network_layers(&net, warped(&images, transform, &device)?)
    })
    .unwrap()
}

#[test]
fn rotations_by_90_degrees_are_exact_but_for_rounding() {
    let quarters = [rotation(1.0, 90.0), rotation(1.0, 180.0), rotation(1.0, -90.0)];
    for noise in [false, true] {
        for layer in network(Equivariance::Similarity, &quarters, noise) {
            // On white noise, where poses are read from nothing, rounding shows more.
            let most = if noise { 1e-10 } else { 1e-12 };
            assert!(layer.error <= most, "{layer:?}");
        }
        let plain = network(Equivariance::None, &quarters, noise);
        assert!(plain.iter().all(|layer| layer.error > 0.01), "{plain:?}");
    }
}

#[test]
fn other_rotations_and_scales_have_far_smaller_errors_than_in_a_plain_network() {
    let ours = network(Equivariance::Similarity, &transforms(), false);
    let plain = network(Equivariance::None, &transforms(), false);
    assert_eq!(
        ours.iter().map(|l| l.name.as_str()).collect::<Vec<_>>(),
        ["layers.0", "layers.1", "layers.2", "projection"]
    );
    for (ours, plain) in ours.iter().zip(&plain) {
        assert!(ours.error < 0.01 * plain.error, "{ours:?} {plain:?}");
    }
}

#[test]
fn what_cannot_be_compared_is_named() {
    let device = Device::flex();
    let protocol = Protocol::new(SIDE, SIDE, 14.0);
    let fail = |features: &dyn Fn(&Similarity) -> Result<Vec<NamedFeatures>>| {
        measure(&protocol, &transforms(), features).unwrap_err().to_string()
    };
    let error = fail(&|_| Ok(Vec::new()));
    assert_eq!(error, "equivariance::measure: expected at least 1 feature map, got none");
    let grid = Grid::pixels(8, 8);
    let zeros = |shape| Tensor::zeros(shape, &device);
    let error = fail(&|_| Ok(vec![named("a", zeros([1, 9, 8, 1]), grid)]));
    assert_eq!(error, "equivariance::measure: expected a of 8 x 8, got 9 x 8");
    // A grid in the corner, outside of the disc.
    let error = fail(&|_| Ok(vec![named("a", zeros([1, 8, 8, 1]), grid)]));
    assert!(error.contains("expected positions that stay on the grid"), "{error}");
    let error = warped(&[], &Similarity::IDENTITY, &device).unwrap_err().to_string();
    assert_eq!(error, "equivariance::warped: expected at least 1 image, got none");
    let sizes = [image(1), Image::zeros(4, 4, 1).unwrap()];
    assert!(warped(&sizes, &Similarity::IDENTITY, &device).is_err());
}
