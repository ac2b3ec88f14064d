//! Mutated bodies: whatever is sent, the answer is a prediction or an error of the client, and the
//! service lives on.

use std::path::Path;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::http::{BOUNDARY, multipart, multipart_type};
use crate::service::{Service, digit};

/// Mutated copies of each body.
const COPIES: usize = 60;

/// Words of the format.
const WORDS: [&[u8]; 10] = [
    b"\r\n",
    b"\r\n\r\n",
    b"--",
    BOUNDARY.as_bytes(),
    b"content-disposition: form-data; name=\"",
    b"filename*=UTF-8''%ff%00",
    b"content-type: text/html\r\n",
    b"content-length: 99999999\r\n",
    b"\0\xff\xfe",
    b"\"; name=\"\"; filename=\"../../../../etc/passwd\"\r\n",
];

fn mutated(seed: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.random_range(1..=3) {
        let at = random.random_range(0..=bytes.len());
        match random.random_range(0..5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes.truncate(at),
            2 => {
                let word = WORDS[random.random_range(0..WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            3 => {
                let end = (at + random.random_range(0..200)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let part: Vec<u8> = bytes[at..(at + 300).min(bytes.len())].to_vec();
                let to = random.random_range(0..=bytes.len());
                bytes.splice(to..to, part);
            }
        }
    }
    bytes
}

#[test]
fn mutated_bodies_are_never_a_fault_of_the_service() {
    let service = Service::start(&["--max-body", "1"]);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sren-lab/tests/corpus/image");
    let mut files: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let images: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let good = digit(0);
    let mut seeds = vec![
        multipart(&[("a.png", &good)]),
        multipart(&[("a.png", &good), ("b.png", &good), ("c.png", b"")]),
        multipart(&[("\u{1F600}.png", &good), ("", &good)]),
        Vec::new(),
    ];
    seeds.extend(images.iter().map(|image| multipart(&[("a.png", &good), ("b.png", image)])));
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    let mut count = |answer: crate::http::Answer| {
        if answer.status != 200 {
            answer.error();
        }
        *statuses.entry(answer.status).or_default() += 1;
    };
    for seed in &seeds {
        for copy in 0..COPIES {
            let body = mutated(seed, &mut random);
            let path = ["/v1/predict?top=2", "/v1/poses", "/v1/features"][copy % 3];
            count(service.post(path, &multipart_type(), &body));
        }
    }
    for image in images.iter().chain([&good]) {
        for _ in 0..COPIES / 3 {
            count(service.post_png("/v1/predict", &mutated(image, &mut random)));
        }
    }
    assert!(statuses.keys().all(|status| [200, 400, 413].contains(status)), "{statuses:?}");
    assert!(statuses.get(&200).is_some_and(|n| *n > 5), "{statuses:?}");
    assert!(statuses.get(&400).is_some_and(|n| *n > 200), "{statuses:?}");
    service.assert_alive();
}
