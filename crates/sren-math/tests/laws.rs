//! The laws that everything else rests on: Sim(2) is a group, L_T is its action on images, the
//! representation is exact on band-limited functions and steering is a similarity.

use num_complex::Complex64;
use proptest::prelude::*;
use sren_math::{About, Annulus, FourierArgand, Image, Interpolation, Similarity, warp};

fn similarity() -> impl Strategy<Value = Similarity> {
    (-1.5..1.5f64, -10.0..10.0f64, -50.0..50.0f64, -50.0..50.0f64)
        .prop_map(|(ln_s, angle, x, y)| Similarity::new(ln_s.exp(), angle, [x, y]).unwrap())
}

fn close(a: [f64; 2], b: [f64; 2]) -> bool {
    (a[0] - b[0]).hypot(a[1] - b[1]) < 1e-9 * (1.0 + a[0].hypot(a[1]))
}

proptest! {
    #[test]
    fn sim2_is_a_group(s in similarity(), t in similarity(), u in similarity(), x in -9.0..9.0, y in -9.0..9.0) {
        let p = [x, y];
        prop_assert!(close(s.compose(&t).apply(p), s.apply(t.apply(p))));
        prop_assert!(close(s.compose(&t).compose(&u).apply(p), s.compose(&t.compose(&u)).apply(p)));
        prop_assert!(close(s.compose(&s.inverse()).apply(p), p));
        prop_assert!(close(s.inverse().apply(s.apply(p)), p));
        prop_assert_eq!(s.compose(&Similarity::IDENTITY), s);
        let back = Similarity::from_matrix(s.to_matrix()).unwrap();
        prop_assert!(close(back.apply(p), s.apply(p)));
        prop_assert!(close(s.about(p).apply(p), [x + s.translation()[0], y + s.translation()[1]]));
    }

    #[test]
    fn coefficients_of_a_band_limited_function_come_back(
        values in proptest::collection::vec((-1.0..1.0f64, -1.0..1.0f64), 35),
        a in 0.3..2.0f64, ratio in 2.0..60.0f64, m in -2.5..1.0f64,
        angle in -4.0..4.0f64, shift in -0.5..0.5f64, r_at in 0.0..1.0f64, theta in -4.0..4.0f64,
    ) {
        let annulus = Annulus::new(a, a * ratio).unwrap();
        let coefficients: Vec<_> = values.iter().map(|(re, im)| Complex64::new(*re, *im)).collect();
        let h = FourierArgand::new(annulus, m, [2, 3], coefficients).unwrap();
        let back = FourierArgand::analyse(annulus, m, [2, 3], |r, th| h.evaluate(r, th)).unwrap();
        for k1 in -2..=2 {
            for k2 in -3..=3 {
                prop_assert!((back.coefficient(k1, k2) - h.coefficient(k1, k2)).norm() < 1e-10);
            }
        }
        prop_assert!(h.truncation_error(|r, th| h.evaluate(r, th)) < 1e-10);

        // Steering is the transformed function where nothing wraps around ...
        let scale = (shift * annulus.period()).exp();
        let steered = h.steered(scale, angle).unwrap();
        let r = a * (0.999 * r_at * annulus.period()).exp();
        let weight = r.powf(m).max((r / scale).powf(m));
        let got = steered.evaluate(r, theta);
        let source = r / scale;
        // ... and the cyclic copy, weighted by (r / scale)^m, where it does.
        let periods = ((source / a).ln() / annulus.period()).floor();
        let wrapped = source / (periods * annulus.period()).exp();
        let expected = h.evaluate(wrapped, theta - angle) * (source / wrapped).powf(m);
        if annulus.contains(source) {
            prop_assert!((got - h.evaluate(source, theta - angle)).norm() < 1e-10 * weight.max(1.0));
        } else {
            prop_assert!(periods != 0.0);
        }
        if annulus.contains(wrapped) {
            prop_assert!((got - expected).norm() < 1e-9 * weight.max(1.0));
        }
    }
}

#[test]
fn terms_beyond_the_order_are_the_truncation_error() {
    let annulus = Annulus::new(1.0, 10.0).unwrap();
    let h = |_: f64, theta: f64| Complex64::from(3.0 + 4.0 * 2f64.sqrt() * (5.0 * theta).cos());
    let truncated = FourierArgand::analyse(annulus, 0.0, [2, 2], h).unwrap();
    assert!((truncated.truncation_error(h) - 0.8).abs() < 1e-12);
}

/// A smooth image that is black near its border.
fn blob() -> Image {
    Image::from_fn(64, 64, |x, y| {
        let (u, v) = (x - 34.0, y - 29.0);
        (-(u * u + 2.0 * v * v + u * v) / 60.0).exp() * (1.2 + (u / 5.0).sin())
    })
    .unwrap()
}

fn distance(a: &Image, b: &Image) -> f64 {
    let norm = |v: f64| v * v;
    let pairs = || a.data().iter().zip(b.data());
    let difference: f64 = pairs().map(|(a, b)| norm(f64::from(a - b))).sum();
    (difference / pairs().map(|(a, _)| norm(f64::from(*a))).sum::<f64>()).sqrt()
}

#[test]
fn the_action_composes() {
    let image = blob();
    let s = Similarity::new(0.8, 0.7, [2.0, -1.5]).unwrap();
    let t = Similarity::new(1.3, -1.9, [-1.0, 3.0]).unwrap();
    for about in [About::Centre, About::Origin] {
        let s = if about == About::Origin { s.about(image.centre()) } else { s };
        let t = if about == About::Origin { t.about(image.centre()) } else { t };
        let act = |f: &Image, t: &Similarity| warp(f, t, about, Interpolation::Cubic);
        assert!(distance(&act(&image, &s.compose(&t)), &act(&act(&image, &t), &s)) < 5e-3);
        assert!(distance(&image, &act(&act(&image, &t), &t.inverse())) < 5e-3);
        // The order matters, so the test above can fail.
        assert!(distance(&act(&image, &t.compose(&s)), &act(&act(&image, &t), &s)) > 5e-2);
    }
}

#[test]
fn rotations_by_90_degrees_and_translations_by_pixels_are_exact() {
    let image = Image::from_fn(6, 6, |x, y| x + 10.0 * y + 1.0).unwrap();
    let rotation = Similarity::new(1.0, std::f64::consts::FRAC_PI_2, [0.0; 2]).unwrap();
    let step = Similarity::new(1.0, 0.0, [1.0, -2.0]).unwrap();
    for how in [Interpolation::Bilinear, Interpolation::Cubic] {
        let rotated = warp(&image, &rotation, About::Centre, how);
        let shifted = warp(&image, &step, About::Origin, how);
        for y in 0..6usize {
            for x in 0..6usize {
                // x axis to y axis: pixel (x, y) of the image arrives at (5 - y, x).
                assert_eq!(rotated.data()[x * 6 + 5 - y], image.data()[y * 6 + x]);
                let source =
                    if x >= 1 && y + 2 < 6 { image.data()[(y + 2) * 6 + x - 1] } else { 0.0 };
                assert_eq!(shifted.data()[y * 6 + x], source);
            }
        }
    }
}

#[test]
fn cubic_is_exact_on_quadratics_and_channels_do_not_mix() {
    let half = Similarity::new(1.0, 0.0, [0.5, 0.25]).unwrap();
    let f = |x: f64, y: f64| 0.1 * x * x + 0.2 * x * y - 0.05 * y * y;
    let data = (0..100).flat_map(|i| [f((i % 10) as f64, (i / 10) as f64) as f32, 7.0]).collect();
    let image = Image::new(10, 10, 2, data).unwrap();
    let moved = warp(&image, &half, About::Origin, Interpolation::Cubic);
    for y in 3..7usize {
        for x in 3..7usize {
            let pixel = &moved.data()[2 * (y * 10 + x)..][..2];
            assert!((f64::from(pixel[0]) - f(x as f64 - 0.5, y as f64 - 0.25)).abs() < 1e-4);
            assert!((pixel[1] - 7.0).abs() < 1e-5);
        }
    }
}
