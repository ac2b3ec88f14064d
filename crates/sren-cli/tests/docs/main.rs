//! The README, the contributor pages and the book: every link leads somewhere, every command shown
//! is one that the binary parses, and the README stays short.

mod command_line;
mod markdown;
mod shown;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use markdown::Page;

/// Most words of the README, code included.
const README_WORDS: usize = 900;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// README, contributor pages and all pages of the book.
fn pages() -> Vec<PathBuf> {
    let names = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "python/README.md"];
    let mut found = names.map(|name| root().join(name)).to_vec();
    collect(&root().join("docs"), &mut found);
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

fn read(path: &Path) -> Page {
    Page::parse(&fs::read_to_string(path).unwrap())
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// What is wrong with the relative links of the page at `path`.
fn link_faults(path: &Path, page: &Page) -> Vec<String> {
    let folder = path.parent().unwrap();
    let fault = |link: &markdown::Link| -> Option<String> {
        if link.is_external() {
            return None;
        }
        let (file, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
        let target = folder.join(file);
        if !file.is_empty() && !target.exists() {
            return Some(format!("{} does not exist", link.target));
        }
        let anchors = match file {
            "" => page.anchors(),
            _ if anchor.is_empty() || !file.ends_with(".md") => BTreeSet::new(),
            _ => read(&target).anchors(),
        };
        let known = anchor.is_empty() || anchors.contains(anchor);
        (!known).then(|| format!("{} has no heading for its anchor", link.target))
    };
    let line = |link: &markdown::Link| {
        fault(link).map(|fault| format!("{}:{}: {fault}", name(path), link.line))
    };
    page.links.iter().filter_map(line).collect()
}

fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn relative_links_lead_to_files_and_headings() {
    let pages = pages();
    let links: usize = pages.iter().map(|path| read(path).links.len()).sum();
    assert!(links > 30, "only {links} links found");
    let faults: Vec<String> =
        pages.iter().flat_map(|path| link_faults(path, &read(path))).collect();
    assert_none(&faults);
}

#[test]
fn summary_lists_every_page_of_the_book() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> =
        read(&summary).links.iter().map(|link| docs.join(&link.target)).collect();
    let mut there = Vec::new();
    collect(&docs, &mut there);
    let there: BTreeSet<PathBuf> = there.into_iter().filter(|path| *path != summary).collect();
    assert_eq!(listed, there);
}

#[test]
fn pages_of_the_book_link_inside_of_it() {
    let mut there = Vec::new();
    collect(&root().join("docs"), &mut there);
    for path in there {
        for link in read(&path).links {
            let outside = !link.is_external() && link.target.starts_with("../");
            assert!(!outside, "{}:{}: {}", name(&path), link.line, link.target);
        }
    }
}

#[test]
fn commands_shown_are_parsed_by_the_binary() {
    let (mut faults, mut count) = (Vec::new(), 0);
    for path in pages() {
        for shown in shown::commands(&read(&path)) {
            count += 1;
            if let Err(fault) = command_line::check(&shown) {
                faults.push(format!("{}:{}: {}: {fault}", name(&path), shown.line, shown.text()));
            }
        }
    }
    assert!(count > 60, "only {count} commands found");
    assert_none(&faults);
}

#[test]
fn examples_shown_exist() {
    for path in pages() {
        let page = read(&path);
        let spans = page.spans.iter().map(|span| span.text.as_str());
        let code = page.blocks.iter().flat_map(|block| block.text.lines());
        for line in spans.chain(code).filter(|line| line.starts_with("cargo run ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let after = |flag: &str| words.iter().position(|w| *w == flag).map(|at| words[at + 1]);
            if let Some(example) = after("--example") {
                let package = after("-p").unwrap_or("sren-cli");
                let file = format!("crates/{package}/examples/{example}.rs");
                assert!(root().join(&file).exists(), "{}: {file}", name(&path));
            }
        }
    }
}

#[test]
fn readme_is_short() {
    let words = fs::read_to_string(root().join("README.md")).unwrap().split_whitespace().count();
    assert!(words <= README_WORDS, "{words} words");
}

#[test]
fn dead_links_are_found() {
    let text = "# A page\n[dead](docs/none.md) [good](docs/guide.md#limits) ![picture](no.png)\n\
        [anchor](docs/guide.md#none) [own](#a-page) [own, wrong](#b-page) `[code](none.md)`\n\
        [web](https://example.org) [reference]\n\n[reference]: none.md\n\n\
        ```text\n[in code](none.md)\n```\n";
    let faults = link_faults(&root().join("page.md"), &Page::parse(text));
    assert_eq!(
        faults,
        [
            "page.md:2: docs/none.md does not exist",
            "page.md:2: no.png does not exist",
            "page.md:3: docs/guide.md#none has no heading for its anchor",
            "page.md:3: #b-page has no heading for its anchor",
            "page.md:6: none.md does not exist",
        ]
    );
}
