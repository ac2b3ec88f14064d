//! Untrusted files: any bytes give a value or an error, never a panic, a hang or a huge
//! allocation. Every file of `corpus` is read as it is and in hundreds of mutated copies.

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
use sren_lab::inference::inference_device;
use sren_lab::training::TrainingConfig;

/// Mutated copies of each file, for formats that are read fast
const COPIES: usize = 400;
/// and slowly.
const FEW_COPIES: usize = 100;
/// Largest allocation while a file is read. No file here is larger than a few kilobytes.
const MAX_ALLOCATION: usize = 16 << 20;
/// The same for images, whose header may truthfully say that they are large.
const MAX_IMAGE_ALLOCATION: usize = 1 << 30;

/// Records the largest allocation.
struct Recording;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
/// One test at a time: they share `LARGEST`.
static ONE_TEST: Mutex<()> = Mutex::new(());

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Recording {
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
static ALLOCATOR: Recording = Recording;

/// Passes every file of the corpus `name` to `read`, then mutated copies of these and of `more`,
/// every second one repaired by `repair`, and checks the largest allocation. `read` returns whether
/// the file was accepted; of the corpus, exactly the valid ones must be. Returns the number of
/// accepted copies.
fn attack(
    name: &str,
    [limit, copies]: [usize; 2],
    more: Vec<Vec<u8>>,
    repair: impl Fn(Vec<u8>) -> Vec<u8>,
    read: impl Fn(&[u8]) -> bool,
) -> usize {
    let _one = ONE_TEST.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let mut seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for (file, seed) in files.iter().zip(&seeds) {
        let accepted = read(seed);
        assert_eq!(accepted, is_valid(file), "{}", file.display());
    }
    seeds.extend(more);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut accepted = 0;
    LARGEST.store(0, Ordering::Relaxed);
    for (number, seed) in seeds.iter().enumerate() {
        for copy in 0..copies {
            let mut bytes = mutated(seed, &seeds, &mut random);
            if copy % 2 == 1 {
                bytes = repair(bytes);
            }
            accepted += usize::from(read(&bytes));
            let largest = LARGEST.load(Ordering::Relaxed);
            assert!(largest <= limit, "{largest} bytes allocated, seed {number}, copy {copy}");
        }
    }
    accepted
}

/// Leaves a copy as it is.
fn unrepaired(bytes: Vec<u8>) -> Vec<u8> {
    bytes
}

/// Whether a file of the corpus is valid.
fn is_valid(file: &Path) -> bool {
    const VALID: [&str; 11] = [
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
    VALID.contains(&file.file_stem().unwrap().to_str().unwrap())
}

/// A copy with one to four mutations.
fn mutated(seed: &[u8], seeds: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
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
    attack("weights", [MAX_ALLOCATION, COPIES], Vec::new(), unrepaired, |bytes| {
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
    attack("config", [MAX_ALLOCATION, FEW_COPIES], Vec::new(), unrepaired, |bytes| {
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
        // Weights of another network give an error before memory is allocated for this one.
        assert!(Weights::default().apply(network.clone()).is_err());
        let padding = config.preprocessing().padding;
        let small = padding.canvas[0] * padding.canvas[1] <= 64 * 64;
        if small && parameter_count(&network) < 200_000 {
            let picture = Image::from_fn(20, 30, |x, y| 0.5 + 0.4 * (0.7 * x).sin() * y.cos());
            let shown =
                config.preprocessing().apply(&picture.unwrap(), &Similarity::IDENTITY).unwrap();
            let shape = [1, shown.height(), shown.width(), shown.channels()];
            let data = TensorData::new(shown.data().to_vec(), shape);
            let _ = network.forward(Tensor::from_data(data, &device));
        }
        true
    });
}

/// The header of an array of rank 3 that has as many values as there are bytes after it.
fn with_idx_header(mut bytes: Vec<u8>) -> Vec<u8> {
    const HEADER: usize = 16;
    bytes.resize(bytes.len().max(HEADER), 0);
    let columns = 1 + bytes[HEADER - 1] as usize % 3;
    let rows = (bytes.len() - HEADER) / columns;
    bytes.truncate(HEADER + rows * columns);
    let sizes = [1, rows, columns].map(|size| (size as u32).to_be_bytes());
    bytes[..4].copy_from_slice(&[0, 0, 8, 3]);
    bytes[4..HEADER].copy_from_slice(&sizes.concat());
    bytes
}

#[test]
fn idx_files() {
    let accepted = attack("idx", [MAX_ALLOCATION, COPIES], Vec::new(), with_idx_header, |bytes| {
        let Ok(idx) = Idx::parse("idx", bytes, 3) else { return false };
        assert_eq!(idx.values(), &bytes[16..]);
        assert_eq!(idx.sizes().iter().product::<usize>(), idx.values().len());
        true
    });
    assert!(accepted >= COPIES, "only {accepted} copies with a valid header");
}

#[test]
fn stl10_images() {
    const SIDE: usize = stl10::SIDE;
    const SIZE: usize = 3 * SIDE * SIDE;
    let image: Vec<u8> = (0..SIZE).map(|i| (i % 251) as u8).collect();
    // Continued to two images.
    let whole = |mut bytes: Vec<u8>| {
        bytes.push(7);
        bytes.iter().copied().cycle().take(2 * SIZE).collect()
    };
    let accepted = AtomicUsize::new(0);
    attack("labels", [MAX_ALLOCATION, FEW_COPIES], vec![image], whole, |bytes| {
        if let Ok(pixels) = stl10::parse_images("train_X.bin", bytes) {
            assert_eq!(pixels.len(), bytes.len());
            for (i, v) in pixels.iter().enumerate() {
                let (at, c) = (i % SIZE / 3, i % 3);
                let (row, column) = (at / SIDE, at % SIDE);
                assert_eq!(*v, bytes[i / SIZE * SIZE + (c * SIDE + column) * SIDE + row]);
            }
            accepted.fetch_add(1, Ordering::Relaxed);
        }
        // The corpus has files of labels: which are valid is a matter of labels.
        stl10::parse_labels("train_y.bin", bytes).is_ok()
    });
    let accepted = accepted.into_inner();
    assert!(accepted >= 2 * FEW_COPIES, "only {accepted} copies of whole images");
}

#[test]
fn stl10_labels() {
    let in_range = |bytes: Vec<u8>| bytes.iter().map(|label| 1 + label % 10).collect();
    let accepted = attack("labels", [MAX_ALLOCATION, COPIES], Vec::new(), in_range, |bytes| {
        let Ok(labels) = stl10::parse_labels("train_y.bin", bytes) else { return false };
        labels.iter().zip(bytes).all(|(class, label)| *class + 1 == u32::from(*label))
    });
    assert!(accepted >= COPIES, "only {accepted} copies with labels 1 to 10");
}

#[test]
fn images() {
    let picture = image::RgbImage::from_fn(9, 7, |x, y| image::Rgb([(x * 20) as u8, y as u8, 90]));
    let mut jpeg = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut jpeg, image::ImageFormat::Jpeg).unwrap();
    let limits = [MAX_IMAGE_ALLOCATION, FEW_COPIES];
    let accepted = attack("image", limits, vec![jpeg.into_inner()], unrepaired, |bytes| {
        decode_image("image", bytes).is_ok()
    });
    assert!(accepted > 0, "no mutated copy is decoded");
}
