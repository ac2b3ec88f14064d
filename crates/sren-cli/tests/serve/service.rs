//! The real command as a service on a free port.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use sren_data::{Mnist, Split};

use crate::http::{Answer, connect, multipart, multipart_type, read, request, send};

/// A service, which is killed if a test fails.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Service {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sren"))
            .args(["serve", "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some((_, address)) = line.trim().split_once(" at http://") else {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{line:?} {said}");
        };
        let address = address.parse().unwrap();
        Self { child, address }
    }

    /// What `bytes` are answered with.
    pub(crate) fn answer(&self, bytes: &[u8]) -> Answer {
        self.answer_from(Ipv4Addr::LOCALHOST, bytes)
    }

    /// The same for a client of another address.
    pub(crate) fn answer_from(&self, from: Ipv4Addr, bytes: &[u8]) -> Answer {
        let stream = connect(self.address, from);
        send(&stream, bytes);
        read(&stream).expect("an answer")
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.answer(&request("GET", path, &[], b""))
    }

    pub(crate) fn post(&self, path: &str, kind: &str, body: &[u8]) -> Answer {
        self.answer(&request("POST", path, &[("content-type", kind)], body))
    }

    pub(crate) fn post_png(&self, path: &str, body: &[u8]) -> Answer {
        self.post(path, "image/png", body)
    }

    pub(crate) fn post_parts(&self, path: &str, images: &[(&str, &[u8])]) -> Answer {
        self.post(path, &multipart_type(), &multipart(images))
    }

    /// The figure of `/metrics` on the line that begins with `name`, 0 if there is none.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// The service still answers.
    pub(crate) fn assert_alive(&self) {
        assert_eq!(self.get("/healthz").good()["status"], "ok");
        let class =
            self.post_png("/v1/predict", &digit(0)).good()["predictions"][0]["class"].clone();
        assert_eq!(class, "7");
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for the end: exit code, and what it said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    /// The files that it has open, beside sockets and pipes and what the system says of processors.
    #[cfg(target_os = "linux")]
    pub(crate) fn open_files(&self) -> Vec<String> {
        let folder = format!("/proc/{}/fd", self.child.id());
        let links = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        links
            .map(|path| path.display().to_string())
            .filter(|path| !path.starts_with("/dev/null") && path.starts_with('/'))
            .filter(|path| !path.starts_with("/sys/"))
            .collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A test digit as a PNG file.
pub(crate) fn digit(number: usize) -> Vec<u8> {
    png(&digit_image(number))
}

/// A test digit.
pub(crate) fn digit_image(number: usize) -> image::GrayImage {
    static DIGITS: std::sync::OnceLock<Mnist> = std::sync::OnceLock::new();
    let digit = DIGITS.get_or_init(|| Mnist::load(Split::Test).unwrap()).image(number).unwrap();
    let bytes = digit.data().iter().map(|v| (255.0 * v).round() as u8).collect();
    image::GrayImage::from_raw(28, 28, bytes).unwrap()
}

pub(crate) fn png(image: &image::GrayImage) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// What the command line predicts for test digits, `mnist:A-B`.
pub(crate) fn predicted(digits: &str) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_sren"))
        .args(["predict", "mnist-sren", digits, "--top", "3", "--json"])
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
