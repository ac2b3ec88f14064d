//! The end of a service: nothing new is accepted, what has begun is answered, the exit code is 0.

use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use crate::http::{connect, read, request, send};
use crate::service::{Service, digit};

/// Clients whose requests are in flight.
const CLIENTS: usize = 60;

#[test]
fn a_signal_under_load_loses_no_answer() {
    for signal in ["TERM", "INT"] {
        let service = Service::start(&["--threads", "1"]);
        // Longer work first, so that predictions wait behind it.
        let path = "/page/rotations?from=0&step=5&count=72&scale=1";
        let kind = [("content-type", "image/png")];
        let long = request("POST", path, &kind, &digit(0));
        let short = request("POST", "/v1/predict", &kind, &digit(1));
        let streams: Vec<TcpStream> = (0..CLIENTS)
            .map(|number| {
                let stream = connect(service.address, Ipv4Addr::LOCALHOST);
                send(&stream, if number == 0 { &long } else { &short });
                stream
            })
            .collect();
        while service.metric("sren_queue_images") < 20.0 {}
        let address = service.address;
        service.signal(signal);
        for (number, stream) in streams.iter().enumerate() {
            let answer = read(stream).unwrap_or_else(|| panic!("answer {number} is lost")).good();
            if number > 0 {
                assert_eq!(answer["predictions"][0]["class"], "2");
            }
        }
        let (code, said) = service.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.ends_with("stopped\n"), "{said}");
        assert!(TcpStream::connect(address).is_err(), "it still accepts");
    }
}

/// A client that never ends its request does not keep the service from ending.
#[test]
fn a_stalled_client_does_not_hold_up_the_end() {
    let service = Service::start(&["--timeout", "2"]);
    let stalled = connect(service.address, Ipv4Addr::LOCALHOST);
    let whole = request("POST", "/v1/predict", &[("content-type", "image/png")], &digit(0));
    send(&stalled, &whole[..whole.len() - 10]);
    let _idle = connect(service.address, Ipv4Addr::LOCALHOST);
    service.assert_alive();
    let begin = Instant::now();
    service.signal("TERM");
    assert_eq!(service.end().0, Some(0));
    assert!(begin.elapsed() < Duration::from_secs(20));
}

/// A second signal ends it at once.
#[test]
fn a_second_signal_does_not_wait() {
    let service = Service::start(&["--timeout", "3600"]);
    let stalled = connect(service.address, Ipv4Addr::LOCALHOST);
    let whole = request("POST", "/v1/predict", &[("content-type", "image/png")], &digit(0));
    send(&stalled, &whole[..whole.len() - 10]);
    service.assert_alive();
    service.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    service.signal("TERM");
    assert_eq!(service.end().0, Some(143));
}
