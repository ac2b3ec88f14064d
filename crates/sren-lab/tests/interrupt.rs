//! Signals as a process receives them: the first sets the flag, the second ends it.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;

use sren_lab::interrupt_flag;

const CHILD: &str = "SREN_INTERRUPT_CHILD";
/// Exit code of a child whose parent requested its exit.
const EXIT_REQUESTED: i32 = 7;

/// The child: says when it listens and when the flag is set, then waits for a line.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let flag = interrupt_flag();
    println!("\nready");
    while !flag.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    println!("set");
    let _ = std::io::stdin().read_line(&mut String::new());
    std::process::exit(EXIT_REQUESTED);
}

struct Process {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Process {
    /// Starts the child in a shell that runs `before` first.
    fn start(before: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        let script = format!("{before} exec '{}' --exact child --nocapture", program.display());
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { child, output };
        process.wait_for("ready");
        process
    }

    fn wait_for(&mut self, expected: &str) {
        let mut line = String::new();
        while line.trim() != expected {
            line.clear();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "the child ended without saying {expected:?}");
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    fn request_exit(&mut self) -> ExitStatus {
        self.child.stdin.take().unwrap().write_all(b"end\n").unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_first_signal_sets_the_flag_and_the_process_goes_on() {
    for signal in ["INT", "TERM", "HUP"] {
        let mut process = Process::start("");
        process.signal(signal);
        process.wait_for("set");
        assert_eq!(process.request_exit().code(), Some(EXIT_REQUESTED), "{signal}");
    }
}

#[test]
fn the_second_signal_ends_the_process_with_its_code() {
    for (first, second, code) in [("INT", "INT", 130), ("TERM", "INT", 130), ("INT", "TERM", 143)] {
        let mut process = Process::start("");
        process.signal(first);
        process.wait_for("set");
        process.signal(second);
        assert_eq!(process.child.wait().unwrap().code(), Some(code), "{first} {second}");
    }
}

#[test]
fn a_hangup_that_the_parent_ignores_stays_ignored() {
    let mut process = Process::start("trap '' HUP;");
    process.signal("HUP");
    process.signal("TERM");
    process.wait_for("set");
    assert_eq!(process.request_exit().code(), Some(EXIT_REQUESTED));
}
