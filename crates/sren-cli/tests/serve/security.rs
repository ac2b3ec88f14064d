//! What must not be possible.

use std::time::Instant;

use crate::service::{Service, digit};

/// A PNG file whose header says `side` x `side`, with no pixels.
fn huge(side: u32) -> Vec<u8> {
    let mut bytes = digit(0);
    bytes[16..20].copy_from_slice(&side.to_be_bytes());
    bytes[20..24].copy_from_slice(&side.to_be_bytes());
    // The checksum of the header.
    let mut crc = !0u32;
    for byte in &bytes[12..29] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    bytes[29..33].copy_from_slice(&(!crc).to_be_bytes());
    bytes
}

#[test]
fn decompression_bombs_are_refused_by_their_header() {
    let service = Service::start(&[]);
    let begin = Instant::now();
    for side in [6_000, 16_000, 32_000] {
        let answer = service.post_png("/v1/predict", &huge(side));
        assert_eq!(answer.error(), (413, "image_too_large".into()), "{side}");
        assert!(answer.text().contains(&format!("{side} x {side}")), "{}", answer.text());
    }
    // Larger than any file that is read.
    let answer = service.post_png("/v1/predict", &huge(1_000_000));
    assert!([400, 413].contains(&answer.status), "{}", answer.text());
    // A truthful one of zeros, 5,000 pixels square: 25 megapixels in a few kilobytes are decoded.
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::GrayImage::new(5_000, 5_000).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    assert_eq!(service.post_png("/v1/predict", bytes.get_ref()).status, 200);
    assert!(begin.elapsed().as_secs() < 60);
    service.assert_alive();
}

#[test]
fn no_path_outside_of_the_embedded_files_is_reachable() {
    let service = Service::start(&[]);
    for path in [
        "/../Cargo.toml",
        "/page/../../Cargo.toml",
        "/page/..%2f..%2fCargo.toml",
        "/page/%2e%2e/%2e%2e/Cargo.toml",
        "//etc/passwd",
        "/page//etc/passwd",
        "/page/",
        "/page/index.html",
        "/page/digits/..%2f..%2fstyle.css",
        "/page/digits/1%00.png",
        "/page/style.css/",
        "/page/style.css%00",
        "/config.toml",
        "/.git/config",
    ] {
        let answer = service.get(path);
        assert_eq!(answer.error(), (404, "not_found".into()), "{path}");
    }
}

#[test]
fn every_answer_has_the_security_headers() {
    let service = Service::start(&[]);
    for path in ["/", "/page/app.js", "/v1/model", "/nothing", "/metrics"] {
        let answer = service.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.split("; ").any(|directive| directive == part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

/// Uploads stay in memory: while they are computed, no file is open.
#[cfg(target_os = "linux")]
#[test]
fn uploads_never_touch_the_disk() {
    let service = Service::start(&[]);
    let photo = image::RgbImage::from_fn(2000, 1500, |x, y| {
        image::Rgb([(x / 8) as u8, (y / 6) as u8, (x * y) as u8])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    photo.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    assert!(bytes.get_ref().len() > 1_000_000);
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| {
            for _ in 0..4 {
                service.post_parts("/v1/predict", &[("a.png", bytes.get_ref())]).good();
            }
        });
        while !sent.is_finished() {
            assert!(service.open_files().is_empty(), "{:?}", service.open_files());
        }
    });
}
