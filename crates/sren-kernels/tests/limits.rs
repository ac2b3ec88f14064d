//! Sizes near the limits of `usize` return errors: no product of them wraps.

use sren_kernels::{SimConv, TapTable};
use sren_math::Grid;

/// 4 pixels of `2^62 + 1` channels are `2^64 + 4` values, which wraps to 4. With unchecked lengths a
/// safe call passes every check and reads far behind the input.
#[test]
fn a_channel_number_that_wraps_is_an_error() {
    let channels = (1usize << 62) + 1;
    let input = Grid::pixels(2, 2);
    let output = Grid { origin: [0.5, 0.5], ..input };
    let taps = TapTable::plain(1, &input, &output, 1).unwrap();
    let forward = SimConv::new(channels, 4, false)
        .and_then(|conv| conv.forward(&taps, &[1.0; 4], &[1.0; 4], None));
    assert!(forward.is_err());
}
