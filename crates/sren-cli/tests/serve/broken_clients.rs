//! Clients that are slow, stop in the middle, or say what is not so.

use std::net::{Ipv4Addr, Shutdown};
use std::time::{Duration, Instant};

use crate::http::{connect, read, request, send};
use crate::service::{Service, digit};

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn whole() -> Vec<u8> {
    request("POST", "/v1/predict", &[("content-type", "image/png")], &digit(0))
}

#[test]
fn half_a_request_ends_after_the_timeout_and_holds_up_no_one() {
    let service = Service::start(&["--timeout", "1"]);
    let whole = whole();
    let begin = Instant::now();
    // Half a body, half of the headers, and nothing at all.
    let [body, headers, silent] = [whole.len() - 50, 40, 0].map(|length| {
        let stream = connect(service.address, HERE);
        send(&stream, &whole[..length]);
        stream
    });
    service.assert_alive();
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert_eq!(read(&body).expect("an answer").error(), (408, "timeout".into()));
    for stream in [headers, silent] {
        let answer = read(&stream);
        assert!(answer.is_none_or(|answer| answer.status == 408));
    }
    service.assert_alive();
}

#[test]
fn a_slow_client_is_served() {
    let service = Service::start(&[]);
    let stream = connect(service.address, HERE);
    for part in whole().chunks(40) {
        send(&stream, part);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(read(&stream).expect("an answer").good()["predictions"][0]["class"], "7");
}

#[test]
fn clients_that_leave_cost_nothing() {
    let service = Service::start(&["--threads", "1"]);
    let whole = whole();
    for length in [0, 10, 60, whole.len() - 20, whole.len()] {
        for _ in 0..20 {
            let stream = connect(service.address, HERE);
            send(&stream, &whole[..length]);
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
    // Work that no one waits for any more is not done: these would be 2,880 predictions.
    let long = request(
        "POST",
        "/page/rotations?from=0&step=5&count=72&scale=1",
        &[("content-type", "image/png")],
        &digit(0),
    );
    for _ in 0..20 {
        let stream = connect(service.address, HERE);
        send(&stream, &long);
        std::thread::sleep(Duration::from_millis(2));
    }
    service.assert_alive();
    let begin = Instant::now();
    while service.metric("sren_queue_images") > 0.0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "places are not given back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn wrong_lengths_and_wrong_protocols_are_errors() {
    let service = Service::start(&["--timeout", "2"]);
    let image = digit(0);
    let with_length = |length: &str| {
        let headers = [("content-type", "image/png"), ("content-length", length)];
        request("POST", "/v1/predict", &headers, &image)
    };
    // Shorter than the body: the image is cut, the rest is no request.
    assert_eq!(service.answer(&with_length("100")).status, 400);
    // Longer, and the client says that it has sent all.
    let stream = connect(service.address, HERE);
    send(&stream, &with_length("100000"));
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(read(&stream).is_none_or(|answer| (400..500).contains(&answer.status)));
    for wrong in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let stream = connect(service.address, HERE);
        send(&stream, wrong);
        assert!(read(&stream).is_none_or(|answer| (400..506).contains(&answer.status)));
    }
    for length in ["-1", "ten", "18446744073709551616"] {
        let stream = connect(service.address, HERE);
        send(&stream, &with_length(length));
        assert!(read(&stream).is_none_or(|answer| answer.status == 400));
    }
    // Headers without end.
    let stream = connect(service.address, HERE);
    send(&stream, b"GET / HTTP/1.1\r\n");
    send(&stream, "x: 0123456789\r\n".repeat(5000).as_bytes());
    assert!(read(&stream).is_none_or(|answer| answer.status == 431));
    service.assert_alive();
}
