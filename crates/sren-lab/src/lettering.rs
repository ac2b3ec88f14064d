//! Text in pictures: a subset of DejaVu Sans, drawn with antialiasing.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, PxScaleFont, ScaleFont, point};

use crate::canvas::{Canvas, Colour};

static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(include_bytes!("../fonts/DejaVuSans-subset.ttf"))
        .expect("the bundled font is valid")
});

/// Writes `text` with its upper left corner at (x, y), in lines of `size` pixels.
pub(crate) fn write(canvas: &mut Canvas, text: &str, at: [usize; 2], size: f32, colour: Colour) {
    let font = FONT.as_scaled(size);
    let baseline = at[1] as f32 + font.ascent();
    for (letter, x) in text.chars().zip(offsets(&font, text)) {
        let mut glyph = font.scaled_glyph(letter);
        glyph.position = point(at[0] as f32 + x, baseline);
        if let Some(outline) = font.outline_glyph(glyph) {
            let corner = outline.px_bounds().min;
            outline.draw(|x, y, cover| {
                let place = [corner.x as i64 + i64::from(x), corner.y as i64 + i64::from(y)];
                canvas.blend(place, colour, cover);
            });
        }
    }
}

/// Width of `text` in pixels.
pub(crate) fn width(text: &str, size: f32) -> usize {
    let font = FONT.as_scaled(size);
    offsets(&font, text).last().map_or(0, |end| end.ceil() as usize)
}

/// Where each letter of `text` begins, kerned, and where the last one ends.
fn offsets(font: &PxScaleFont<&FontRef>, text: &str) -> Vec<f32> {
    let mut offsets = vec![0.0];
    let mut x = 0.0;
    let mut previous = None;
    for letter in text.chars() {
        let id = font.glyph_id(letter);
        if let Some(previous) = previous {
            let kern = font.kern(previous, id);
            x += kern;
            *offsets.last_mut().unwrap_or(&mut 0.0) += kern;
        }
        x += font.h_advance(id);
        offsets.push(x);
        previous = Some(id);
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    const INK: Colour = [1.0; 3];

    fn drawn(text: &str) -> Vec<u8> {
        let mut canvas = Canvas::blank(30, 200, [0.0; 3]);
        write(&mut canvas, text, [4, 4], 20.0, INK);
        canvas.png().unwrap()
    }

    #[test]
    fn every_letter_of_a_label_is_drawn() {
        let letters = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(".,:;-+/()°×±é".chars());
        for letter in letters {
            assert_ne!(FONT.glyph_id(letter).0, 0, "{letter} is not in the font");
            assert_ne!(drawn(&letter.to_string()), drawn(" "), "{letter} is blank");
        }
    }

    #[test]
    fn text_takes_the_width_it_says_and_is_cut_at_the_border() {
        let [one, two] = [width("SCALE", 20.0), width("SCALESCALE", 20.0)];
        assert!(one > 40 && (2 * one - 3..=2 * one + 3).contains(&two), "{one} {two}");
        assert!(width("SCALE", 40.0) > 2 * one - 3);
        assert_eq!(width("", 20.0), 0);
        let mut canvas = Canvas::blank(8, 8, [0.0; 3]);
        write(&mut canvas, "a long text", [4, 4], 20.0, INK);
    }
}
