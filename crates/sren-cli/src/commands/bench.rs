//! `sren bench`: speed and memory, as ratios.

use clap::Args;
use sren_lab::bench::{Options, run};

use crate::Failure;
use crate::output::{print, print_json};

/// Measure speed against Burn's plain convolution in the same run, and peak memory.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Rounds of which the minimum time is taken
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repetitions: u16,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

impl Bench {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let report = run(&Options { repetitions: self.repetitions.into(), ..Options::default() })?;
        if self.json { print_json(&report) } else { print(&report.to_string()) }
    }
}
