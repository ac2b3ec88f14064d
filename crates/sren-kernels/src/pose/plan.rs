//! Fast pose estimation: ring harmonics by sparse correlation, responses by a banded matrix, the
//! search over scale position by position. `LANES` positions of a row are processed together; their
//! complex values are stored as separate rows of real and imaginary parts for the vector loops.

use num_complex::{Complex32, Complex64};
use rayon::prelude::*;
use sren_math::{Grid, Peak, Pose, PoseReading, PoseSpec, element_count};

use super::canvas::{Canvas, Images, LANES, Layout, NOWHERE, Row};
use super::field::PoseField;
use super::rings::{Offset, Orbit, kernel};
use crate::error::{KernelError, Result};

/// Template weights below this fraction of the largest at the same scale are dropped.
const NEGLIGIBLE: f64 = 1e-6;

/// Largest outer radius and step of a grid in pixels: twice the largest side of an image. Canvases
/// and pixel indices stay far from overflow.
const MAX_REACH: f64 = 4096.0;

/// An orbit of a kernel on canvases of one size.
struct CanvasOrbit {
    /// Indices of its pixels on a canvas, relative to the start of the position's row.
    starts: [isize; 4],
    /// Weight of the first pixel.
    weight: Complex32,
}

/// A pose estimator prepared for one grid of positions.
///
/// ```
/// use sren_kernels::pose::{Images, PosePlan};
/// use sren_math::{Grid, PoseParams, PoseSpec};
///
/// # fn main() -> sren_kernels::Result<()> {
/// // A bright right half: the gradient points along the x axis.
/// let pixels: Vec<f32> = (0..32 * 32).map(|i| if i % 32 < 16 { 0.0 } else { 1.0 }).collect();
/// let grid = Grid::pixels(32, 32).cell_centred(4)?;
/// let plan = PosePlan::new(PoseSpec::new(PoseParams::default())?, grid)?;
/// let field = plan.estimate(&Images::new(&pixels, 1, 32, 32, 1)?)?;
/// assert_eq!(field.scale().len(), grid.len());
/// assert!(field.angle()[4 * 8 + 3].abs() < 0.2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PosePlan {
    spec: PoseSpec,
    grid: Grid,
    stride: usize,
    /// The pixel (x, y) of row 0, column 0.
    first: [i32; 2],
    /// Extent of the kernels beyond the image in pixels.
    reach: usize,
    /// The kernels, `[harmonics][rings]`.
    kernels: Vec<Vec<Vec<Orbit>>>,
    /// Per scale, the first ring with a weight that is not negligible, and the weights from there.
    bands: Vec<(usize, Vec<f32>)>,
}

impl PosePlan {
    /// Prepares estimation at the positions of `grid`, whose step is a whole number of pixels.
    /// Returns an error if its step or the outer radius is larger than 4096 pixels.
    pub fn new(spec: PoseSpec, grid: Grid) -> Result<Self> {
        const OPERATION: &str = "PosePlan";
        let whole = (1.0..=MAX_REACH).contains(&grid.step) && grid.step.fract() == 0.0;
        if !whole || grid.is_empty() || !grid.origin.iter().all(|v| v.is_finite()) {
            return Err(KernelError::invalid(
                OPERATION,
                "a grid with positions, a whole number of pixels apart (at most 4096)",
                format!(
                    "{} x {} positions, step {}, origin {:?}",
                    grid.height, grid.width, grid.step, grid.origin
                ),
            ));
        }
        let outer = spec.params().outer;
        if outer > MAX_REACH {
            let expected = format!("an outer radius of at most {MAX_REACH} pixels");
            return Err(KernelError::invalid(OPERATION, expected, outer.to_string()));
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
        let reach = outer.ceil() as usize + stride * LANES + 2;
        Ok(Self { spec, grid, stride, first: first.map(|v| v as i32), reach, kernels, bands })
    }

    /// The checked parameters.
    pub fn spec(&self) -> &PoseSpec {
        &self.spec
    }

    /// The positions of the poses.
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
                format!("images that contain the grid from {:?} to {last:?}", self.grid.origin),
                format!("{} x {} pixels", images.height, images.width),
            ));
        }
        let poses = self.spec.params().poses;
        let layout = Layout::new(images, self.stride, self.reach);
        let start = |pixel: Option<Offset>| match pixel {
            Some([dy, dx]) => layout.start(dy, self.first[0] + dx),
            None => NOWHERE,
        };
        let locate =
            |orbit: &Orbit| CanvasOrbit { starts: orbit.pixels.map(start), weight: orbit.weight };
        let kernels: Vec<Vec<Vec<CanvasOrbit>>> = self
            .kernels
            .iter()
            .map(|rings| rings.iter().map(|orbits| orbits.iter().map(locate).collect()).collect())
            .collect();
        let canvases: Vec<Canvas> =
            (0..images.batch).into_par_iter().map(|i| Canvas::new(images, i, layout)).collect();
        let (height, width) = (self.grid.height, self.grid.width);
        let len = element_count("PosePlan::estimate", &[images.batch, height, width, poses])?;
        let mut scale = vec![1.0; len];
        let mut angle = vec![0.0; len];
        let mut weight = vec![0.0; len];
        let mut confidence = vec![0.0; len / poses];
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
                        work.respond(self, &kernels, canvas, row % self.grid.height, start);
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

/// The non-negligible part of a row of weights.
fn band(weights: &[f64]) -> (usize, Vec<f32>) {
    let largest = weights.iter().fold(0.0f64, |m, w| m.max(w.abs()));
    let matters = |w: &f64| w.abs() > NEGLIGIBLE * largest;
    let start = weights.iter().position(matters).unwrap_or(0);
    let end = weights.iter().rposition(matters).map_or(start, |i| i + 1);
    (start, weights[start..end].iter().map(|w| *w as f32).collect())
}

/// Buffers of one thread.
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
        kernels: &[Vec<Vec<CanvasOrbit>>],
        canvas: &Canvas,
        row: usize,
        start: usize,
    ) {
        let y = plan.first[1] as isize + (row * plan.stride) as isize;
        let base = canvas.row_start(y) + start as isize;
        let angular = &plan.spec.params().template.angular;
        for ((rings, responses), (k, _)) in kernels.iter().zip(&mut self.responses).zip(angular) {
            for (orbits, harmonic) in rings.iter().zip(&mut self.harmonics) {
                let pixels = orbits.iter().map(|orbit| {
                    (orbit.starts.map(|start| canvas.row(base + start)), orbit.weight)
                });
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

    /// Writes the poses of one position to `readings`; returns its confidence.
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

/// `out = sum over orbits of w * (p0 + (-i)^k p1 + (-i)^2k p2 + (-i)^3k p3)`, k modulo 4. A 90-degree
/// rotation moves p0 to p1 and so on: every sum below then has the same terms in the same order, or
/// all of them negated.
fn correlate<'a, const K: u8>(
    orbits: impl Iterator<Item = ([&'a Row; 4], Complex32)>,
    out: &mut [Row; 2],
) {
    #[inline(always)]
    fn body<'a, const K: u8, const FMA: bool>(
        orbits: impl Iterator<Item = ([&'a Row; 4], Complex32)>,
        out: &mut [Row; 2],
    ) {
        let [mut re, mut im] = [[0.0f32; LANES]; 2];
        for ([p0, p1, p2, p3], Complex32 { re: wr, im: wi }) in orbits {
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
            orbits: impl Iterator<Item = ([&'a Row; 4], Complex32)>,
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

/// `a * b + c`, fused where the processor supports it.
#[inline(always)]
fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}
