//! Whether the real binary parses a command, without running it.
//!
//! The arguments are given to the binary with an option behind them that does not exist. clap reads
//! from left to right and reports the first error. If that is the made-up option, everything before
//! it was accepted: subcommand, options, values and the number of positional arguments.

use std::collections::HashMap;
use std::process::{Command, Output};
use std::sync::Mutex;

use super::shown::Shown;

/// An option that no command has.
const PROBE: &str = "--no-such-option-of-sren";

/// What `sren COMMAND --help` says.
#[derive(Debug, Clone)]
struct Help {
    /// Whether the option, `--long` or `-s`, takes a value.
    takes_value: HashMap<String, bool>,
    /// Required positional arguments.
    required: usize,
}

fn run(arguments: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sren")).args(arguments).output().unwrap()
}

impl Help {
    /// The help of `command`, or of `sren` itself for an empty name, asked for once.
    fn of(command: &str) -> Result<Self, String> {
        static KNOWN: Mutex<Option<HashMap<String, Help>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap();
        let known = known.get_or_insert_default();
        if let Some(help) = known.get(command) {
            return Ok(help.clone());
        }
        let words = [command, "--help"].into_iter().filter(|word| !word.is_empty());
        let output = run(&words.map(String::from).collect::<Vec<_>>());
        if !output.status.success() {
            return Err(format!("there is no command {command}"));
        }
        let help = Self::parse(&String::from_utf8(output.stdout).unwrap());
        known.insert(command.to_string(), help.clone());
        Ok(help)
    }

    fn parse(text: &str) -> Self {
        let mut takes_value = HashMap::new();
        for line in text.lines().filter(|line| line.trim_start().starts_with('-')) {
            // "-o, --output <DIR>  Folder ...", the description perhaps on the next line.
            let options = line.trim().split("  ").next().unwrap_or_default();
            let takes = options.contains('<');
            let names = options.split([' ', ',']).filter(|word| word.starts_with('-'));
            takes_value.extend(names.map(|name| (name.to_string(), takes)));
        }
        let usage = text.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
        let positional = usage.split_whitespace().filter(|word| word.starts_with('<'));
        Self { takes_value, required: positional.count() }
    }
}

/// In a synopsis, a value to fill in: `N`, `DIR`, `A,B`, `OUT.png`.
fn is_placeholder(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_uppercase())
}

/// `Err` with what is wrong if the binary does not parse `shown`.
pub(crate) fn check(shown: &Shown) -> Result<(), String> {
    let Some((command, rest)) = shown.arguments.split_first() else {
        return Err("there is no command".into());
    };
    if is_placeholder(command) {
        return Ok(());
    }
    if command.starts_with('-') {
        let known = Help::of("")?.takes_value.contains_key(command);
        return if known { Ok(()) } else { Err(format!("there is no option {command}")) };
    }
    let help = Help::of(command)?;
    // Values are attached, so that each is parsed with its option and not after the probe.
    let (mut arguments, mut positional) = (vec![command.clone()], 0);
    let mut rest = rest.iter();
    while let Some(argument) = rest.next() {
        let is_option = argument.starts_with('-') && argument.len() > 1;
        let takes_value = help.takes_value.get(argument).copied();
        match (is_option, takes_value) {
            (false, _) => {
                positional += 1;
                arguments.push(argument.clone());
            }
            (true, Some(true)) => match rest.next() {
                None => return Err(format!("{argument} takes a value")),
                Some(value) if is_placeholder(value) => {}
                Some(value) => {
                    let equals = if argument.starts_with("--") { "=" } else { "" };
                    arguments.push(format!("{argument}{equals}{value}"));
                }
            },
            (true, Some(false) | None) => arguments.push(argument.clone()),
        }
    }
    if shown.whole && positional < help.required && !arguments.contains(&"--help".into()) {
        return Err(format!("{} positional arguments, {} required", positional, help.required));
    }
    arguments.push(PROBE.to_string());
    let output = run(&arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    let first = message.lines().next().unwrap_or_default();
    let accepted = output.status.code() == Some(2) && first.contains(&format!("'{PROBE}'"));
    if accepted { Ok(()) } else { Err(first.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, whole: bool) -> Result<(), String> {
        let arguments = text.split_whitespace().map(String::from).collect();
        check(&Shown { arguments, line: 1, whole })
    }

    #[test]
    fn good_commands_pass() {
        for text in [
            "eval",
            "eval run --angles -30,30 --scales 0.8,1.2 --json",
            "train --preset quick --epochs N --out DIR --threads 1",
            "predict RUN IMAGE --top K",
            "pose mnist:1 -o OUT.png",
            "equivariance --arch wrn16-8 --images smooth",
            "COMMAND --help",
            "--version",
        ] {
            assert_eq!(checked(text, true), Ok(()), "{text}");
        }
        assert_eq!(checked("predict", false), Ok(()));
    }

    #[test]
    fn bad_commands_are_found() {
        for (text, part) in [
            ("evaluate", "no command evaluate"),
            ("--json", "no option --json"),
            ("eval --helt-out", "--helt-out"),
            ("eval -x", "-x"),
            ("eval one two three", "three"),
            ("eval --sets r,q", "q"),
            ("eval --json=yes", "json"),
            ("train --preset fast", "fast"),
            ("train --arch tiny --epochs 2", "tiny"),
            ("train --model so3", "so3"),
            ("train --epochs", "takes a value"),
            ("train --epochs two", "two"),
            ("train --nothing N", "--nothing"),
            ("bench --repetitions 0", "0"),
            ("table --rows cnn,so4", "so4"),
            ("predict run", "1 positional arguments, 2 required"),
        ] {
            let fault = checked(text, true).expect_err(text);
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }

    #[test]
    fn help_is_read() {
        let help = Help::parse(
            "Does.\n\nUsage: sren do [OPTIONS] <RUN> [IMAGE]...\n\nOptions:\n      \
            --json            Print --all\n  -o, --output <DIR>  Folder\n",
        );
        assert_eq!(help.required, 1);
        assert_eq!(help.takes_value.get("--json"), Some(&false));
        assert_eq!(help.takes_value.get("-o"), Some(&true));
        assert_eq!(help.takes_value.get("--output"), Some(&true));
        assert_eq!(help.takes_value.len(), 3);
    }
}
