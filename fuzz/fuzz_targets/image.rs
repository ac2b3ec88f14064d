//! Images as a folder has them: decoded and letterboxed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sren_data::{Letterbox, decode_image};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(image) = decode_image("image", bytes) {
        let letterbox = Letterbox { side: 48, channels: 3, mean_colour: true };
        assert_eq!(letterbox.bytes(&image).unwrap().len(), 48 * 48 * 3);
    }
});
