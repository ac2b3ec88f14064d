//! The scalable Fourier-Argand representation of a function on the annulus `a <= r < b`:
//!
//! `h(r, theta) = sum_{k1, k2} h_{k1,k2} r^m exp(i (k1 theta + k2 w ln r))`, `w = 2 pi / ln(b/a)`,
//!
//! `h_{k1,k2} = 1/ln(b/a) 1/(2 pi) int int h(e^rho, theta) exp(-i k1 theta - i k2 w rho - m rho)`.
//!
//! In (ln r, theta) a similarity is a shift, so steering multiplies coefficients. The shift in
//! ln r is cyclic with period ln(b/a): it is a true scaling only where nothing wraps around.

use num_complex::Complex64;

use crate::error::{MathError, Result};

/// Samples per axis, as a multiple of the number of its coefficients.
const OVERSAMPLING: usize = 4;

/// Least number of samples per axis, so that higher frequencies do not alias.
const MIN_SAMPLES: usize = 64;

/// Highest order per axis: arrays of coefficients and of samples stay far from the limits of memory.
pub(crate) const MAX_ORDER: usize = 1024;

/// Radii `inner <= r < outer`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Annulus {
    inner: f64,
    outer: f64,
}

impl Annulus {
    /// The annulus between two finite radii, `0 < inner < outer`.
    pub fn new(inner: f64, outer: f64) -> Result<Self> {
        if inner > 0.0 && inner < outer && outer.is_finite() {
            Ok(Self { inner, outer })
        } else {
            Err(MathError::new(
                "Annulus",
                "0 < inner radius a < outer radius b, both finite",
                format!("a = {inner}, b = {outer}"),
            ))
        }
    }

    /// The inner radius a.
    pub fn inner(&self) -> f64 {
        self.inner
    }

    /// The outer radius b.
    pub fn outer(&self) -> f64 {
        self.outer
    }

    /// The period of ln r: `ln(b/a)`.
    pub fn period(&self) -> f64 {
        (self.outer / self.inner).ln()
    }

    /// The base frequency `w = 2 pi / ln(b/a)`.
    pub fn frequency(&self) -> f64 {
        std::f64::consts::TAU / self.period()
    }

    /// Whether `a <= r < b`.
    pub fn contains(&self, r: f64) -> bool {
        (self.inner..self.outer).contains(&r)
    }
}

/// A function on an annulus, given by its coefficients with `|k1| <= order[0]`, `|k2| <= order[1]`.
///
/// Steering rotates and scales the function by multiplying coefficients:
/// ```
/// use num_complex::Complex64;
/// use sren_math::{Annulus, FourierArgand};
///
/// # fn main() -> sren_math::Result<()> {
/// let annulus = Annulus::new(1.0, 20.0)?;
/// let bump = |r: f64, theta: f64| {
///     Complex64::from((-2.0 * (r / 4.0).ln().powi(2)).exp() * theta.cos())
/// };
/// let h = FourierArgand::analyse(annulus, 0.0, [1, 12], bump)?;
/// assert!(h.truncation_error(bump) < 0.02);
///
/// let steered = h.steered(1.5, 0.3)?;
/// let expected = bump(6.0 / 1.5, 1.0 - 0.3);
/// assert!((steered.evaluate(6.0, 1.0) - expected).norm() < 0.02);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FourierArgand {
    annulus: Annulus,
    power: f64,
    order: [usize; 2],
    coefficients: Vec<Complex64>,
}

impl FourierArgand {
    /// The representation with the given coefficients: `k1 = -order[0]` first, k2 varies fastest.
    /// Orders are at most 1024.
    pub fn new(
        annulus: Annulus,
        power: f64,
        order: [usize; 2],
        coefficients: Vec<Complex64>,
    ) -> Result<Self> {
        let expected = coefficient_count("FourierArgand", order)?;
        if coefficients.len() != expected {
            return Err(MathError::new(
                "FourierArgand",
                format!("{expected} coefficients for order {order:?}"),
                format!("{}", coefficients.len()),
            ));
        }
        Ok(Self { annulus, power, order, coefficients })
    }

    /// The coefficients of `h(r, theta)`, by the rectangle rule, which is exact for a function
    /// that is itself of this form with fewer terms than samples. Orders are at most 1024.
    pub fn analyse(
        annulus: Annulus,
        power: f64,
        order: [usize; 2],
        h: impl Fn(f64, f64) -> Complex64,
    ) -> Result<Self> {
        let count = coefficient_count("FourierArgand::analyse", order)?;
        let samples = Samples::of(&annulus, power, order, &h);
        let [k1_max, k2_max] = order.map(|k| k as i64);
        let mut coefficients = Vec::with_capacity(count);
        for k1 in -k1_max..=k1_max {
            for k2 in -k2_max..=k2_max {
                coefficients.push(samples.project(k1, k2, annulus.frequency()));
            }
        }
        Ok(Self { annulus, power, order, coefficients })
    }

    /// The domain of the function.
    pub fn annulus(&self) -> &Annulus {
        &self.annulus
    }

    /// `h_{k1,k2}`, zero beyond the order.
    pub fn coefficient(&self, k1: i64, k2: i64) -> Complex64 {
        let [k1_max, k2_max] = self.order.map(|k| k as i64);
        if k1.unsigned_abs() > k1_max as u64 || k2.unsigned_abs() > k2_max as u64 {
            return Complex64::ZERO;
        }
        self.coefficients[((k1 + k1_max) * (2 * k2_max + 1) + k2 + k2_max) as usize]
    }

    /// `h(r, theta)`; zero outside the annulus.
    pub fn evaluate(&self, r: f64, theta: f64) -> Complex64 {
        if !self.annulus.contains(r) {
            return Complex64::ZERO;
        }
        let (rho, w) = (r.ln(), self.annulus.frequency());
        let sum: Complex64 = self
            .terms()
            .map(|(k1, k2, c)| c * Complex64::cis(k1 as f64 * theta + k2 as f64 * w * rho))
            .sum();
        sum * r.powf(self.power)
    }

    /// The function rotated by `angle` and enlarged by `scale`: `h(r / scale, theta - angle)`
    /// wherever `r / scale` is inside the annulus; elsewhere the cyclic continuation from the other
    /// end, weighted by `(r / scale)^m`.
    pub fn steered(&self, scale: f64, angle: f64) -> Result<Self> {
        if !(scale.is_finite() && scale > 0.0 && angle.is_finite()) {
            return Err(MathError::new(
                "FourierArgand::steered",
                "a finite scale > 0 and a finite angle",
                format!("scale {scale}, angle {angle}"),
            ));
        }
        let (shift, w) = (scale.ln(), self.annulus.frequency());
        let weight = scale.powf(-self.power);
        let coefficients = self
            .terms()
            .map(|(k1, k2, c)| {
                c * Complex64::cis(-(k1 as f64) * angle - k2 as f64 * w * shift) * weight
            })
            .collect();
        Ok(Self { coefficients, ..self.clone() })
    }

    /// The relative truncation error: the L2 norm of the difference to `h` over that of `h`, in the
    /// measure `r^(-2m) d(ln r) d(theta)` in which the terms are orthogonal.
    pub fn truncation_error(&self, h: impl Fn(f64, f64) -> Complex64) -> f64 {
        let difference = |r: f64, theta: f64| h(r, theta) - self.evaluate(r, theta);
        let missed = Samples::of(&self.annulus, self.power, self.order, &difference).energy();
        let total = Samples::of(&self.annulus, self.power, self.order, &h).energy();
        if missed == 0.0 { 0.0 } else { (missed / total).sqrt() }
    }

    /// Every `(k1, k2, h_{k1,k2})`.
    fn terms(&self) -> impl Iterator<Item = (i64, i64, Complex64)> + '_ {
        let [k1_max, k2_max] = self.order.map(|k| k as i64);
        let orders =
            (-k1_max..=k1_max).flat_map(move |k1| (-k2_max..=k2_max).map(move |k2| (k1, k2)));
        orders.zip(&self.coefficients).map(|((k1, k2), c)| (k1, k2, *c))
    }
}

/// Number of coefficients of an order.
fn coefficient_count(operation: &'static str, order: [usize; 2]) -> Result<usize> {
    if order.iter().any(|k| *k > MAX_ORDER) {
        let expected = format!("orders up to {MAX_ORDER}");
        return Err(MathError::new(operation, expected, format!("{order:?}")));
    }
    Ok((2 * order[0] + 1) * (2 * order[1] + 1))
}

/// `h r^-m` on a regular grid in (theta, ln r).
struct Samples {
    values: Vec<(f64, f64, Complex64)>,
}

impl Samples {
    fn of(
        annulus: &Annulus,
        power: f64,
        order: [usize; 2],
        h: &impl Fn(f64, f64) -> Complex64,
    ) -> Self {
        let count = order.map(|k| (OVERSAMPLING * (2 * k + 1)).max(MIN_SAMPLES));
        let start = annulus.inner.ln();
        let mut values = Vec::with_capacity(count[0] * count[1]);
        for j in 0..count[1] {
            // Half a cell in: rounding at ln a and ln b cannot leave the annulus.
            let rho = start + annulus.period() * (j as f64 + 0.5) / count[1] as f64;
            let (r, weight) = (rho.exp(), (-power * rho).exp());
            for i in 0..count[0] {
                let theta = std::f64::consts::TAU * i as f64 / count[0] as f64;
                values.push((theta, rho, h(r, theta) * weight));
            }
        }
        Self { values }
    }

    fn project(&self, k1: i64, k2: i64, w: f64) -> Complex64 {
        let sum: Complex64 = self
            .values
            .iter()
            .map(|(theta, rho, v)| v * Complex64::cis(-(k1 as f64) * theta - k2 as f64 * w * rho))
            .sum();
        sum / self.values.len() as f64
    }

    fn energy(&self) -> f64 {
        self.values.iter().map(|(_, _, v)| v.norm_sqr()).sum::<f64>() / self.values.len() as f64
    }
}
