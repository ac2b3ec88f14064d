//! The command, as a user runs it.

// Every test file has its own copy and uses a part of it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sren"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn sren(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// A path for one test with nothing there.
pub(crate) fn nothing(test: &str) -> PathBuf {
    let name = format!("{}-{test}", env!("CARGO_CRATE_NAME"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

/// A new empty folder for one test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let path = nothing(test);
    fs::create_dir_all(&path).unwrap();
    path
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_str(&succeeds(output)).unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The command fails with code 1 and one last line that holds all of `parts`.
pub(crate) fn assert_fails(arguments: &[&str], parts: &[&str]) {
    let output = sren(arguments);
    let error = said(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    let errors: Vec<&str> = error.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!((errors.len(), error.lines().last()), (1, errors.first().copied()), "{error}");
    for part in parts {
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }
    assert!(output.stdout.is_empty());
}
