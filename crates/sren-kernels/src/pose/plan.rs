//! Fast pose estimation: ring harmonics by sparse correlation, responses by a banded matrix, the
//! search over scale position by position. Rows of `LANES` positions are worked on at once.

use num_complex::Complex64;
use rayon::prelude::*;
use sren_math::{Grid, Peak, Pose, PoseReading, PoseSpec};

use super::canvas::{Canvas, Images, LANES, Layout, NOWHERE, Row};
use super::field::PoseField;
use super::rings::{Offset, Orbit, kernel};
use crate::error::{KernelError, Result};

/// Template weights below this part of the largest at the same scale are left out.
const NEGLIGIBLE: f64 = 1e-6;

/// An orbit of a kernel on canvases of one size.
struct Place {
    /// Where its pixels lie on a canvas, counted from the start of the position's row,
    starts: [isize; 4],
    /// and the weight of the first.
    weight: [f32; 2],
}

/// A pose estimator made ready for one grid of positions.
#[derive(Debug, Clone)]
pub struct PosePlan {
    spec: PoseSpec,
    grid: Grid,
    stride: usize,
    /// The pixel of row 0, column 0.
    first: [i32; 2],
    /// How far kernels reach beyond the image.
    reach: usize,
    /// The kernels, `[harmonics][rings]`.
    kernels: Vec<Vec<Vec<Orbit>>>,
    /// For every scale the first ring that counts, and the weights from there.
    bands: Vec<(usize, Vec<f32>)>,
}

impl PosePlan {
    /// Prepares estimation at the positions of `grid`, whose step is a whole number of pixels.
    pub fn new(spec: PoseSpec, grid: Grid) -> Result<Self> {
        if grid.step < 1.0 || grid.step.fract() != 0.0 || grid.is_empty() {
            return Err(KernelError::invalid(
                "PosePlan",
                "a grid with positions, a whole number of pixels apart",
                format!("{} x {} positions, step {}", grid.height, grid.width, grid.step),
            ));
        }
        let first = grid.origin.map(f64::floor);
        let fraction = [grid.origin[0] - first[0], grid.origin[1] - first[1]];
        let kernels: Vec<Vec<Vec<Orbit>>> = spec
            .params()
            .template
            .angular
            .iter()
            .map(|(k, _)| spec.rings().iter().map(|ring| kernel(ring, *k, fraction)).collect())
            .collect();
        let bands = spec.weights().chunks_exact(spec.rings().len()).map(band).collect();
        let stride = grid.step as usize;
        let reach = spec.params().outer.ceil() as usize + stride * LANES + 2;
        Ok(Self { spec, grid, stride, first: first.map(|v| v as i32), reach, kernels, bands })
    }

    /// The checked parameters.
    pub fn spec(&self) -> &PoseSpec {
        &self.spec
    }

    /// Where poses are read.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The pose field of a batch.
    pub fn estimate(&self, images: &Images) -> Result<PoseField> {
        let last = self.grid.point(self.grid.height - 1, self.grid.width - 1);
        let inside = |first: i32, last: f64, size: usize| first >= 0 && last <= (size - 1) as f64;
        if !(inside(self.first[0], last[0], images.width)
            && inside(self.first[1], last[1], images.height))
        {
            return Err(KernelError::invalid(
                "PosePlan::estimate",
                format!("images that hold the grid from {:?} to {last:?}", self.grid.origin),
                format!("{} x {} pixels", images.height, images.width),
            ));
        }
        let poses = self.spec.params().poses;
        let layout = Layout::new(images, self.stride, self.reach);
        let start = |pixel: Option<Offset>| match pixel {
            Some([dy, dx]) => layout.start(dy, self.first[0] + dx),
            None => NOWHERE,
        };
        let place = |orbit: &Orbit| Place { starts: orbit.pixels.map(start), weight: orbit.weight };
        let places: Vec<Vec<Vec<Place>>> = self
            .kernels
            .iter()
            .map(|rings| rings.iter().map(|orbits| orbits.iter().map(place).collect()).collect())
            .collect();
        let canvases: Vec<Canvas> =
            (0..images.batch).into_par_iter().map(|i| Canvas::new(images, i, layout)).collect();
        let (rows, width) = (images.batch * self.grid.height, self.grid.width);
        let mut scale = vec![1.0; rows * width * poses];
        let mut angle = vec![0.0; rows * width * poses];
        let mut weight = vec![0.0; rows * width * poses];
        let mut confidence = vec![0.0; rows * width];
        scale
            .par_chunks_mut(width * poses)
            .zip(angle.par_chunks_mut(width * poses))
            .zip(weight.par_chunks_mut(width * poses))
            .zip(confidence.par_chunks_mut(width))
            .enumerate()
            .for_each_init(
                || Workspace::new(self),
                |work, (row, (((scale, angle), weight), confidence))| {
                    let canvas = &canvases[row / self.grid.height];
                    for start in (0..width).step_by(LANES) {
                        work.respond(self, &places, canvas, row % self.grid.height, start);
                        for column in start..width.min(start + LANES) {
                            confidence[column] = work.read(self, column - start) as f32;
                            for (j, reading) in work.readings.iter().enumerate() {
                                scale[column * poses + j] = reading.pose.scale as f32;
                                angle[column * poses + j] = reading.pose.angle as f32;
                                weight[column * poses + j] = reading.weight as f32;
                            }
                        }
                    }
                },
            );
        PoseField::new(self.grid, images.batch, poses, scale, angle, weight, confidence)
    }
}

/// The part of a row of weights that counts.
fn band(weights: &[f64]) -> (usize, Vec<f32>) {
    let largest = weights.iter().fold(0.0f64, |m, w| m.max(w.abs()));
    let counts = |w: &f64| w.abs() > NEGLIGIBLE * largest;
    let start = weights.iter().position(counts).unwrap_or(0);
    let end = weights.iter().rposition(counts).map_or(start, |i| i + 1);
    (start, weights[start..end].iter().map(|w| *w as f32).collect())
}

/// What one thread needs for one row.
struct Workspace {
    /// `[rings][re, im]`
    harmonics: Vec<[Row; 2]>,
    /// `[harmonics][scales][re, im]`
    responses: Vec<Vec<[Row; 2]>>,
    /// `[scales]` of one position.
    scores: Vec<f32>,
    readings: Vec<PoseReading>,
    peaks: Vec<Peak>,
}

impl Workspace {
    fn new(plan: &PosePlan) -> Self {
        let scales = plan.bands.len();
        let empty = PoseReading { pose: Pose::IDENTITY, weight: 0.0 };
        Self {
            harmonics: vec![[[0.0; LANES]; 2]; plan.spec.rings().len()],
            responses: vec![vec![[[0.0; LANES]; 2]; scales]; plan.kernels.len()],
            scores: vec![0.0; scales],
            readings: vec![empty; plan.spec.params().poses],
            peaks: Vec::new(),
        }
    }

    /// The responses at `LANES` positions of a grid row, from column `start`.
    fn respond(
        &mut self,
        plan: &PosePlan,
        places: &[Vec<Vec<Place>>],
        canvas: &Canvas,
        row: usize,
        start: usize,
    ) {
        let y = plan.first[1] as isize + (row * plan.stride) as isize;
        let own = canvas.row_start(y) + start as isize;
        let angular = &plan.spec.params().template.angular;
        for ((rings, responses), (k, _)) in places.iter().zip(&mut self.responses).zip(angular) {
            for (places, harmonic) in rings.iter().zip(&mut self.harmonics) {
                let pixels = places
                    .iter()
                    .map(|place| (place.starts.map(|start| canvas.row(own + start)), place.weight));
                match k % 4 {
                    0 => correlate::<0>(pixels, harmonic),
                    1 => correlate::<1>(pixels, harmonic),
                    2 => correlate::<2>(pixels, harmonic),
                    _ => correlate::<3>(pixels, harmonic),
                }
            }
            combine(&plan.bands, &self.harmonics, responses);
        }
    }

    /// The poses of one position to `readings`; its confidence.
    fn read(&mut self, plan: &PosePlan, lane: usize) -> f64 {
        let responses = &self.responses;
        let of = |scale: usize, out: &mut [Complex64]| {
            for (g, response) in out.iter_mut().zip(responses) {
                let [re, im] = &response[scale];
                *g = Complex64::new(f64::from(re[lane]), f64::from(im[lane]));
            }
        };
        if let [(_, a)] = plan.spec.params().template.angular[..] {
            for (score, [re, im]) in self.scores.iter_mut().zip(&responses[0]) {
                *score = a.abs() as f32 * (re[lane] * re[lane] + im[lane] * im[lane]).sqrt();
            }
        } else {
            let mut g = vec![Complex64::ZERO; responses.len()];
            for (scale, score) in self.scores.iter_mut().enumerate() {
                of(scale, &mut g);
                *score = plan.spec.best_angle(&g).0 as f32;
            }
        }
        plan.spec.read(&self.scores, of, &mut self.readings, &mut self.peaks)
    }
}

/// `out = sum over orbits of (re, im) * (p0 + (-i)^k p1 + (-i)^2k p2 + (-i)^3k p3)`, k modulo 4. A
/// quarter turn makes p1 of p0 and so on: every sum below then has the same terms in the same order,
/// or all of them negated.
fn correlate<'a, const K: u8>(
    orbits: impl Iterator<Item = ([&'a Row; 4], [f32; 2])>,
    out: &mut [Row; 2],
) {
    #[inline(always)]
    fn body<'a, const K: u8, const FMA: bool>(
        orbits: impl Iterator<Item = ([&'a Row; 4], [f32; 2])>,
        out: &mut [Row; 2],
    ) {
        let [mut re, mut im] = [[0.0f32; LANES]; 2];
        for ([p0, p1, p2, p3], [wr, wi]) in orbits {
            for lane in 0..LANES {
                let (p0, p1, p2, p3) = (p0[lane], p1[lane], p2[lane], p3[lane]);
                let (a, b) = match K {
                    0 => ((p0 + p2) + (p1 + p3), 0.0),
                    1 => (p0 - p2, p3 - p1),
                    2 => ((p0 + p2) - (p1 + p3), 0.0),
                    _ => (p0 - p2, p1 - p3),
                };
                re[lane] = multiply_add::<FMA>(-wi, b, multiply_add::<FMA>(wr, a, re[lane]));
                im[lane] = multiply_add::<FMA>(wi, a, multiply_add::<FMA>(wr, b, im[lane]));
            }
        }
        *out = [re, im];
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn fast<'a, const K: u8>(
            orbits: impl Iterator<Item = ([&'a Row; 4], [f32; 2])>,
            out: &mut [Row; 2],
        ) {
            body::<K, true>(orbits, out);
        }
        if crate::simd::has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { fast::<K>(orbits, out) };
        }
    }
    body::<K, false>(orbits, out);
}

/// `out[scale] = sum over rings of bands[scale][ring] * harmonics[ring]`.
fn combine(bands: &[(usize, Vec<f32>)], harmonics: &[[Row; 2]], out: &mut [[Row; 2]]) {
    #[inline(always)]
    fn body<const FMA: bool>(
        bands: &[(usize, Vec<f32>)],
        harmonics: &[[Row; 2]],
        out: &mut [[Row; 2]],
    ) {
        for ((start, weights), out) in bands.iter().zip(out) {
            let [mut re, mut im] = [[0.0f32; LANES]; 2];
            for (w, [fr, fi]) in weights.iter().zip(&harmonics[*start..]) {
                for lane in 0..LANES {
                    re[lane] = multiply_add::<FMA>(*w, fr[lane], re[lane]);
                    im[lane] = multiply_add::<FMA>(*w, fi[lane], im[lane]);
                }
            }
            *out = [re, im];
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn fast(bands: &[(usize, Vec<f32>)], harmonics: &[[Row; 2]], out: &mut [[Row; 2]]) {
            body::<true>(bands, harmonics, out);
        }
        if crate::simd::has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { fast(bands, harmonics, out) };
        }
    }
    body::<false>(bands, harmonics, out);
}

/// `a * b + c`, in one rounding where the processor does it in one step.
#[inline(always)]
fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}
