//! The `sren` command: arguments, output and exit codes. What it does is in `sren-lab`.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage. Results go to standard output, with `--json` one
//! document and nothing else; everything else goes to standard error.

mod commands;
mod output;
mod progress;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use sren_lab::LineAllocator;

#[global_allocator]
static ALLOCATOR: LineAllocator = LineAllocator;

/// Image recognition that still works when the object is rotated, resized or moved.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Train(commands::train::Train),
    Eval(commands::eval::Eval),
    Predict(commands::predict::Predict),
    Table(commands::table::Table),
    Info(commands::info::Info),
    Pose(commands::pose::Pose),
    Equivariance(commands::equivariance::Equivariance),
    Stability(commands::stability::Stability),
    Visualize(commands::visualize::Visualize),
    Bench(commands::bench::Bench),
}

/// What stops a command: one line for the user.
type Failure = Box<dyn std::error::Error>;

/// Ends with code 2: arguments that do not go together.
fn wrong_usage(kind: ErrorKind, says: &str) -> ! {
    Arguments::command().error(kind, says).exit()
}

fn main() -> ExitCode {
    sren_lab::keep_freed_memory();
    let done = match Arguments::parse().command {
        Command::Predict(command) => return ended(command.run()),
        Command::Train(command) => command.run(),
        Command::Eval(command) => command.run(),
        Command::Table(command) => command.run(),
        Command::Info(command) => command.run(),
        Command::Pose(command) => command.run(),
        Command::Equivariance(command) => command.run(),
        Command::Stability(command) => command.run(),
        Command::Visualize(command) => command.run(),
        Command::Bench(command) => command.run(),
    };
    ended(done.map(|()| ExitCode::SUCCESS))
}

/// The exit code; what failed is told in one line.
fn ended(done: Result<ExitCode, Failure>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
