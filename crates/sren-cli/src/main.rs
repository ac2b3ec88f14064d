//! The `sren` command: arguments, output and exit codes. The work is done in `sren-lab`.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 130 and 143 interrupted by SIGINT and SIGTERM. Results
//! go to standard output, with `--json` one document (`predict`: one per line) and nothing else;
//! everything else goes to standard error.

mod arguments;
mod commands;
mod output;
mod progress;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use sren_lab::interrupt_code;

// A training step allocates and frees the same large tensors again and again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// mimalloc's option `purge_delay`, which the crate has no name for.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Keeps freed memory for the next tensor. By default it goes back to the system after 10 ms, and the
/// system clears it when it is next needed: a quarter of a ResNet-18's training time.
fn keep_memory() {
    // SAFETY: called before any other thread exists.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}

/// Image recognition that still works when the object is rotated, resized or moved.
#[derive(Debug, Parser)]
#[command(name = "sren", version, arg_required_else_help = true)]
struct Arguments {
    /// Print results and errors only: no progress, no notes
    #[arg(long, short, global = true)]
    quiet: bool,
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
    Serve(commands::serve::Serve),
    Export(commands::export::Export),
    Bench(commands::bench::Bench),
    Completions(commands::completions::Completions),
    Man(commands::man::Man),
}

/// Why a command failed: one line for the user.
type Failure = Box<dyn std::error::Error>;

/// Exits with code 2: arguments that contradict each other.
fn wrong_usage(kind: ErrorKind, message: &str) -> ! {
    Arguments::command().error(kind, message).exit()
}

fn main() -> ExitCode {
    keep_memory();
    let Arguments { quiet, command } = Arguments::parse();
    if quiet {
        output::be_quiet();
    } else {
        progress::install();
    }
    let result = match command {
        Command::Predict(command) => return exit_code(command.run()),
        Command::Train(command) => return exit_code(command.run()),
        Command::Table(command) => return exit_code(command.run()),
        Command::Eval(command) => command.run(),
        Command::Info(command) => command.run(),
        Command::Pose(command) => command.run(),
        Command::Equivariance(command) => command.run(),
        Command::Stability(command) => command.run(),
        Command::Visualize(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Export(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
    };
    exit_code(result.map(|()| ExitCode::SUCCESS))
}

/// The exit code of work that a signal interrupted.
fn interrupted() -> ExitCode {
    interrupt_code().map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The exit code; a failure is printed as one line.
fn exit_code(result: Result<ExitCode, Failure>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(failure) => {
            output::error(&failure);
            ExitCode::FAILURE
        }
    }
}
