//! Random numbers of training. A draw follows from the seed, the epoch and its purpose alone, not
//! from previous draws: training may stop and resume anywhere.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Streams of one seed: each purpose has its own. Those of [`Augmentation`](crate::Augmentation)
/// begin at 0, one per image.
pub(crate) const SPLIT_STREAM: u64 = u64::MAX;
pub(crate) const ORDER_STREAM: u64 = u64::MAX - 1;
/// The first of pose jitter, one per image,
pub(crate) const JITTER_STREAMS: u64 = 1 << 63;
/// of the augmentation of photographs,
pub(crate) const PHOTO_STREAMS: u64 = 1 << 62;
/// of the classes of a folder,
pub(crate) const FOLDER_STREAMS: u64 = 1 << 61;
/// of positions.
pub(crate) const POSITION_STREAMS: u64 = 1 << 60;

/// The generator of a stream in an epoch.
pub(crate) fn generator(seed: u64, epoch: usize, stream: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed.rotate_left(32) ^ epoch as u64);
    random.set_stream(stream);
    random
}

/// Shuffles by Fisher and Yates.
pub(crate) fn shuffle(items: &mut [usize], random: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.random_range(0..=last));
    }
}
