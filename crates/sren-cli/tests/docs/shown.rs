//! The `sren` commands that a page shows: in shell blocks, in synopses and in prose.

use super::markdown::Page;

/// One command to check.
#[derive(Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) arguments: Vec<String>,
    pub(crate) line: usize,
    /// Whether it stands there to be run. Prose may name a command without its arguments.
    pub(crate) whole: bool,
}

impl Shown {
    pub(crate) fn text(&self) -> String {
        format!("sren {}", self.arguments.join(" "))
    }
}

pub(crate) fn commands(page: &Page) -> Vec<Shown> {
    let mut found = Vec::new();
    for block in &page.blocks {
        let lines = (block.line..).zip(block.text.lines());
        let commands: Vec<(usize, Vec<String>)> = match block.language.as_str() {
            "sh" => lines
                .flat_map(|(n, text)| shell_line(text).into_iter().map(move |c| (n, c)))
                .collect(),
            "text" => synopses(lines)
                .into_iter()
                .flat_map(|(n, text)| {
                    expand(&text).into_iter().filter_map(|c| arguments_of(&c)).map(move |c| (n, c))
                })
                .collect(),
            _ => Vec::new(),
        };
        found.extend(commands.into_iter().map(|(line, arguments)| Shown {
            arguments,
            line,
            whole: true,
        }));
    }
    for span in &page.spans {
        let commands = expand(&span.text).into_iter().filter_map(|words| arguments_of(&words));
        found.extend(commands.map(|arguments| Shown { arguments, line: span.line, whole: false }));
    }
    found
}

/// The arguments of `sren` in a command: behind its name, or behind `--` of `cargo run`.
fn arguments_of(words: &[String]) -> Option<Vec<String>> {
    let (first, rest) = words.split_first()?;
    let arguments = match first.as_str() {
        "sren" | "target/release/sren" => rest,
        "cargo" if rest.first().is_some_and(|word| word == "run") => {
            let end = rest.iter().position(|word| word == "--")?;
            &rest[end + 1..]
        }
        _ => return None,
    };
    (!arguments.is_empty()).then(|| arguments.to_vec())
}

/// The commands of a line of shell: pipes and lists are taken apart, comments and redirections left.
fn shell_line(text: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    for word in words_of(text) {
        match word.as_str() {
            "|" | "&&" | "||" | ";" | "&" => commands.push(std::mem::take(&mut words)),
            word if word.starts_with('#') => break,
            _ => words.push(word),
        }
    }
    commands.push(words);
    let arguments = |words: Vec<String>| {
        let redirected = words.iter().position(|word| word.starts_with(['>', '<']));
        arguments_of(&words[..redirected.unwrap_or(words.len())])
    };
    commands.into_iter().filter_map(arguments).collect()
}

/// Words of a shell, quotes removed.
fn words_of(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The synopses of a block, each with its line: two spaces end one, lines that start with a bracket
/// continue it, all other indented lines describe it.
fn synopses<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (line, text) in lines {
        let indented = text.starts_with(' ');
        let trimmed = text.trim();
        let shown = trimmed.split_once("  ").map_or(trimmed, |(shown, _)| shown);
        if shown.starts_with("sren ") && !indented {
            found.push((line, shown.to_string()));
        } else if let Some((_, last)) = found.last_mut().filter(|_| shown.starts_with('[')) {
            last.push(' ');
            last.push_str(shown);
        }
    }
    found
}

/// The commands that a synopsis stands for: that without any option, and one for each alternative
/// of each option.
fn expand(synopsis: &str) -> Vec<Vec<String>> {
    let (mut required, mut optional) = (String::new(), Vec::new());
    let mut rest = synopsis;
    while let Some((before, after)) = rest.split_once('[') {
        required += before;
        let (group, after) = after.split_once(']').unwrap_or((after, ""));
        optional.extend(group.split(" | "));
        rest = after;
    }
    required += rest;
    let mut commands = choices(&required);
    let base = commands[0].clone();
    for option in optional {
        commands.extend(choices(option).into_iter().map(|words| [base.clone(), words].concat()));
    }
    commands
}

/// The words of `text`, once for each of the values of a word like `a|b`.
fn choices(text: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    for word in text.split_whitespace() {
        let values: Vec<&str> = word.split('|').map(|v| v.trim_end_matches("...")).collect();
        let with = |command: &Vec<String>| {
            let value = |value: &&str| [command.clone(), vec![value.to_string()]].concat();
            values.iter().map(value).collect::<Vec<_>>()
        };
        commands = commands.iter().flat_map(with).collect();
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(commands: Vec<Vec<String>>) -> Vec<String> {
        commands.iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn shell_lines_are_taken_apart() {
        let line = "find . -name '*.jpg' | sren predict run - --json > out.jsonl";
        assert_eq!(joined(shell_line(line)), ["predict run - --json"]);
        let line = "cargo run --release -- eval 'my run'  # the bundled one";
        assert_eq!(shell_line(line), [["eval", "my run"]]);
        assert!(shell_line("cargo run --release -p sren --example own_model").is_empty());
        assert!(shell_line("# sren none").is_empty());
    }

    #[test]
    fn blocks_of_shell_and_text_and_spans_are_read() {
        let page = "Run `sren info` or `sren`.\n```toml\nsren = 1\n```\n```sh\nsren eval && sren pose x\n\
            ```\n```text\nsren bench [--json]  speed\n```\n";
        let shown = commands(&Page::parse(page));
        let shown: Vec<_> = shown.iter().map(|s| (s.text(), s.line, s.whole)).collect();
        let expected = [
            ("sren eval", 6, true),
            ("sren pose x", 6, true),
            ("sren bench", 9, true),
            ("sren bench --json", 9, true),
            ("sren info", 1, false),
        ];
        assert_eq!(shown, expected.map(|(text, line, whole)| (text.to_string(), line, whole)));
    }

    #[test]
    fn synopses_are_expanded() {
        let block = "sren eval [RUN | --arch a|b] [--json]   what it does\n  \
            [--top K]\n          more of what it does\n";
        let found = synopses((1..).zip(block.lines()));
        assert_eq!(found, [(1, "sren eval [RUN | --arch a|b] [--json] [--top K]".to_string())]);
        let expected = [
            "sren eval",
            "sren eval RUN",
            "sren eval --arch a",
            "sren eval --arch b",
            "sren eval --json",
            "sren eval --top K",
        ];
        assert_eq!(joined(expand(&found[0].1)), expected);
        assert_eq!(joined(expand("predict RUN IMAGE...")), ["predict RUN IMAGE"]);
    }
}
