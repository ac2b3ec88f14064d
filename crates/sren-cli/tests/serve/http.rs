//! As much of HTTP as the tests need, so that they can also send what is none.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longest time that a test waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const BOUNDARY: &str = "a-boundary-of-parts";

/// An answer of the service.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The JSON of an answer that is no error.
    pub(crate) fn good(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// Status and code of an error, which has one line for people.
    pub(crate) fn error(&self) -> (u16, String) {
        let error = self.json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty() && message.lines().count() == 1, "{message}");
        (self.status, error["code"].as_str().unwrap().to_string())
    }
}

/// A connection from the address `from` of this machine.
pub(crate) fn connect(address: SocketAddr, from: Ipv4Addr) -> TcpStream {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(IpAddr::V4(from), 0).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads one answer to the end of the connection. `None` if the service closed it without one.
pub(crate) fn read(mut stream: &TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    // A connection that is reset after the answer has still given it.
    let ended = stream.read_to_end(&mut bytes);
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        assert!(
            !matches!(&ended, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock),
            "no answer"
        );
        return None;
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let answer = Answer { status, head, body: bytes[end + 4..].to_vec() };
    let length = answer.header("content-length").map(|text| text.parse::<usize>().unwrap());
    assert!(length.is_none_or(|length| length == answer.body.len()), "a cut answer: {answer:?}");
    Some(answer)
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !headers.iter().any(|(name, _)| *name == "content-length") {
        text += &format!("content-length: {}\r\n", body.len());
    }
    [format!("{text}\r\n").as_bytes(), body].concat()
}

/// A multipart body of named images.
pub(crate) fn multipart(images: &[(&str, &[u8])]) -> Vec<u8> {
    let part = |(name, bytes): &(&str, &[u8])| {
        let head = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"image\"; filename=\"{name}\"\r\n\
             content-type: image/png\r\n\r\n"
        );
        [head.as_bytes(), bytes, b"\r\n"].concat()
    };
    let parts: Vec<u8> = images.iter().flat_map(part).collect();
    [&parts, format!("--{BOUNDARY}--\r\n").as_bytes()].concat()
}

pub(crate) fn multipart_type() -> String {
    format!("multipart/form-data; boundary={BOUNDARY}")
}

/// Sends bytes. A service that has heard enough may close.
pub(crate) fn send(mut stream: &TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
}
