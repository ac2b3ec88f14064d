//! Training configurations in TOML, and the network that one describes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sren_lab::training::TrainingConfig;

fuzz_target!(|text: &str| {
    if let Ok(config) = TrainingConfig::parse("config.toml", text) {
        let _ = config.network();
    }
});
