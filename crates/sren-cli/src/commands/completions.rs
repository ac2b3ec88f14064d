//! `sren completions`: completion of commands and options in a shell.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::output::print;
use crate::{Arguments, Failure};

/// Print the completions of a shell, to be loaded by it.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Arguments::command(), "sren", &mut script);
        print(String::from_utf8(script)?.trim_end())
    }
}
