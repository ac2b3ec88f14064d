//! The ring harmonics as sparse correlation kernels.
//!
//! A bilinear sample at a fixed offset from the grid position has fixed weights on four pixels, so
//! the harmonic `F_k` of a ring is one sparse kernel, the same at every position: the samples of the
//! ring, splatted bilinearly onto the pixel lattice.

use std::collections::BTreeMap;

use num_complex::{Complex32, Complex64};
use sren_math::Ring;

/// Offset of a pixel from the position's pixel: rows down, columns right.
pub type Offset = [i32; 2];

/// The four pixels that 90-degree rotations about the position map onto each other, and the weight of
/// the first; the others have this weight times `(-i)^k`, `(-i)^2k`, `(-i)^3k`. Summed orbit by orbit,
/// the harmonics of an image and of its 90-degree rotation agree bit by bit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Orbit {
    /// Only the first, if 90-degree rotations do not map pixels onto pixels.
    pub(super) pixels: [Option<Offset>; 4],
    pub(super) weight: Complex32,
}

/// The kernel of harmonic `k` on `ring`, for positions at a distance of `fraction` (x, y) from a
/// pixel.
pub(super) fn kernel(ring: &Ring, k: u32, fraction: [f64; 2]) -> Vec<Orbit> {
    let mut weights = ring_kernel(ring, k, fraction);
    let doubled = 2.0 * fraction[0];
    let is_symmetric = fraction[0] == fraction[1] && doubled.fract() == 0.0;
    let mut orbits = Vec::new();
    while let Some((pixel, weight)) = weights.pop_first() {
        let (pixels, weight) = if is_symmetric {
            let rotated = |[y, x]: Offset| [x, doubled as i32 - y];
            let second = rotated(pixel);
            let pixels = [pixel, second, rotated(second), rotated(rotated(second))];
            for other in &pixels[1..] {
                weights.remove(other);
            }
            // The position's own pixel is all four pixels of its orbit, but counts once.
            let multiplicity = if second == pixel { 0.25 } else { 1.0 };
            (pixels.map(Some), weight * multiplicity)
        } else {
            ([Some(pixel), None, None, None], weight)
        };
        if weight.norm() > 0.0 {
            let weight = Complex32::new(weight.re as f32, weight.im as f32);
            orbits.push(Orbit { pixels, weight });
        }
    }
    orbits
}

/// Harmonic `k` of a ring as weights of the pixels around a position that lies `fraction` (x, y) from a
/// pixel: the samples of the ring times `exp(-i k theta)`, splatted bilinearly.
pub fn ring_kernel(ring: &Ring, k: u32, fraction: [f64; 2]) -> BTreeMap<Offset, Complex64> {
    let mut pixels: BTreeMap<Offset, Complex64> = BTreeMap::new();
    for ([x, y], theta) in ring.points() {
        let value = Complex64::cis(-f64::from(k) * theta) / ring.samples as f64;
        let (x, y) = (x + fraction[0], y + fraction[1]);
        let (left, top) = (x.floor(), y.floor());
        let (right_share, bottom_share) = (x - left, y - top);
        for (dy, wy) in [(0, 1.0 - bottom_share), (1, bottom_share)] {
            for (dx, wx) in [(0, 1.0 - right_share), (1, right_share)] {
                let pixel = [top as i32 + dy, left as i32 + dx];
                *pixels.entry(pixel).or_default() += value * wx * wy;
            }
        }
    }
    pixels
}
