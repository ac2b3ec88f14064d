//! The template that the pose estimator matches, rotated and scaled, at every pixel.
//!
//! `h(r, theta) = r^-2 g(ln r) sum_{k1} a_{k1} cos(k1 theta)`: a few angular harmonics times a
//! bump in ln r. It equals the representation of [`FourierArgand`] with m = -2 and
//! `h_{+-k1,k2} = a_{k1} / 2 * exp(-(tau w k2)^2 / 2) * tau w / sqrt(2 pi)`.

use num_complex::Complex64;

use crate::error::{MathError, Result};
use crate::fourier_argand::{Annulus, FourierArgand, MAX_ORDER};

/// The template and the weight `lambda^(q-2)` of its correlation at scale lambda.
#[derive(Debug, Clone, PartialEq)]
pub struct PoseTemplate {
    /// Width of the bump in ln r.
    pub tau: f64,
    /// Scale weight: 0 is L1, 1 is L2 normalisation of the template, 2 the paper's literal
    /// (unnormalised) correlation, for which the largest scale wins at most pixels.
    pub q: f64,
    /// Angular harmonics `(k1, a_{k1})`, k1 up to 1024.
    pub angular: Vec<(u32, f64)>,
    /// Truncates the bump to radial frequencies `|k2| <= K2`, at most 1024, which makes it cyclic in
    /// ln r as in the paper; `None` is the bump itself.
    pub radial_order: Option<usize>,
}

impl Default for PoseTemplate {
    /// One angular lobe (the direction of the brighter side); tau and q are tuned on training images.
    fn default() -> Self {
        Self { tau: 0.4, q: -0.25, angular: vec![(1, 1.0)], radial_order: None }
    }
}

impl PoseTemplate {
    /// The default template with the paper's literal weight, q = 2.
    pub fn paper() -> Self {
        Self { q: 2.0, ..Self::default() }
    }

    /// Returns an error if the parameters do not describe a template.
    pub fn check(&self) -> Result<()> {
        const OPERATION: &str = "PoseTemplate";
        if !(self.tau.is_finite() && self.tau > 0.0) {
            return Err(MathError::new(OPERATION, "a width tau > 0", format!("{}", self.tau)));
        }
        if !self.q.is_finite() {
            return Err(MathError::new(OPERATION, "a finite weight q", format!("{}", self.q)));
        }
        if self.angular.len() > crate::pose::MAX_TERMS {
            return Err(MathError::new(
                OPERATION,
                format!("at most {} angular harmonics", crate::pose::MAX_TERMS),
                format!("{}", self.angular.len()),
            ));
        }
        let oriented = self.angular.iter().any(|(k1, a)| *k1 > 0 && *a != 0.0);
        if !oriented || self.angular.iter().any(|(_, a)| !a.is_finite()) {
            return Err(MathError::new(
                OPERATION,
                "angular harmonics with finite weights, one with k1 > 0 not 0",
                format!("{:?}", self.angular),
            ));
        }
        let k1_max = self.angular.iter().map(|(k1, _)| *k1 as usize).max();
        let order = k1_max.max(self.radial_order).unwrap_or(0);
        if order > MAX_ORDER {
            let expected = format!("angular and radial orders up to {MAX_ORDER}");
            return Err(MathError::new(OPERATION, expected, order.to_string()));
        }
        Ok(())
    }

    /// The bump at `delta = ln r - ln lambda`.
    pub fn radial(&self, delta: f64, annulus: &Annulus) -> f64 {
        match self.radial_order {
            None => (-0.5 * (delta / self.tau).powi(2)).exp(),
            Some(order) => {
                let w = annulus.frequency();
                (-(order as i64)..=order as i64)
                    .map(|k2| self.radial_coefficient(k2, w) * (k2 as f64 * w * delta).cos())
                    .sum()
            }
        }
    }

    /// The template as a representation on `annulus`, with radial frequencies `|k2| <= order`.
    pub fn fourier_argand(&self, annulus: Annulus, order: usize) -> Result<FourierArgand> {
        self.check()?;
        let order = self.radial_order.map_or(order, |own| own.min(order));
        if order > MAX_ORDER {
            let expected = format!("a radial order up to {MAX_ORDER}");
            return Err(MathError::new(
                "PoseTemplate::fourier_argand",
                expected,
                order.to_string(),
            ));
        }
        let order = order as i64;
        let k1_max = self.angular.iter().map(|(k1, _)| *k1).max().unwrap_or(0) as i64;
        let mut coefficients = Vec::new();
        for k1 in -k1_max..=k1_max {
            let part = if k1 == 0 { 1.0 } else { 0.5 };
            let a: f64 =
                self.angular.iter().filter(|(k, _)| *k as i64 == k1.abs()).map(|(_, a)| a).sum();
            for k2 in -order..=order {
                let c = part * a * self.radial_coefficient(k2, annulus.frequency());
                coefficients.push(Complex64::from(c));
            }
        }
        FourierArgand::new(annulus, -2.0, [k1_max as usize, order as usize], coefficients)
    }

    /// The Fourier coefficient of the bump, repeated with period `2 pi / w`.
    fn radial_coefficient(&self, k2: i64, w: f64) -> f64 {
        let x = self.tau * w;
        (-0.5 * (x * k2 as f64).powi(2)).exp() * x / std::f64::consts::TAU.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_its_own_representation() {
        let annulus = Annulus::new(0.25, 34.0).unwrap();
        let template = PoseTemplate {
            angular: vec![(0, 0.3), (1, 1.0), (3, -0.5)],
            ..PoseTemplate::default()
        };
        let h = template.fourier_argand(annulus, 12).unwrap().steered(3.0, 0.7).unwrap();
        // At least two widths from the ends, where the bump does not wrap around.
        for (r, theta) in [(1.0f64, 0.3f64), (3.0, -2.0), (5.5, 1.0), (8.0, 3.0)] {
            let angular: f64 = template
                .angular
                .iter()
                .map(|(k, a)| a * (f64::from(*k) * (theta - 0.7)).cos())
                .sum();
            let radial = template.radial((r / 3.0).ln(), &annulus);
            let expected = (r / 3.0).powi(-2) * radial * angular;
            assert!((h.evaluate(r, theta).re - expected).abs() < 1e-5, "{r} {theta}");
            assert!(h.evaluate(r, theta).im.abs() < 1e-12);
        }
    }

    #[test]
    fn few_radial_frequencies_make_the_bump_cyclic() {
        let annulus = Annulus::new(1.0, 20.0).unwrap();
        let bump = PoseTemplate { radial_order: Some(4), ..PoseTemplate::default() };
        let value = bump.radial(0.2, &annulus);
        assert!((bump.radial(0.2 + annulus.period(), &annulus) - value).abs() < 1e-12);
        let exact = PoseTemplate::default();
        assert!(exact.radial(0.2 + annulus.period(), &annulus) < 1e-6 && value > 0.5);
    }
}
