//! What the general reader does not do for JPEG files: it decodes cut files without an error, and
//! large files at their full size only.

use image::{DynamicImage, GrayImage, ImageBuffer, RgbImage};
use jpeg_decoder::{Decoder, PixelFormat};

/// The largest factor by which the decoder reduces an image.
const MAX_FACTOR: u16 = 8;

/// Whether the file goes on to its end marker. Markers are followed from segment to segment: an
/// embedded thumbnail has an end marker of its own.
pub(crate) fn is_complete(bytes: &[u8]) -> bool {
    const RESTART_OR_STUFFED: [u8; 9] = [0x00, 0xD0, 0xD1, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7];
    let mut at = 2;
    while let Some(&[first, marker]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        match (first, marker) {
            (0xFF, 0xD9) => return true,
            // Coded data between segments, and fill bytes.
            (0xFF, 0xFF) => at += 1,
            (0xFF, marker) if RESTART_OR_STUFFED.contains(&marker) => at += 2,
            (0xFF, _) => {
                let Some(&length) = bytes.get(at + 2..).and_then(|rest| rest.first_chunk()) else {
                    return false;
                };
                at += 2 + usize::from(u16::from_be_bytes(length)).max(2);
            }
            _ => at += 1,
        }
    }
    false
}

/// The image, its longer side reduced by 2, 4 or 8 to at least `least` pixels; `None` if it cannot be
/// reduced by 2, or has pixels that only the general reader knows.
pub(crate) fn decode_reduced(
    bytes: &[u8],
    least: usize,
) -> Result<Option<DynamicImage>, jpeg_decoder::Error> {
    let mut decoder = Decoder::new(bytes);
    decoder.read_info()?;
    let Some(info) = decoder.info() else { return Ok(None) };
    let (width, height) = (info.width, info.height);
    let longer = usize::from(width.max(height));
    let factors = std::iter::successors(Some(MAX_FACTOR), |factor| Some(factor / 2));
    let fits = |factor: &u16| longer / usize::from(*factor) >= least.max(1);
    let Some(factor) = factors.take_while(|factor| *factor > 1).find(fits) else {
        return Ok(None);
    };
    if !matches!(info.pixel_format, PixelFormat::L8 | PixelFormat::RGB24) {
        return Ok(None);
    }
    let (width, height) = decoder.scale(width.div_ceil(factor), height.div_ceil(factor))?;
    let pixels = decoder.decode()?;
    let (width, height) = (u32::from(width), u32::from(height));
    Ok(match info.pixel_format {
        PixelFormat::L8 => {
            let grey: Option<GrayImage> = ImageBuffer::from_raw(width, height, pixels);
            grey.map(DynamicImage::from)
        }
        _ => {
            let colour: Option<RgbImage> = ImageBuffer::from_raw(width, height, pixels);
            colour.map(DynamicImage::from)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(width: u32, height: u32) -> Vec<u8> {
        let picture = RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([(x * 255 / width) as u8, (y * 255 / height) as u8, 90])
        });
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::Jpeg).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn cut_files_are_found() {
        let whole = encoded(90, 70);
        assert!(is_complete(&whole));
        let trailing: Vec<u8> = whole.iter().copied().chain([1, 2, 3]).collect();
        assert!(is_complete(&trailing));
        for length in [0, 1, 2, 20, whole.len() / 2, whole.len() - 2] {
            assert!(!is_complete(&whole[..length]), "{length}");
        }
        // A thumbnail in a segment of its own does not end the file.
        let thumbnail = encoded(8, 8);
        let mut with_thumbnail = whole[..2].to_vec();
        with_thumbnail.extend([0xFF, 0xE1]);
        with_thumbnail.extend((thumbnail.len() as u16 + 2).to_be_bytes());
        with_thumbnail.extend(&thumbnail);
        with_thumbnail.extend(&whole[2..]);
        assert!(is_complete(&with_thumbnail));
        assert!(!is_complete(&with_thumbnail[..with_thumbnail.len() / 2]));
    }

    #[test]
    fn large_images_are_reduced_to_at_least_what_is_needed() {
        let bytes = encoded(640, 480);
        for (least, size) in [(80, Some((80, 60))), (81, Some((160, 120))), (300, Some((320, 240)))]
        {
            let reduced = decode_reduced(&bytes, least).unwrap();
            assert_eq!(reduced.map(|picture| (picture.width(), picture.height())), size);
        }
        assert!(decode_reduced(&bytes, 400).unwrap().is_none());
        let small = decode_reduced(&bytes, 80).unwrap().unwrap().to_rgb8();
        let image::Rgb([r, g, b]) = *small.get_pixel(40, 30);
        assert!(r.abs_diff(128) < 6 && g.abs_diff(128) < 6 && b.abs_diff(90) < 6, "{r} {g} {b}");
        assert!(decode_reduced(&bytes[..bytes.len() / 2], 80).is_err());
    }
}
