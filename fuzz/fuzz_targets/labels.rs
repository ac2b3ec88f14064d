//! STL-10's files: labels as they are, images as they are and continued to one whole image.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sren_data::stl10;

fuzz_target!(|bytes: &[u8]| {
    let _ = stl10::parse_labels("train_y.bin", bytes);
    let _ = stl10::parse_images("train_X.bin", bytes);
    let whole = stl10::SIDE * stl10::SIDE * 3;
    let image: Vec<u8> = bytes.iter().copied().cycle().take(whole).collect();
    assert_eq!(stl10::parse_images("train_X.bin", &image).is_ok(), !bytes.is_empty());
});
