//! MNIST's idx files: as they are, and with a header that matches their length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sren_data::Idx;

fuzz_target!(|bytes: &[u8]| {
    for rank in 0..4 {
        let _ = Idx::parse("idx", bytes, rank);
    }
    let mut whole = vec![0, 0, 8, 1];
    whole.extend((bytes.len() as u32).to_be_bytes());
    whole.extend(bytes);
    assert_eq!(Idx::parse("idx", &whole, 1).unwrap().values(), bytes);
});
