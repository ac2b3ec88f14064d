//! Files of someone else: any bytes give an answer or an error, never a panic, a hang or a huge
//! allocation. Every file of `corpus` is read as it is and with thousands of small damages.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::{Tensor, TensorData};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sren::models::parameter_count;
use sren::{Image, Similarity, Weights};
use sren_data::{Idx, decode_image, stl10};
use sren_lab::inference_device;
use sren_lab::training::TrainingConfig;

/// Damaged copies of each file, for what is read fast
const COPIES: usize = 400;
/// and slowly.
const FEW_COPIES: usize = 100;
/// No file here is larger than a few kilobytes: nothing that is read from one may ask for more
/// than this at once,
const MAX_REQUEST: usize = 16 << 20;
/// nor an image, whose header may honestly say that it is large.
const MAX_IMAGE_REQUEST: usize = 1 << 30;

/// Notes the largest request.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
/// The tests take turns: they share the note.
static TURN: Mutex<()> = Mutex::new(());

// SAFETY: every request goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the system's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Gives `read` every file of the corpus `name`, and damaged copies, and watches what it asks for.
/// `read` tells whether it took the file; files called good are taken.
fn attack(
    name: &str,
    [limit, copies]: [usize; 2],
    more: Vec<Vec<u8>>,
    read: impl Fn(&[u8]) -> bool,
) {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let mut seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for (file, seed) in files.iter().zip(&seeds) {
        let taken = read(seed);
        assert_eq!(taken, is_good(file), "{}", file.display());
    }
    seeds.extend(more);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    LARGEST.store(0, Ordering::Relaxed);
    for (number, seed) in seeds.iter().enumerate() {
        for copy in 0..copies {
            let bytes = damaged(seed, &seeds, &mut random);
            read(&bytes);
            let largest = LARGEST.load(Ordering::Relaxed);
            assert!(largest <= limit, "{largest} bytes asked for, seed {number}, copy {copy}");
        }
    }
}

/// Whether a file of the corpus is as it should be.
fn is_good(file: &Path) -> bool {
    const GOOD: [&str; 11] = [
        "good",
        "half",
        "not_finite",
        "zero_times_huge",
        "colour",
        "grey",
        "deep_alpha",
        "photographs",
        "digits",
        "template",
        "inner",
    ];
    GOOD.contains(&file.file_stem().unwrap().to_str().unwrap())
}

/// A copy with one to four damages.
fn damaged(seed: &[u8], seeds: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
    const WORDS: [&[u8]; 8] = [
        b"0",
        b"-1",
        b"9999999999",
        b"18446744073709551615",
        b"nan",
        b"[[",
        b"\"",
        b"\xff\xff\xff\xff",
    ];
    let mut bytes = seed.to_vec();
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=bytes.len());
        match random.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = random.random_range(0..=255),
            2 => bytes.truncate(at),
            3 => {
                let word = WORDS[random.random_range(0..WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            4 => {
                let end = (at + random.random_range(0..16)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let other = &seeds[random.random_range(0..seeds.len())];
                let from = random.random_range(0..=other.len());
                let end = (from + random.random_range(0..64)).min(other.len());
                bytes.splice(at..at, other[from..end].iter().copied());
            }
        }
    }
    bytes
}

#[test]
fn weights() {
    attack("weights", [MAX_REQUEST, COPIES], Vec::new(), |bytes| {
        let read = Weights::from_bytes(bytes);
        if let Err(error) = &read {
            let error = error.to_string();
            assert!(error.lines().count() == 1 && error.len() < 600, "{error}");
        }
        read.is_ok()
    });
}

#[test]
fn configs() {
    let device = inference_device();
    attack("config", [MAX_REQUEST, FEW_COPIES], Vec::new(), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let config = match TrainingConfig::parse("config.toml", &text) {
            Ok(config) => config,
            Err(error) => {
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
                return false;
            }
        };
        if config.classes().is_empty() {
            return true;
        }
        let Ok(network) = config.network().and_then(|network| Ok(network.init(&device)?)) else {
            return false;
        };
        // Weights of another network are refused before memory is taken for this one.
        assert!(Weights::default().apply(network.clone()).is_err());
        let padding = config.preprocessing().padding;
        let small = padding.canvas[0] * padding.canvas[1] <= 64 * 64;
        if small && parameter_count(&network) < 200_000 {
            let picture = Image::from_fn(20, 30, |x, y| 0.5 + 0.4 * (0.7 * x).sin() * y.cos());
            let shown =
                config.preprocessing().show(&picture.unwrap(), &Similarity::IDENTITY).unwrap();
            let shape = [1, shown.height(), shown.width(), shown.channels()];
            let data = TensorData::new(shown.data().to_vec(), shape);
            let _ = network.forward(Tensor::from_data(data, &device));
        }
        true
    });
}

#[test]
fn mnist_files() {
    attack("idx", [MAX_REQUEST, COPIES], Vec::new(), |bytes| Idx::parse("idx", bytes, 3).is_ok());
}

#[test]
fn stl10_files() {
    let images: Vec<u8> = (0..27_648).map(|i| (i % 251) as u8).collect();
    attack("labels", [MAX_REQUEST, COPIES], vec![images], |bytes| {
        let _ = stl10::parse_images("train_X.bin", bytes);
        stl10::parse_labels("train_y.bin", bytes).is_ok()
    });
}

#[test]
fn images() {
    let picture = image::RgbImage::from_fn(9, 7, |x, y| image::Rgb([(x * 20) as u8, y as u8, 90]));
    let mut jpeg = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut jpeg, image::ImageFormat::Jpeg).unwrap();
    attack("image", [MAX_IMAGE_REQUEST, FEW_COPIES], vec![jpeg.into_inner()], |bytes| {
        decode_image("image", bytes).is_ok()
    });
}
