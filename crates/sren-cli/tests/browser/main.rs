//! The page of `sren serve` in headless Chromium: what a visitor does, and what they see.
//!
//! Chromium is driven by `visit.mjs` with playwright-core. `scripts/install_browser.sh` installs both;
//! without them these tests are skipped. Screenshots are in `target/tmp/page`.

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What is needed, or why a test is skipped.
fn browser() -> Result<(PathBuf, PathBuf), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| {
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.exists())
    };
    let missing = |what: &str| format!("{what} is not installed; see scripts/install_browser.sh");
    let chromium = find("chromium").ok_or_else(|| missing("chromium"))?;
    find("node").ok_or_else(|| missing("node"))?;
    let modules = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../browser/node_modules");
    if !modules.join("playwright-core").exists() {
        return Err(missing("playwright-core"));
    }
    Ok((chromium, modules))
}

struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn visit(name: &str) {
    let (chromium, modules) = match browser() {
        Ok(found) => found,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_sren"))
        .args(["serve", "--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _service = Service(child);
    let address = line.trim().split_once(" at ").expect("an address").1;
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    std::fs::create_dir_all(&pictures).unwrap();
    let output = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/visit.mjs"))
        .args([name, address])
        .env("CHROMIUM", chromium)
        .env("NODE_MODULES", modules)
        .env("PICTURES", pictures)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn a_drawing_is_read_at_any_angle() {
    visit("draw");
}

#[test]
fn a_test_digit_stays_what_it_is_for_sren_only() {
    visit("rotate");
}

#[test]
fn a_photograph_is_read() {
    visit("photograph");
}

#[test]
fn it_fits_phones_and_desks_light_and_dark_and_works_by_keyboard() {
    visit("appearance");
}
