//! Sizes near the limits of `usize` return errors: no product of them wraps.

use num_complex::Complex64;
use proptest::prelude::*;
use sren_math::{
    Annulus, FourierArgand, Grid, Image, PoseParams, PoseSpec, PoseTemplate, element_count,
};

/// Sizes around powers of two and the limits of the address space, and small ones.
fn size() -> impl Strategy<Value = usize> {
    let around = (20u32..usize::BITS, 0usize..3)
        .prop_map(|(bit, below)| (1usize << bit).wrapping_add(1).wrapping_sub(below));
    let limits = prop_oneof![Just(usize::MAX), Just(isize::MAX as usize), Just(usize::MAX / 3 + 1)];
    prop_oneof![0usize..9, around, limits]
}

proptest! {
    #[test]
    fn element_counts_are_exact_or_errors(shape in [size(), size(), size(), size()]) {
        let exact = shape.iter().try_fold(1u128, |n, s| n.checked_mul((*s).max(1) as u128));
        let fits = exact.is_some_and(|n| n <= isize::MAX as u128 / 4);
        let count = element_count("test", &shape);
        prop_assert_eq!(count.is_ok(), fits);
        if let Ok(count) = count {
            prop_assert_eq!(count as u128, if shape.contains(&0) { 0 } else { exact.unwrap() });
        }
    }

    #[test]
    fn an_image_of_another_size_is_an_error(
        [height, width, channels] in [size(), size(), size()],
        len in 0usize..9,
    ) {
        let exact = [height, width, channels].iter().try_fold(1u128, |n, s| n.checked_mul(*s as u128));
        let image = Image::new(height, width, channels, vec![0.0; len]);
        prop_assert_eq!(image.is_ok(), exact == Some(len as u128) && len > 0);
    }

    #[test]
    fn the_length_of_a_grid_does_not_wrap(height in size(), width in size()) {
        let exact = height as u128 * width as u128;
        let len = Grid::pixels(height, width).len();
        prop_assert_eq!(len as u128, exact.min(usize::MAX as u128));
    }
}

/// Products that wrap to 0, 1 or 4 in 64 bits.
#[test]
fn sizes_that_wrap_to_small_numbers_are_errors() {
    let half = 1usize << (usize::BITS - 2);
    for (shape, len) in [([half, 4, 1], 0), ([half + 1, 4, 1], 4), ([2, 2, half + 1], 4)] {
        let [height, width, channels] = shape;
        assert!(Image::new(height, width, channels, vec![0.0; len]).is_err(), "{shape:?}");
        assert!(Image::zeros(height, width, channels).is_err(), "{shape:?}");
    }
    assert!(Image::from_fn(half + 1, 4, |_, _| 0.0).is_err());
    let image = Image::zeros(2, 2, 1).unwrap();
    assert!(image.padded(half + 1, 4).is_err());
}

#[test]
fn orders_and_counts_have_upper_bounds() {
    let annulus = Annulus::new(1.0, 10.0).unwrap();
    let one = vec![Complex64::ONE];
    for order in [1usize << (usize::BITS - 1), usize::MAX, usize::MAX / 2, 1025] {
        // 2 * 2^63 + 1 wraps to the one coefficient that is given.
        assert!(FourierArgand::new(annulus, 0.0, [order, 0], one.clone()).is_err());
        assert!(FourierArgand::new(annulus, 0.0, [0, order], one.clone()).is_err());
        assert!(FourierArgand::analyse(annulus, 0.0, [0, order], |_, _| Complex64::ONE).is_err());
        assert!(PoseTemplate::default().fourier_argand(annulus, order).is_err());
        let good = PoseParams::default;
        let radial = PoseTemplate { radial_order: Some(order), ..PoseTemplate::default() };
        for params in [
            PoseParams { rings: order, ..good() },
            PoseParams { scales: order, ..good() },
            PoseParams { poses: order, ..good() },
            PoseParams { max_samples: 64 * order.min(usize::MAX / 64), ..good() },
            PoseParams { template: radial, ..good() },
        ] {
            assert!(PoseSpec::new(params).is_err(), "{order}");
        }
    }
    let fast = PoseTemplate { angular: vec![(u32::MAX, 1.0)], ..PoseTemplate::default() };
    assert!(fast.check().is_err());
    let h = FourierArgand::new(annulus, 0.0, [0, 0], one).unwrap();
    assert_eq!(h.coefficient(i64::MIN, i64::MIN), Complex64::ZERO);
}
