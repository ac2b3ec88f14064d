//! As much of Markdown as these pages use: headings, links, fenced blocks, code spans.

use std::collections::{BTreeSet, HashMap};

/// A link or an image; lines count from 1.
#[derive(Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) target: String,
    pub(crate) line: usize,
}

impl Link {
    pub(crate) fn is_external(&self) -> bool {
        ["https://", "http://", "mailto:"].iter().any(|scheme| self.target.starts_with(scheme))
    }
}

/// A fenced block. `line` is that of its first line of code.
#[derive(Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// Code between backticks.
#[derive(Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) line: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) headings: Vec<String>,
    pub(crate) links: Vec<Link>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) spans: Vec<Span>,
}

impl Page {
    pub(crate) fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut open: Option<Block> = None;
        for (line, text) in (1..).zip(text.lines()) {
            let fence = text.trim_start().strip_prefix("```");
            match (open.take(), fence) {
                (None, Some(language)) => {
                    let language = language.trim().to_string();
                    open = Some(Block { language, text: String::new(), line: line + 1 });
                }
                (Some(block), Some(_)) => page.blocks.push(block),
                (Some(mut block), None) => {
                    block.text += text;
                    block.text.push('\n');
                    open = Some(block);
                }
                (None, None) => page.read_line(text, line),
            }
        }
        assert!(open.is_none(), "a fenced block is not closed");
        page
    }

    fn read_line(&mut self, text: &str, line: usize) {
        if text.starts_with('#') {
            self.headings.push(text.trim_start_matches('#').trim().to_string());
        }
        // Backticks separate prose and code in turns.
        let mut prose = String::new();
        for (index, part) in text.split('`').enumerate() {
            if index % 2 == 0 {
                prose += part;
            } else {
                self.spans.push(Span { text: part.to_string(), line });
            }
        }
        let mut link = |target: &str| {
            let target = target.split_whitespace().next().unwrap_or_default().to_string();
            self.links.push(Link { target, line });
        };
        let definition = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        if let Some((_, target)) = definition {
            link(target);
        }
        for rest in prose.split("](").skip(1) {
            link(rest.split_once(')').map_or(rest, |(target, _)| target));
        }
    }

    /// The anchors of the headings, as GitHub and mdBook make them.
    pub(crate) fn anchors(&self) -> BTreeSet<String> {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let anchor = |heading: &String| {
            let slug = slug(heading);
            let count = seen.entry(slug.clone()).or_default();
            *count += 1;
            if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
        };
        self.headings.iter().map(anchor).collect()
    }
}

fn slug(heading: &str) -> String {
    let kept = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' || c == '-' => c.to_lowercase().next(),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.chars().filter_map(kept).collect()
}

#[test]
fn anchors_are_those_of_headings() {
    let page = Page::parse("# One, `two` (3,000)\n## Again\n## Again\n```sh\n# no heading\n```\n");
    let expected = ["one-two-3000", "again", "again-1"].map(String::from);
    assert_eq!(page.anchors(), BTreeSet::from(expected));
}

#[test]
fn blocks_and_spans_are_separated_from_prose() {
    let page = Page::parse("See `a [b](c)` and [d](e \"title\").\n\n```sh\nsren eval\n```\n");
    assert_eq!(page.links, [Link { target: "e".into(), line: 1 }]);
    assert_eq!(page.spans, [Span { text: "a [b](c)".into(), line: 1 }]);
    let block = Block { language: "sh".into(), text: "sren eval\n".into(), line: 4 };
    assert_eq!(page.blocks, [block]);
}
