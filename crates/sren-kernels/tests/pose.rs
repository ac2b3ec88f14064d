//! The fast pose estimator against the f64 reference, and the equivariance lemma.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use sren_kernels::pose::{Images, PosePlan};
use sren_kernels::{PoseField, Result};
use sren_math::{
    About, Grid, Image, Interpolation, PoseParams, PoseSpec, PoseTemplate, Similarity, read_pose,
    warp, wrap_angle,
};

/// A few soft blobs and bars, different for every seed.
fn scene(side: usize, seed: usize) -> Image {
    let s = side as f64;
    let at = |i: usize| ((seed * 7 + i * 13 + i * i * 5) % 17) as f64 / 17.0;
    Image::from_fn(side, side, |x, y| {
        (0..5)
            .map(|i| {
                let (u, v) = (x - s * (0.25 + 0.5 * at(i)), y - s * (0.25 + 0.5 * at(i + 5)));
                let (sin, cos) = (TAU * at(i + 9)).sin_cos();
                let (u, v) = (u * cos + v * sin, v * cos - u * sin);
                let width = s / 40.0 * (1.0 + 2.0 * at(i + 3));
                (-(u * u / 9.0 + v * v) / (2.0 * width * width)).exp()
            })
            .sum::<f64>()
            .min(1.5)
    })
    .unwrap()
}

fn estimate(params: PoseParams, image: &Image, stride: usize) -> Result<PoseField> {
    let (height, width) = (image.height(), image.width());
    let grid = Grid::pixels(height, width).cell_centred(stride)?;
    let images = Images::new(image.data(), 1, height, width, image.channels())?;
    PosePlan::new(PoseSpec::new(params)?, grid)?.estimate(&images)
}

/// Every pose of the field agrees with the reference to 1e-4.
fn assert_agrees(params: PoseParams, image: &Image, stride: usize) {
    let spec = PoseSpec::new(params.clone()).unwrap();
    let field = estimate(params, image, stride).unwrap();
    let (grid, poses) = (*field.grid(), field.poses());
    let (mut compared, mut different) = (0, 0);
    for at in 0..grid.len() {
        let (readings, confidence) =
            read_pose(&spec, image, grid.point(at / grid.width, at % grid.width));
        let mut same = (f64::from(field.confidence()[at]) - confidence).abs() < 1e-3;
        for (j, reading) in readings.iter().enumerate() {
            let i = at * poses + j;
            let d_scale = (f64::from(field.scale()[i]) / reading.pose.scale).ln();
            let d_angle = wrap_angle(f64::from(field.angle()[i]) - reading.pose.angle);
            same &= d_scale.abs() < 1e-4 && d_angle.abs() < 1e-4;
            same &= (f64::from(field.weight()[i]) - reading.weight).abs() < 1e-3;
        }
        if confidence > 0.0 {
            compared += 1;
            different += usize::from(!same);
        }
    }
    assert!(compared > 20, "only {compared} confident positions");
    assert_eq!(different, 0, "of {compared} confident positions");
}

#[test]
fn agrees_with_the_reference() {
    for stride in [1, 2, 3] {
        assert_agrees(PoseParams::default(), &scene(40, stride), stride);
    }
}

#[test]
fn agrees_with_the_reference_for_every_option() {
    let image = scene(36, 5);
    let template = PoseTemplate::default;
    for template in [
        PoseTemplate { q: 0.3, tau: 0.27, ..template() },
        PoseTemplate { radial_order: Some(6), ..template() },
        PoseTemplate { angular: vec![(1, 1.0), (2, 0.4), (3, -0.3)], ..template() },
    ] {
        assert_agrees(PoseParams { template, ..PoseParams::default() }, &image, 2);
    }
    let odd_size = Image::from_fn(33, 47, |x, y| (0.3 * x).sin() * (0.2 * y).cos()).unwrap();
    assert_agrees(PoseParams::default(), &odd_size, 2);
    assert_agrees(PoseParams { outer: 60.0, rings: 50, ..PoseParams::default() }, &image, 1);
}

#[test]
fn rare_poses_come_with_weights_that_agree() {
    // The second of two poses may come and go by rounding; where both are firm they agree.
    let params = PoseParams { poses: 2, ..PoseParams::default() };
    let field = estimate(params, &scene(40, 3), 1).unwrap();
    let two: Vec<_> = field.weight().chunks_exact(2).filter(|w| w[1] > 0.0).collect();
    assert!(two.len() > 50, "{}", two.len());
    assert!(two.iter().all(|w| w[0] >= w[1] && (w[0] + w[1] - 1.0).abs() < 1e-5));
}

#[test]
fn a_90_degree_rotation_rotates_the_field() {
    let rotation = Similarity::new(1.0, FRAC_PI_2, [0.0; 2]).unwrap();
    for (side, stride) in [(40, 1), (40, 2), (48, 4)] {
        let image = scene(side, 2);
        let rotated = warp(&image, &rotation, About::Centre, Interpolation::Bilinear);
        let before = estimate(PoseParams::default(), &image, stride).unwrap();
        let after = estimate(PoseParams::default(), &rotated, stride).unwrap();
        let n = before.grid().width;
        let mut confident = 0;
        for row in 0..n {
            for column in 0..n {
                let (a, b) = (row * n + column, column * n + n - 1 - row);
                // Equal bit by bit, except for the rounding of angles.
                assert_eq!(before.confidence()[a], after.confidence()[b]);
                if before.confidence()[a] > 0.0 {
                    confident += 1;
                    assert_eq!(before.scale()[a], after.scale()[b]);
                    let d_angle = f64::from(after.angle()[b] - before.angle()[a]) - FRAC_PI_2;
                    assert!(wrap_angle(d_angle).abs() < 1e-6, "{d_angle}");
                }
            }
        }
        assert!(confident > n, "{confident}");
    }
}

#[test]
fn reads_the_direction_and_relative_size_of_an_edge_and_a_blob() {
    // A blob of width 3 seen from its side: the bright side is towards its centre.
    let blob = |width: f64| {
        Image::from_fn(80, 80, move |x, y| {
            let d = (x - 39.5).powi(2) + (y - 39.5).powi(2);
            (-d / (2.0 * width * width)).exp()
        })
        .unwrap()
    };
    let spec = PoseSpec::new(PoseParams::default()).unwrap();
    let mut scales = Vec::new();
    for width in [3.0, 6.0] {
        for direction in [0.0, 1.0, 2.5, -2.0f64] {
            let at = [39.5 - 2.0 * width * direction.cos(), 39.5 - 2.0 * width * direction.sin()];
            let (readings, confidence) = read_pose(&spec, &blob(width), at);
            assert!(confidence > 0.5, "{confidence}");
            assert!(wrap_angle(readings[0].pose.angle - direction).abs() < 0.01);
            scales.push(readings[0].pose.scale);
        }
    }
    assert!((scales[4] / scales[0] / 2.0).ln().abs() < 0.01, "{scales:?}");
}

#[test]
fn the_lemma_holds_for_similarities_of_a_scene() {
    let image = scene(96, 4);
    let spec = PoseSpec::new(PoseParams::default()).unwrap();
    let field = estimate(PoseParams::default(), &image, 4).unwrap();
    let (mut confident, mut ok) = (0, 0);
    for (scale, angle) in [(1.0, 0.6), (1.3, -2.0), (0.8, PI), (0.75, 1.1)] {
        let t = Similarity::new(scale, angle, [0.0; 2]).unwrap();
        let moved = warp(&image, &t, About::Centre, Interpolation::Bilinear);
        let full = t.about(image.centre());
        for at in 0..field.grid().len() {
            let point = field.grid().point(at / field.grid().width, at % field.grid().width);
            let inside = point.iter().all(|v| (24.0..72.0).contains(v));
            if inside && field.confidence()[at] > 0.0 {
                let pose = read_pose(&spec, &moved, full.apply(point)).0[0].pose;
                let d_scale = (pose.scale / scale / f64::from(field.scale()[at])).ln();
                let d_angle = wrap_angle(pose.angle - angle - f64::from(field.angle()[at]));
                confident += 1;
                ok += usize::from(d_scale.abs() < 0.1 && d_angle.abs().to_degrees() < 10.0);
            }
        }
    }
    assert!(confident > 200, "{confident}");
    assert!(ok as f64 > 0.95 * confident as f64, "{ok} of {confident}");
}

#[test]
fn with_the_literal_weight_of_the_paper_most_pixels_have_no_pose() {
    let params = PoseParams { template: PoseTemplate::paper(), ..PoseParams::default() };
    let part = |params: PoseParams| {
        let field = estimate(params, &scene(56, 1), 1).unwrap();
        field.confidence().iter().filter(|c| **c > 0.0).count()
    };
    assert!(4 * part(params) < part(PoseParams::default()));
}

#[test]
fn the_smallest_and_the_largest_images_are_valid() {
    for (height, width, stride) in [(8, 8, 1), (8, 2048, 4), (2048, 9, 8)] {
        let image =
            Image::from_fn(height, width, |x, y| (0.9 * x).sin() * (0.7 * y).cos()).unwrap();
        let field = estimate(PoseParams::default(), &image, stride).unwrap();
        assert_eq!(field.grid().len(), height.div_ceil(stride) * width.div_ceil(stride));
        assert!(field.confidence().iter().any(|c| *c > 0.0));
        assert!(field.scale().iter().chain(field.angle()).all(|v| v.is_finite()));
    }
}

#[test]
fn flat_images_have_no_pose_and_no_nan() {
    for value in [0.0, 0.3, 1.0] {
        let image = Image::from_fn(24, 24, |_, _| value).unwrap();
        let field = estimate(PoseParams::default(), &image, 1).unwrap();
        assert!(field.scale().iter().chain(field.angle()).all(|v| v.is_finite()));
        assert!(field.confidence().iter().all(|c| *c == 0.0));
    }
}

#[test]
fn colour_is_read_as_luminance_and_batches_image_by_image() {
    let (a, b) = (scene(32, 1), scene(32, 2));
    let colour: Vec<f32> =
        [&a, &b].iter().flat_map(|image| image.data().iter().flat_map(|v| [*v, *v, *v])).collect();
    let grid = Grid::pixels(32, 32).cell_centred(2).unwrap();
    let plan = PosePlan::new(PoseSpec::new(PoseParams::default()).unwrap(), grid).unwrap();
    let both = plan.estimate(&Images::new(&colour, 2, 32, 32, 3).unwrap()).unwrap();
    let second = plan.estimate(&Images::new(b.data(), 1, 32, 32, 1).unwrap()).unwrap();
    let n = grid.len();
    let agree = (0..n)
        .filter(|i| second.confidence()[*i] > 0.0)
        .all(|i| (both.scale()[n + i] / second.scale()[i] - 1.0).abs() < 1e-3);
    assert!(agree);
}

#[test]
fn errors_name_wrong_input() {
    let message = |params: PoseParams| PoseSpec::new(params).unwrap_err().to_string();
    let good = PoseParams::default;
    for (params, expected) in [
        (PoseParams { inner: 9.0, outer: 4.0, ..good() }, "inner radius a < outer radius b"),
        (PoseParams { min_scale: 5.0, max_scale: 5.0, ..good() }, "min_scale < max_scale"),
        (PoseParams { min_scale: f64::NAN, ..good() }, "min_scale < max_scale"),
        (PoseParams { scales: 2, ..good() }, "at least 4 rings and 3 scales"),
        (PoseParams { poses: 0, ..good() }, "at least 1 pose"),
        (PoseParams { spacing: 0.0, ..good() }, "a sample spacing > 0"),
        (
            PoseParams { template: PoseTemplate { tau: 0.0, ..PoseTemplate::default() }, ..good() },
            "a width tau > 0",
        ),
        (
            PoseParams {
                template: PoseTemplate { angular: vec![], ..PoseTemplate::default() },
                ..good()
            },
            "angular harmonics",
        ),
    ] {
        assert!(message(params).contains(expected));
    }
    let pixels = vec![0.0; 64];
    assert!(Images::new(&pixels, 1, 1, 1, 1).is_err());
    assert!(Images::new(&pixels, 1, 0, 0, 1).is_err());
    assert!(Images::new(&pixels, 1, 8, 9, 1).is_err());
    assert!(Images::new(&[], 1, 4096, 8, 1).is_err());
    let mut broken = pixels.clone();
    broken[17] = f32::NAN;
    let error = Images::new(&broken, 1, 8, 8, 1).unwrap_err().to_string();
    assert_eq!(error, "Images: expected finite pixels, got NaN in image 0, row 2, column 1");
    let plan = PosePlan::new(PoseSpec::new(good()).unwrap(), Grid::pixels(16, 16)).unwrap();
    assert!(plan.estimate(&Images::new(&pixels, 1, 8, 8, 1).unwrap()).is_err());
    let half = Grid { step: 0.5, ..Grid::pixels(8, 8) };
    assert!(PosePlan::new(PoseSpec::new(good()).unwrap(), half).is_err());
}
