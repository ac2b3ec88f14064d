//! The ring harmonics as sparse correlation kernels.
//!
//! A bilinear sample at a fixed offset from every grid position is a fixed weight on four pixels,
//! so the harmonic `F_k` of a ring is one sparse kernel, the same at every position: the samples
//! of the ring splatted with tent weights onto the pixel lattice.

use std::collections::BTreeMap;

use num_complex::Complex64;
use sren_math::Ring;

/// One pixel of a kernel: where it lies from the position's own pixel, and its complex weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) dy: i32,
    pub(super) dx: i32,
    pub(super) re: f32,
    pub(super) im: f32,
}

/// The kernel of harmonic `k` on `ring`, for positions that lie `fraction` (x, y) beyond a pixel.
pub(super) fn kernel(ring: &Ring, k: u32, fraction: [f64; 2]) -> Vec<Entry> {
    let mut pixels: BTreeMap<(i32, i32), Complex64> = BTreeMap::new();
    for ([x, y], theta) in ring.points() {
        let value = Complex64::cis(-f64::from(k) * theta) / ring.samples as f64;
        let (x, y) = (x + fraction[0], y + fraction[1]);
        let (left, top) = (x.floor(), y.floor());
        let (right_share, bottom_share) = (x - left, y - top);
        for (dy, wy) in [(0, 1.0 - bottom_share), (1, bottom_share)] {
            for (dx, wx) in [(0, 1.0 - right_share), (1, right_share)] {
                let pixel = (top as i32 + dy, left as i32 + dx);
                *pixels.entry(pixel).or_default() += value * wx * wy;
            }
        }
    }
    pixels
        .into_iter()
        .filter(|(_, v)| v.norm() > 0.0)
        .map(|((dy, dx), v)| Entry { dy, dx, re: v.re as f32, im: v.im as f32 })
        .collect()
}
