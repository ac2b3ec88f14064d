//! Every route of the API.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::service::{Service, digit, digit_image, png, predicted};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The service rounds as the command does, in other batches.
fn assert_same(found: &Value, expected: &Value) {
    assert_eq!(found["class"], expected["class"]);
    assert!((number(&found["probability"]) - number(&expected["probability"])).abs() < 1e-4);
    for (found, expected) in
        [found, expected].map(|p| p["top"].as_array().unwrap()).into_iter().zip([3, 3])
    {
        assert_eq!(found.len(), expected);
    }
    for key in ["orientation_deg", "scale_px"] {
        assert!((number(&found["pose"][key]) - number(&expected["pose"][key])).abs() < 1e-3);
    }
}

#[test]
fn predictions_are_those_of_the_command() {
    let service = Service::start(&[]);
    let expected = predicted("mnist:0-2");
    let answer = service.post_png("/v1/predict?top=3", &digit(1)).good();
    assert_eq!(answer["model"], "mnist-sren");
    assert_eq!(answer["predictions"].as_array().unwrap().len(), 1);
    assert_same(&answer["predictions"][0], &expected[1]);

    let files = [digit(0), digit(1), digit(2)];
    let images = [("a.png", &files[0][..]), ("b.png", &files[1]), ("c.png", &files[2])];
    let answer = service.post_parts("/v1/predict?top=3", &images).good();
    let found = answer["predictions"].as_array().unwrap();
    let names: Vec<&str> = found.iter().map(|p| p["image"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.png", "b.png", "c.png"]);
    found.iter().zip(&expected).for_each(|(found, expected)| assert_same(found, expected));

    let one = service.post_png("/v1/predict", &digit(0)).good();
    assert_eq!(one["predictions"][0]["top"].as_array().unwrap().len(), 1);
    let all = service.post_png("/v1/predict?top=99", &digit(0)).good();
    let all: Vec<f64> = all["predictions"][0]["top"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| number(&class["probability"]))
        .collect();
    assert!(all.len() == 10 && all.is_sorted_by(|a, b| a >= b));
    assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-4);
}

#[test]
fn formats_are_known_by_their_content() {
    let service = Service::start(&[]);
    for format in ["png", "jpeg", "bmp", "gif", "tiff", "webp"] {
        let kind = image::ImageFormat::from_extension(format).unwrap();
        let mut bytes = std::io::Cursor::new(Vec::new());
        let picture = image::DynamicImage::from(digit_image(0)).to_rgb8();
        picture.write_to(&mut bytes, kind).unwrap();
        for content_type in [format!("image/{format}"), "application/octet-stream".into()] {
            let answer = service.post("/v1/predict", &content_type, bytes.get_ref()).good();
            assert_eq!(answer["predictions"][0]["class"], "7", "{format}");
        }
    }
    let untyped = crate::http::request("POST", "/v1/predict", &[], &digit(0));
    assert_eq!(service.answer(&untyped).good()["predictions"][0]["class"], "7");
}

/// The theorem, through the API: rotated by 90 degrees, the grid of poses rotates and every angle grows
/// by 90 degrees.
#[test]
fn poses_rotate_with_the_image() {
    let service = Service::start(&[]);
    let upright = digit_image(0);
    let rotated = image::imageops::rotate90(&upright);
    let [before, after] =
        [upright, rotated].map(|image| service.post_png("/v1/poses", &png(&image)).good());
    let rows = before["confidence"].as_array().unwrap().len();
    assert_eq!((number(&before["step"]), rows), (4.0, 14));
    assert_eq!(before["origin"], serde_json::json!([-12.5, -12.5]));
    let mut compared = 0;
    for (row, column) in (0..rows).flat_map(|row| (0..rows).map(move |column| (row, column))) {
        let [old, new] =
            [(&before, [row, column]), (&after, [column, rows - 1 - row])].map(|(grid, [y, x])| {
                ["confidence", "scale_px", "angle_deg"].map(|key| number(&grid[key][y][x]))
            });
        assert!((old[0] - new[0]).abs() < 1e-4, "{old:?} {new:?}");
        if old[0] > 0.0 {
            compared += 1;
            let turned = (new[2] - old[2] - 90.0).rem_euclid(360.0);
            assert!(turned.min(360.0 - turned) < 0.01, "{old:?} {new:?}");
            assert!((old[1] - new[1]).abs() < 1e-3, "{old:?} {new:?}");
        }
    }
    assert!(compared > 20, "only {compared} positions have a pose");
}

#[test]
fn features_are_pictures_or_numbers() {
    let service = Service::start(&[]);
    let answer = service.post_png("/v1/features", &digit(0));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/png")));
    let picture = image::load_from_memory(&answer.body).unwrap().to_rgb8();
    assert_eq!(picture.dimensions(), (256, 256));
    assert!(picture.pixels().any(|p| p.0.iter().any(|v| *v > 200)));

    let model = service.get("/v1/model").good();
    let layers = model["layers"].as_array().unwrap();
    assert_eq!(layers.last().unwrap(), "projection");
    for layer in layers {
        let path = format!("/v1/features?format=f32&layer={}", layer.as_str().unwrap());
        let answer = service.post_png(&path, &digit(0));
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
        let shape = answer
            .header("x-feature-shape")
            .unwrap()
            .split(',')
            .map(|n| n.parse::<usize>().unwrap());
        let shape: Vec<usize> = shape.collect();
        assert_eq!(&shape[..2], [14, 14], "{layer}");
        assert_eq!(answer.body.len(), 4 * shape.iter().product::<usize>(), "{layer}");
        let values: Vec<f32> = answer
            .body
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect();
        assert!(values.iter().all(|v| v.is_finite()) && values.iter().any(|v| *v > 0.0));
        assert_eq!(answer.header("x-feature-grid"), Some("1.5,1.5,4"));
    }
}

#[test]
fn the_model_is_described() {
    let service = Service::start(&["mnist-cnn", "--max-body", "3"]);
    let model = service.get("/v1/model").good();
    assert_eq!((&model["name"], &model["equivariance"]), (&"mnist-cnn".into(), &"cnn".into()));
    assert_eq!(model["classes"].as_array().unwrap().len(), 10);
    assert_eq!(model["limits"]["body"], 3_000_000);
    assert_eq!(model["plain"]["weights"], "trained");
    // A plain CNN has no poses.
    let poses = service.post_png("/v1/poses", &digit(0));
    assert_eq!(poses.error(), (400, "no_frames".into()));
    let prediction = service.post_png("/v1/predict", &digit(0)).good();
    assert_eq!(prediction["predictions"][0]["pose"], Value::Null);
}

#[test]
fn metrics_count_requests_batches_and_the_queue() {
    let service = Service::start(&[]);
    (0..3).for_each(|_| drop(service.post_png("/v1/predict", &digit(0)).good()));
    service.post_png("/v1/predict", b"none");
    let answer = service.get("/metrics");
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let text = answer.text();
    assert!(text.ends_with("# EOF\n"));
    for line in [
        "sren_requests_total{route=\"/v1/predict\",status=\"200\"} 3",
        "sren_requests_total{route=\"/v1/predict\",status=\"400\"} 1",
        "sren_request_seconds_count{route=\"/v1/predict\"} 4",
        "sren_batch_images_count 4",
        "sren_batch_images_bucket{le=\"1.0\"} 4",
        "sren_queue_images 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
}

/// Every path and method of the document is served, and every reference in it leads somewhere.
#[test]
fn the_openapi_document_is_true() {
    let service = Service::start(&[]);
    let document = service.get("/openapi.json").good();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let mut paths = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let method = method.to_uppercase();
            let answer = match method.as_str() {
                "POST" => service.post_png(path, &digit(0)),
                _ => service.get(path),
            };
            assert_eq!(answer.status, 200, "{method} {path}");
            let kind = answer.header("content-type").unwrap().split(';').next().unwrap();
            let described = &operation["responses"]["200"]["content"];
            assert!(described.get(kind).is_some(), "{method} {path}: {kind} is not in {described}");
            paths.insert(path.clone());
        }
    }
    let expected = [
        "/healthz",
        "/metrics",
        "/openapi.json",
        "/v1/features",
        "/v1/model",
        "/v1/poses",
        "/v1/predict",
    ];
    assert_eq!(paths.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }
    // What it says about an error is what is sent.
    let code = &document["components"]["schemas"]["Code"];
    let sent = service.post("/v1/predict", "text/plain", b"x").json()["error"]["code"].clone();
    assert!(code.to_string().contains(&sent.to_string()), "{sent} is not in {code}");
}

#[test]
fn a_run_that_is_none_is_an_error() {
    for (arguments, part) in [
        (&["serve", "no/such/run"][..], "no/such/run"),
        (&["serve", "--cnn", "no/such/cnn"], "no/such/cnn"),
        (&["serve", "--host", "192.0.2.1"], "192.0.2.1:8080: expected a free address"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_sren"))
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.starts_with("error: ") && said.contains(part) && said.lines().count() == 1,
            "{said}"
        );
    }
    let service = Service::start(&[]);
    let port = service.address.port().to_string();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_sren"))
        .args(["serve", "--port", &port])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains(&port), "{said}");
}
