//! Plain letters for pictures, five dots wide and seven high (nine with a tail).

use crate::canvas::{Canvas, Colour};

/// Dots from one letter to the next.
pub(crate) const ADVANCE: usize = 6;

/// Writes `text` with its upper left corner at (x, y), each dot a square of `dot` pixels. Letters
/// that are not known are left blank.
pub(crate) fn write(canvas: &mut Canvas, text: &str, at: [usize; 2], dot: usize, colour: Colour) {
    for (place, letter) in text.chars().enumerate() {
        let x = at[0] + place * ADVANCE * dot;
        let drop = if "gjpqy,".contains(letter) { 2 } else { 0 };
        for (row, bits) in rows(letter).iter().enumerate() {
            for column in (0..5).filter(|column| bits & (16 >> column) != 0) {
                canvas.fill([x + column * dot, at[1] + (row + drop) * dot], dot, |_| colour);
            }
        }
    }
}

/// Pixels that `text` is wide.
pub(crate) fn width(text: &str, dot: usize) -> usize {
    (text.chars().count() * ADVANCE).saturating_sub(1) * dot
}

/// The seven rows of a letter, the leftmost dot in the highest of five bits.
#[rustfmt::skip]
fn rows(letter: char) -> [u8; 7] {
    match letter {
        '0' => [14, 17, 19, 21, 25, 17, 14], '1' => [4, 12, 4, 4, 4, 4, 14],
        '2' => [14, 17, 1, 6, 8, 16, 31],    '3' => [14, 17, 1, 6, 1, 17, 14],
        '4' => [2, 6, 10, 18, 31, 2, 2],     '5' => [31, 16, 30, 1, 1, 17, 14],
        '6' => [14, 16, 16, 30, 17, 17, 14], '7' => [31, 1, 2, 4, 4, 8, 8],
        '8' => [14, 17, 17, 14, 17, 17, 14], '9' => [14, 17, 17, 15, 1, 1, 14],
        'a' => [0, 0, 14, 1, 15, 17, 15],    'b' => [16, 16, 30, 17, 17, 17, 30],
        'c' => [0, 0, 15, 16, 16, 16, 15],   'd' => [1, 1, 15, 17, 17, 17, 15],
        'e' => [0, 0, 14, 17, 31, 16, 14],   'f' => [6, 8, 28, 8, 8, 8, 8],
        'g' => [15, 17, 17, 15, 1, 1, 14],   'h' => [16, 16, 30, 17, 17, 17, 17],
        'i' => [4, 0, 12, 4, 4, 4, 14],      'j' => [2, 2, 2, 2, 2, 18, 12],
        'k' => [16, 16, 18, 20, 24, 20, 18], 'l' => [12, 4, 4, 4, 4, 4, 14],
        'm' => [0, 0, 26, 21, 21, 21, 21],   'n' => [0, 0, 30, 17, 17, 17, 17],
        'o' => [0, 0, 14, 17, 17, 17, 14],   'p' => [30, 17, 17, 30, 16, 16, 16],
        'q' => [15, 17, 17, 15, 1, 1, 1],    'r' => [0, 0, 22, 24, 16, 16, 16],
        's' => [0, 0, 15, 16, 14, 1, 30],    't' => [8, 8, 28, 8, 8, 8, 6],
        'u' => [0, 0, 17, 17, 17, 17, 15],   'v' => [0, 0, 17, 17, 17, 10, 4],
        'w' => [0, 0, 17, 21, 21, 21, 10],   'x' => [0, 0, 17, 10, 4, 10, 17],
        'y' => [17, 17, 17, 15, 1, 1, 14],   'z' => [0, 0, 31, 2, 4, 8, 31],
        'C' => [15, 16, 16, 16, 16, 16, 15], 'E' => [31, 16, 16, 30, 16, 16, 31],
        'N' => [17, 25, 25, 21, 19, 19, 17], 'O' => [14, 17, 17, 17, 17, 17, 14],
        'R' => [30, 17, 17, 30, 20, 18, 17], 'S' => [15, 16, 16, 14, 1, 1, 30],
        '.' => [0, 0, 0, 0, 0, 12, 12],      ',' => [0, 0, 0, 12, 12, 4, 8],
        ':' => [0, 12, 12, 0, 12, 12, 0],    '-' => [0, 0, 0, 14, 0, 0, 0],
        '+' => [0, 4, 4, 31, 4, 4, 0],       '/' => [1, 1, 2, 4, 8, 16, 16],
        '(' => [2, 4, 8, 8, 8, 4, 2],        ')' => [8, 4, 2, 2, 2, 4, 8],
        _ => [0; 7],
    }
}
