//! The learning rate over a run, as a part of its peak.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};

/// How the learning rate changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Schedule {
    /// Up from a 25th over the first `warmup` of the run, then down to nearly 0, both by a cosine.
    OneCycle {
        /// Part of the run that rises, 0 to 1.
        warmup: f64,
    },
    /// From the peak down to 0 by half a cosine.
    Cosine,
    /// Times `factor` after every `every` epochs.
    Step {
        /// Epochs at one rate.
        every: usize,
        /// What the rate is then multiplied with.
        factor: f64,
    },
}

/// A one-cycle schedule starts at this part of its peak
const ONE_CYCLE_START: f64 = 1.0 / 25.0;
/// and ends at this.
const ONE_CYCLE_END: f64 = 1.0 / 250_000.0;

impl Schedule {
    /// Returns an error that begins with `name` if its numbers are none of a schedule.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        match *self {
            Self::OneCycle { warmup } if !(0.0..1.0).contains(&warmup) => {
                Err(LabError::invalid(name, "a warmup in 0..1", warmup.to_string()))
            }
            Self::Step { every, factor } if every == 0 || !(factor > 0.0 && factor <= 1.0) => {
                let expected =
                    "a schedule with every of at least 1 and a factor above 0, at most 1";
                Err(LabError::invalid(name, expected, format!("{every} and {factor}")))
            }
            _ => Ok(()),
        }
    }

    /// The part of the peak learning rate at `step` of `steps`, of which an epoch has `epoch_steps`.
    pub fn at(&self, step: usize, steps: usize, epoch_steps: usize) -> f64 {
        let part = step as f64 / steps.max(1) as f64;
        match *self {
            Self::OneCycle { warmup } if part < warmup => {
                cosine(ONE_CYCLE_START, 1.0, part / warmup)
            }
            Self::OneCycle { warmup } => {
                cosine(1.0, ONE_CYCLE_END, (part - warmup) / (1.0 - warmup))
            }
            Self::Cosine => cosine(1.0, 0.0, part),
            Self::Step { every, factor } => {
                factor.powf((step / epoch_steps.max(1) / every.max(1)) as f64)
            }
        }
    }
}

/// From `a` at 0 to `b` at 1.
fn cosine(a: f64, b: f64, t: f64) -> f64 {
    b + (a - b) * 0.5 * (1.0 + (PI * t.clamp(0.0, 1.0)).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_where_they_should_be() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        let cycle = Schedule::OneCycle { warmup: 0.25 };
        near(cycle.at(0, 100, 10), ONE_CYCLE_START);
        near(cycle.at(25, 100, 10), 1.0);
        near(cycle.at(100, 100, 10), ONE_CYCLE_END);
        near(Schedule::Cosine.at(50, 100, 10), 0.5);
        let step = Schedule::Step { every: 2, factor: 0.1 };
        near(step.at(19, 100, 10), 1.0);
        near(step.at(20, 100, 10), 0.1);
        near(step.at(40, 100, 10), 0.01);
        near(Schedule::OneCycle { warmup: 0.0 }.at(0, 10, 1), 1.0);
    }
}
