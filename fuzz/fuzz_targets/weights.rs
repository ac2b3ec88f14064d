//! Weights in the safetensors format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sren::Weights;

fuzz_target!(|bytes: &[u8]| {
    let _ = Weights::from_bytes(bytes);
});
