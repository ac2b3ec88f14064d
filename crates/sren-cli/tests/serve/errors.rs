//! Every error of the API: its status, its code, one line for people.

use std::net::Ipv4Addr;

use crate::http::{multipart, multipart_type, request};
use crate::service::{Service, digit};

#[test]
fn wrong_requests_are_named() {
    let service = Service::start(&[]);
    let good = digit(0);
    let expect = |answer: crate::http::Answer, status: u16, code: &str, part: &str| {
        assert_eq!(answer.error(), (status, code.into()), "{}", answer.text());
        assert!(answer.text().contains(part), "{} does not say {part}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
    };
    let predict = |path: &str, body: &[u8]| service.post_png(path, body);
    expect(predict("/v1/predict", b""), 400, "invalid_image", "an empty file");
    expect(predict("/v1/predict", b"no image"), 400, "invalid_image", "expected a png, jpeg");
    expect(predict("/v1/predict", &good[..good.len() / 2]), 400, "invalid_image", "image");
    expect(predict("/v1/predict?top=0", &good), 400, "invalid_request", "top");
    expect(predict("/v1/predict?top=-1", &good), 400, "invalid_request", "top");
    expect(predict("/v1/predict?top=many", &good), 400, "invalid_request", "top");
    expect(predict("/v1/predict?tops=3", &good), 400, "invalid_request", "tops");
    expect(predict("/v1/features?layer=none", &good), 400, "unknown_layer", "layers.0, layers.1");
    expect(predict("/v1/features?format=gif", &good), 400, "invalid_request", "format");
    expect(predict("/page/view?scale=0", &good), 400, "invalid_request", "scale");
    expect(predict("/page/view?angle=nan", &good), 400, "invalid_request", "angle");
    expect(predict("/page/view?angle=inf", &good), 400, "invalid_request", "angle");
    let rotations = |query: &str| predict(&format!("/page/rotations?{query}"), &good);
    expect(rotations("from=0&step=5&count=73&scale=1"), 400, "invalid_request", "count");
    expect(rotations("from=0&step=1e308&count=9&scale=1e999"), 400, "invalid_request", "scale");
    expect(rotations("from=0"), 400, "invalid_request", "missing field");

    for kind in ["text/plain", "image/svg+xml", "application/json", "", "multipart/mixed"] {
        let answer = service.post("/v1/predict", kind, &good);
        expect(answer, 415, "unsupported_media_type", "expected png, jpeg");
    }
    expect(service.get("/v1/nothing"), 404, "not_found", "/openapi.json");
    expect(service.get("/page/digits/10000"), 404, "not_found", "no such path");
    expect(service.get("/v1/predict"), 405, "method_not_allowed", "another method");
    assert_eq!(service.get("/v1/predict").header("allow"), Some("POST"));
    expect(service.post_png("/healthz", &good), 405, "method_not_allowed", "another method");

    let parts = |images: &[(&str, &[u8])]| service.post_parts("/v1/predict", images);
    expect(parts(&[]), 400, "invalid_request", "got none");
    expect(parts(&[("a.png", &good), ("b.png", b"none")]), 400, "invalid_image", "b.png: expected");
    let many: Vec<(&str, &[u8])> = vec![("a.png", &good); 65];
    expect(parts(&many), 400, "invalid_request", "at most 64 images");
    let two = service.post_parts("/v1/poses", &[("a.png", &good), ("b.png", &good)]);
    expect(two, 400, "invalid_request", "expected one image, got 2");
    let cut = &multipart(&[("a.png", &good)])[..200];
    expect(
        service.post("/v1/predict", &multipart_type(), cut),
        400,
        "invalid_request",
        "multipart",
    );
    let unbounded = service.post("/v1/predict", "multipart/form-data", cut);
    expect(unbounded, 400, "invalid_request", "boundary");
    service.assert_alive();
}

#[test]
fn bodies_over_the_limit_are_not_read() {
    let service = Service::start(&["--max-body", "1"]);
    let large = vec![0; 1_000_001];
    let too_large = (413, "body_too_large".to_string());
    assert_eq!(service.post_png("/v1/predict", &large).error(), too_large);
    // By its header alone.
    let headers = [("content-type", "image/png"), ("content-length", "1000000000000")];
    assert_eq!(service.answer(&request("POST", "/v1/predict", &headers, b"")).error(), too_large);
    // Without a length, when it is reached.
    let mut chunked = b"POST /v1/predict HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
        content-type: image/png\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for _ in 0..20 {
        chunked.extend(format!("{:x}\r\n", 60_000).as_bytes());
        chunked.extend(vec![0; 60_000]);
        chunked.extend(b"\r\n");
    }
    assert_eq!(service.answer(&chunked).error(), too_large);
    let parts = service.post_parts("/v1/predict", &[("a.png", &large)]);
    assert_eq!(parts.error(), too_large);
    service.assert_alive();
}

/// One client may fill half of the queue (429), all together the whole of it (503).
#[test]
fn a_full_queue_is_said_and_who_fills_it() {
    let service = Service::start(&["--queue", "400", "--threads", "1"]);
    let long = request(
        "POST",
        "/page/rotations?from=0&step=5&count=72&scale=1",
        &[("content-type", "image/png")],
        &digit(0),
    );
    let [first, second, third] = [1, 2, 3].map(|last| Ipv4Addr::new(127, 0, 0, last));
    std::thread::scope(|scope| {
        // 144 predictions each.
        let working = [first, second].map(|from| {
            let (service, long) = (&service, &long);
            scope.spawn(move || service.answer_from(from, long))
        });
        let begin = std::time::Instant::now();
        while service.metric("sren_queue_images") < 288.0 {
            assert!(begin.elapsed().as_secs() < 30, "the queue never fills");
        }
        let refused = service.answer_from(first, &long);
        assert_eq!(refused.error(), (429, "too_many_requests".into()));
        assert_eq!(refused.header("retry-after"), Some("1"));
        let refused = service.answer_from(third, &long);
        assert_eq!(refused.error(), (503, "overloaded".into()));
        assert_eq!(refused.header("retry-after"), Some("1"));
        for answer in working {
            assert_eq!(answer.join().unwrap().status, 200);
        }
    });
    assert_eq!(service.metric("sren_queue_images"), 0.0);
    service.assert_alive();
}
