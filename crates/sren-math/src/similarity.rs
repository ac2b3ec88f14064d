//! The group Sim(2) of rotations, uniform scalings and translations of the plane.
//!
//! Image coordinates: x to the right, y down, pixel centres at integers. A similarity acts on
//! points by `T x = s R(alpha) x + t`, with `R(alpha) = [[cos, -sin], [sin, cos]]`.

use num_complex::Complex64;

use crate::error::{MathError, Result};

/// How far the linear part of a matrix may be from `s R(alpha)`, relative to its scale.
const MATRIX_TOLERANCE: f64 = 1e-9;

/// `T x = scale * R(angle) x + translation`, with `scale > 0`.
///
/// ```
/// use std::f64::consts::FRAC_PI_2;
/// use sren_math::Similarity;
///
/// # fn main() -> sren_math::Result<()> {
/// let t = Similarity::new(2.0, FRAC_PI_2, [1.0, 0.0])?;
/// assert_eq!(t.apply([3.0, 0.0]), [1.0, 6.0]);
/// assert_eq!(t.inverse().apply([1.0, 6.0]), [3.0, 0.0]);
/// assert_eq!(t.compose(&t).scale(), 4.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity {
    scale: f64,
    angle: f64,
    translation: [f64; 2],
}

impl Similarity {
    /// The identity transform.
    pub const IDENTITY: Self = Self { scale: 1.0, angle: 0.0, translation: [0.0, 0.0] };

    /// `T x = scale * R(angle) x + translation`; `scale` finite and positive, the rest finite.
    pub fn new(scale: f64, angle: f64, translation: [f64; 2]) -> Result<Self> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(MathError::new("Similarity", "a finite scale > 0", format!("{scale}")));
        }
        if !(angle.is_finite() && translation.iter().all(|t| t.is_finite())) {
            return Err(MathError::new(
                "Similarity",
                "a finite angle and translation",
                format!("angle {angle}, translation {translation:?}"),
            ));
        }
        Ok(Self { scale, angle: wrap_angle(angle), translation })
    }

    /// The scale factor s.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The rotation angle alpha in (-pi, pi], from the x axis towards the y axis.
    pub fn angle(&self) -> f64 {
        self.angle
    }

    /// The translation t.
    pub fn translation(&self) -> [f64; 2] {
        self.translation
    }

    /// `T x`.
    pub fn apply(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let z = self.linear() * Complex64::new(x, y);
        [z.re + self.translation[0], z.im + self.translation[1]]
    }

    /// `self` after `other`: `(self * other) x = self (other x)`.
    pub fn compose(&self, other: &Self) -> Self {
        Self {
            scale: self.scale * other.scale,
            angle: wrap_angle(self.angle + other.angle),
            translation: self.apply(other.translation),
        }
    }

    /// The inverse transform.
    pub fn inverse(&self) -> Self {
        let linear =
            Self { scale: 1.0 / self.scale, angle: wrap_angle(-self.angle), translation: [0.0; 2] };
        let [x, y] = linear.apply(self.translation);
        Self { translation: [-x, -y], ..linear }
    }

    /// The same rotation and scaling about `centre` instead of the origin:
    /// `x -> T (x - centre) + centre`.
    pub fn about(&self, centre: [f64; 2]) -> Self {
        let [x, y] = self.apply([-centre[0], -centre[1]]);
        Self { translation: [x + centre[0], y + centre[1]], ..*self }
    }

    /// The homogeneous matrix, row by row.
    pub fn to_matrix(&self) -> [[f64; 3]; 3] {
        let Complex64 { re: a, im: b } = self.linear();
        let [x, y] = self.translation;
        [[a, -b, x], [b, a, y], [0.0, 0.0, 1.0]]
    }

    /// The similarity with this homogeneous matrix. Returns an error for shears, reflections, singular
    /// and projective matrices.
    pub fn from_matrix(m: [[f64; 3]; 3]) -> Result<Self> {
        let invalid = || {
            MathError::new(
                "Similarity::from_matrix",
                "[[a, -b, x], [b, a, y], [0, 0, 1]] with a, b not both 0",
                format!("{m:?}"),
            )
        };
        let scale = m[0][0].hypot(m[1][0]);
        let skew = (m[0][0] - m[1][1]).abs().max((m[0][1] + m[1][0]).abs());
        let affine = m[2] == [0.0, 0.0, 1.0];
        if !affine || skew.is_nan() || skew > MATRIX_TOLERANCE * scale {
            return Err(invalid());
        }
        Self::new(scale, m[1][0].atan2(m[0][0]), [m[0][2], m[1][2]]).map_err(|_| invalid())
    }

    /// The linear part as a complex factor, `s exp(i alpha)`, exact at multiples of 90 degrees.
    fn linear(&self) -> Complex64 {
        let (sin, cos) = sin_cos_exact(self.angle);
        Complex64::new(self.scale * cos, self.scale * sin)
    }
}

/// `angle` wrapped into (-pi, pi].
pub fn wrap_angle(angle: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    if angle > -PI && angle <= PI {
        return angle;
    }
    let wrapped = angle.rem_euclid(TAU);
    if wrapped > PI { wrapped - TAU } else { wrapped }
}

/// Sine and cosine, exactly 0 and +-1 at multiples of 90 degrees, so that such a warp moves pixels
/// without interpolation.
fn sin_cos_exact(angle: f64) -> (f64, f64) {
    let (sin, cos) = angle.sin_cos();
    let snap = |v: f64| if v.abs() < 1e-15 { 0.0 } else { v };
    (snap(sin), snap(cos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_90_degree_rotation_takes_x_to_y_exactly() {
        let rotation = Similarity::new(1.0, std::f64::consts::FRAC_PI_2, [0.0; 2]).unwrap();
        assert_eq!(rotation.apply([1.0, 0.0]), [0.0, 1.0]);
        assert_eq!(rotation.apply([0.0, 1.0]), [-1.0, 0.0]);
    }

    #[test]
    fn invalid_parameters_and_matrices_are_errors() {
        assert!(Similarity::new(0.0, 0.0, [0.0; 2]).is_err());
        assert!(Similarity::new(f64::NAN, 0.0, [0.0; 2]).is_err());
        assert!(Similarity::new(1.0, f64::INFINITY, [0.0; 2]).is_err());
        let last = [0.0, 0.0, 1.0];
        for m in [
            [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], last],
            [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], last],
            [[0.0; 3], [0.0; 3], last],
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.1, 0.0, 1.0]],
            [[f64::NAN; 3]; 3],
        ] {
            assert!(Similarity::from_matrix(m).is_err(), "{m:?}");
        }
    }
}
