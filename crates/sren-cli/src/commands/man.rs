//! `sren man`: manual pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::generate_to;

use crate::output::{create_folder, note};
use crate::{Arguments, Failure};

/// Write the manual pages, sren.1 and one for each command.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder for the pages, such as /usr/local/share/man/man1
    #[arg(short, long, value_name = "DIR", default_value = "man")]
    output: PathBuf,
}

impl Man {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        create_folder(&self.output)?;
        let cannot = |e| format!("{}: cannot be written: {e}", self.output.display());
        generate_to(Arguments::command(), &self.output).map_err(cannot)?;
        note(&format!("manual pages: {}", self.output.display()));
        Ok(())
    }
}
