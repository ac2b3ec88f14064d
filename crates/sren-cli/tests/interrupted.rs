//! Training that is interrupted or killed, and resumed.

#![cfg(unix)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus};

use serde_json::Value;
use support::{command, nothing, sren, succeeds, text};

/// Short epochs; the seed and thread count are the same for all runs.
fn arguments<'a>(epochs: &'a str, out: &'a str) -> Vec<&'a str> {
    arguments_with(epochs, "16", out)
}

fn arguments_with<'a>(epochs: &'a str, test_images: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["train", "--preset", "quick", "--images", "64", "--epochs", epochs];
    arguments.extend([
        "--batch",
        "32",
        "--threads",
        "2",
        "--test-images",
        test_images,
        "--out",
        out,
    ]);
    arguments
}

/// A run that is watched by the lines it writes. It is killed if a test fails.
struct Run {
    child: Child,
    lines: BufReader<ChildStderr>,
    written: String,
}

impl Run {
    fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Self { child, lines, written: String::new() }
    }

    /// Reads one more line, if there is one.
    fn line(&mut self) -> Option<&str> {
        let start = self.written.len();
        let read = self.lines.read_line(&mut self.written).unwrap();
        (read > 0).then(|| &self.written[start..])
    }

    /// Waits for the line about the end of an epoch.
    fn wait_for_epoch(&mut self, epoch: usize) {
        let begin = format!("epoch {epoch}: ");
        loop {
            match self.line() {
                Some(line) if line.starts_with(&begin) => return,
                Some(_) => {}
                None => panic!("ended without {begin:?}: {}", self.written),
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for the end.
    fn end(mut self) -> (ExitStatus, String) {
        while self.line().is_some() {}
        (self.child.wait().unwrap(), std::mem::take(&mut self.written))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Loss and accuracies of all epochs of a run.
fn metrics(run: &Path) -> Vec<[Value; 3]> {
    let lines = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let epoch = |line: &str| {
        let epoch: Value = serde_json::from_str(line).unwrap();
        ["loss", "accuracy", "validation_accuracy"].map(|name| epoch[name].clone())
    };
    lines.lines().map(epoch).collect()
}

/// A run far too long to end by itself is interrupted, and resumed until two more epochs are done.
/// Its epochs are those of a run that was not interrupted in between.
#[test]
fn an_interrupted_run_saves_its_state_and_resumes_bit_for_bit() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let path = nothing(signal);
        let mut run = Run::start(&arguments("100000", text(&path)));
        run.wait_for_epoch(1);
        run.signal(signal);
        let (status, written) = run.end();
        assert_eq!(status.code(), Some(code), "{written}");
        let last = written.lines().last().unwrap();
        let resume = format!("stopped and saved; resume with: sren train --resume {}", text(&path));
        assert_eq!(last, resume);
        assert!(!path.join("report.html").exists());
        let epochs = metrics(&path).len() + 2;

        let mut resumed = Run::start(&["train", "--resume", text(&path), "--threads", "2"]);
        resumed.wait_for_epoch(epochs);
        resumed.signal("TERM");
        assert_eq!(resumed.end().0.code(), Some(143));
        let whole_path = nothing("whole-epochs");
        let mut whole = Run::start(&arguments("100000", text(&whole_path)));
        whole.wait_for_epoch(epochs);
        drop(whole);
        assert_eq!(metrics(&path)[..epochs], metrics(&whole_path)[..epochs], "{signal}");
    }
}

/// After training there is nothing to save: one signal is enough.
#[test]
fn one_signal_ends_the_final_evaluation() {
    let path = nothing("evaluation");
    let mut run = Run::start(&arguments_with("1", "10000", text(&path)));
    run.wait_for_epoch(1);
    run.signal("INT");
    let (status, written) = run.end();
    assert_eq!(status.code(), Some(130), "{written}");
    assert!(!written.contains("stopped and saved"), "{written}");
}

#[test]
fn a_killed_run_ends_with_the_same_weights() {
    let (whole, killed) = (nothing("whole"), nothing("killed"));
    succeeds(&sren(&arguments("3", text(&whole))));
    let mut run = Run::start(&arguments("3", text(&killed)));
    run.wait_for_epoch(1);
    drop(run);
    let resume = ["train", "--resume", text(&killed), "--threads", "2", "--test-images", "16"];
    succeeds(&sren(&resume));
    for file in ["model.safetensors", "checkpoint/state.safetensors"] {
        let [expected, found] = [&whole, &killed].map(|path| fs::read(path.join(file)).unwrap());
        assert!(found == expected, "{file} differs");
    }
}
