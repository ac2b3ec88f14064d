//! Sizes near the limits of `usize` return errors: no product of them wraps.

use proptest::prelude::*;
use sren_kernels::norm::BatchNorm;
use sren_kernels::pool::GlobalPool;
use sren_kernels::pose::{Images, PosePlan};
use sren_kernels::{PoseField, SimConv, TapTable, patches};
use sren_math::{Grid, PoseParams, PoseSpec};

/// 4 pixels of `2^62 + 1` channels are `2^64 + 4` values, which wraps to 4. With unchecked lengths a
/// safe call passes every check and reads far behind the input.
#[test]
fn a_channel_number_that_wraps_is_an_error() {
    let channels = (1usize << (usize::BITS - 2)) + 1;
    let input = Grid::pixels(2, 2);
    let output = Grid { origin: [0.5, 0.5], ..input };
    let taps = TapTable::plain(1, &input, &output, 1).unwrap();
    let forward = SimConv::new(channels, 4, false)
        .and_then(|conv| conv.forward(&taps, &[1.0; 4], &[1.0; 4], None));
    assert!(forward.is_err());
    // 3 (2^64 / 3 + 1) wraps to 2.
    assert!(SimConv::new(usize::MAX / 3 + 1, 1, true).is_err());
    assert!(patches(&taps, &[1.0; 4], channels).is_err());
}

/// Sizes around powers of two and the limits of the address space, and small ones.
fn size() -> impl Strategy<Value = usize> {
    let around = (16u32..usize::BITS, 0usize..3)
        .prop_map(|(bit, below)| (1usize << bit).wrapping_add(1).wrapping_sub(below));
    let limits = prop_oneof![Just(usize::MAX), Just(isize::MAX as usize), Just(usize::MAX / 3 + 1)];
    prop_oneof![0usize..9, around, limits]
}

fn product(sizes: &[usize]) -> Option<u128> {
    sizes.iter().try_fold(1u128, |product, size| product.checked_mul(*size as u128))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lengths_of_a_convolution_are_exact_or_errors(
        c_in in size(), c_out in size(), kernel_size in size(), relative_pose: bool,
        batch in 0usize..5, side in 1usize..5,
    ) {
        let Ok(conv) = SimConv::new(c_in, c_out, relative_pose) else {
            prop_assert!(c_in == 0 || c_out == 0 || c_in.max(c_out) > 1 << 20);
            return Ok(());
        };
        if let Ok(len) = conv.weight_len(kernel_size) {
            let exact = product(&[kernel_size, kernel_size, conv.tap_width(), c_out]);
            prop_assert_eq!(Some(len as u128), exact);
        }
        let grid = Grid::pixels(side, side);
        let taps = TapTable::plain(batch, &grid, &grid, 3).unwrap();
        for (len, channels) in [(conv.input_len(&taps), c_in), (conv.output_len(&taps), c_out)] {
            prop_assert_eq!(len.ok().map(|n| n as u128), product(&[batch, side, side, channels]));
        }
    }

    /// Calls with short slices: they end in an error or have the exact lengths.
    #[test]
    fn short_slices_are_errors(
        c_in in size(), c_out in size(), relative_pose: bool, radius in 0usize..3,
        input in 0usize..40, weight in 0usize..40, grad in 0usize..40,
    ) {
        let grid = Grid::pixels(2, 2);
        let field = PoseField::identity(grid, 1).unwrap();
        let kernel_size = 2 * radius + 1;
        let taps = TapTable::new(&field, &grid, kernel_size, 0.9, false).unwrap();
        let taps = taps.with_input_poses(&field).unwrap();
        let exact = |sizes: &[usize], len: usize| product(sizes) == Some(len as u128);
        let blocks = if relative_pose { 3 } else { 1 };
        let good = exact(&[4, c_in], input)
            && exact(&[kernel_size, kernel_size, blocks, c_in, c_out], weight)
            && c_in > 0 && c_out > 0;
        let (x, w, g) = (vec![1.0; input], vec![1.0; weight], vec![1.0; grad]);
        let conv = SimConv::new(c_in, c_out, relative_pose);
        let forward = conv.clone().and_then(|conv| conv.forward(&taps, &x, &w, None));
        prop_assert_eq!(forward.is_ok(), good);
        let backward = conv.and_then(|conv| conv.backward(&taps, &x, &w, &g, true));
        prop_assert_eq!(backward.is_ok(), good && exact(&[4, c_out], grad));
        prop_assert_eq!(patches(&taps, &x, c_in).is_ok(), exact(&[4, c_in], input) && c_in > 0);
    }

    #[test]
    fn fields_images_and_pools_of_another_size_are_errors(
        [batch, height, width, last] in [size(), size(), size(), size()],
        len in 0usize..9,
    ) {
        let exact = |sizes: &[usize]| product(sizes) == Some(len as u128);
        let values = || vec![1.0; len];
        let grid = Grid::pixels(height, width);
        let field = PoseField::new(grid, batch, last, values(), values(), values(), values());
        prop_assert!(field.is_err() || exact(&[batch, height, width]));
        prop_assert!(Images::new(&values(), batch, height, width, last).is_err() || len == 0);
        if let Ok(pool) = GlobalPool::new(batch, height, last) {
            prop_assert_eq!(pool.max(&values()).is_ok(), exact(&[batch, height, last]));
        }
        if let Ok(taps) = TapTable::plain(batch, &grid, &grid, 1) {
            prop_assert!(product(&[batch, height, width]).unwrap() < 1 << 31);
            prop_assert_eq!(taps.input_grid().len(), height * width);
        }
    }

    #[test]
    fn batch_norm_with_many_channels_does_not_wrap(channels in size(), len in 0usize..70) {
        if let Ok(norm) = BatchNorm::new(channels, 1e-5, false) {
            let statistics = norm.statistics(&vec![1.0; len], None);
            prop_assert_eq!(statistics.is_ok(), len.is_multiple_of(channels));
        } else {
            prop_assert!(channels == 0 || channels > 1 << 20);
        }
    }
}

#[test]
fn sizes_that_wrap_to_small_numbers_are_errors() {
    let quarter = 1usize << (usize::BITS - 2);
    let grid = Grid::pixels(2, 2);
    let (none, four) = (Vec::new, || vec![1.0; 4]);
    assert!(PoseField::new(grid, quarter, 1, none(), none(), none(), none()).is_err());
    assert!(PoseField::new(grid, quarter + 1, 1, four(), four(), four(), four()).is_err());
    assert!(PoseField::identity(grid, quarter).is_err());
    assert!(PoseField::identity(Grid::pixels(quarter, 4), 1).is_err());
    // 8 * 8 * 2^58 wraps to 0.
    assert!(Images::new(&[], 1 << (usize::BITS - 6), 8, 8, 1).is_err());
    assert!(Images::new(&[], 1, 8, 8, 1 << (usize::BITS - 6)).is_err());
    assert!(GlobalPool::new(quarter, 4, 1).is_err());
    assert!(TapTable::plain(quarter, &grid, &grid, 3).is_err());
    assert!(TapTable::plain(0, &Grid::pixels(1 << 24, 1 << 24), &grid, 3).is_err());
}

#[test]
fn pose_plans_have_a_largest_reach() {
    let spec = |outer| PoseSpec::new(PoseParams { outer, ..PoseParams::default() }).unwrap();
    let grid = Grid::pixels(1, 1);
    assert!(PosePlan::new(spec(34.0), grid).is_ok());
    assert!(PosePlan::new(spec(1e300), grid).is_err());
    assert!(PosePlan::new(spec(34.0), Grid { step: 1e300, ..grid }).is_err());
    assert!(PosePlan::new(spec(34.0), Grid { step: f64::NAN, ..grid }).is_err());
    assert!(PosePlan::new(spec(34.0), Grid { origin: [f64::NAN, 0.0], ..grid }).is_err());
}
