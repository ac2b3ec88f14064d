//! Local maxima of a sampled score over scale.
//!
//! A maximum at the end of the range does not move with the image, so only interior maxima are
//! poses. The ends, and every other maximum, compete with the best one: where two are nearly equal,
//! a small change of the image swaps them.

/// An interior local maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Location in samples, refined by the parabola through three samples, within half a sample.
    pub location: f64,
    /// Height of the parabola.
    pub height: f64,
    /// Index of the highest sample.
    pub index: usize,
}

impl Peak {
    /// Weights on the samples `index - 1, index, index + 1` that interpolate at `location`.
    pub fn lagrange(&self) -> [f64; 3] {
        let d = self.location - self.index as f64;
        [0.5 * d * (d - 1.0), 1.0 - d * d, 0.5 * d * (d + 1.0)]
    }
}

/// The interior local maxima of `scores`, highest first, at most `count` of them.
pub fn interior_peaks(scores: &[f32], count: usize, out: &mut Vec<Peak>) {
    out.clear();
    for index in 1..scores.len().saturating_sub(1) {
        let [left, middle, right] = [scores[index - 1], scores[index], scores[index + 1]];
        if middle > left && middle >= right {
            let [left, middle, right] = [left, middle, right].map(f64::from);
            // middle > left and middle >= right: the curvature is positive.
            let offset = (0.5 * (right - left) / (2.0 * middle - left - right)).clamp(-0.5, 0.5);
            let height = middle + 0.25 * (right - left) * offset;
            let peak = Peak { location: index as f64 + offset, height, index };
            let at = out.partition_point(|other| other.height >= height);
            if at < count {
                out.insert(at, peak);
                out.truncate(count);
            }
        }
    }
}

/// The height of the peak at `index` above the higher of the lowest scores on its two sides, relative
/// to `height`: 0 if the scores do not fall off, 1 if they fall to zero on both sides.
pub fn prominence(scores: &[f32], index: usize, height: f64) -> f64 {
    let lowest = |side: &[f32]| side.iter().copied().fold(f32::INFINITY, f32::min);
    let base = lowest(&scores[..index]).max(lowest(&scores[index + 1..]));
    ((height - f64::from(base)) / height).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peaks_of(scores: &[f32]) -> Vec<Peak> {
        let mut peaks = Vec::new();
        interior_peaks(scores, 4, &mut peaks);
        peaks
    }

    #[test]
    fn a_parabola_is_found_exactly() {
        let scores: Vec<f32> = (0..9).map(|i| 5.0 - (i as f32 - 3.25).powi(2)).collect();
        let peaks = peaks_of(&scores);
        assert_eq!(peaks.len(), 1);
        assert!((peaks[0].location - 3.25).abs() < 1e-6);
        assert!((peaks[0].height - 5.0).abs() < 1e-6);
    }

    #[test]
    fn the_ends_are_never_peaks_and_the_highest_comes_first() {
        assert!(peaks_of(&[3.0, 2.0, 1.0]).is_empty());
        assert!(peaks_of(&[1.0, 1.0, 1.0, 1.0]).is_empty());
        assert!(peaks_of(&[]).is_empty());
        let peaks = peaks_of(&[0.0, 2.0, 1.0, 3.0, 0.0, 9.0]);
        assert_eq!(peaks.iter().map(|p| p.index).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn prominence_is_measured_from_the_higher_side() {
        assert_eq!(prominence(&[1.0, 4.0, 0.0], 1, 4.0), 0.75);
        assert_eq!(prominence(&[2.0, 4.0, 3.0, 1.0], 1, 4.0), 0.5);
    }
}
