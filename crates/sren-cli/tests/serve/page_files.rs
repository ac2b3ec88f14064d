//! The files of the page, and what it asks for.

use serde_json::Value;

use crate::http::request;
use crate::service::{Service, digit, digit_image};

#[test]
fn the_page_has_all_its_files_and_nothing_from_elsewhere() {
    let service = Service::start(&[]);
    let page = service.get("/");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let html = page.text();
    let attribute = |name: &str| name.starts_with("on") || name == "style";
    let names = html.split('=').filter_map(|before| before.split([' ', '"', '\n']).next_back());
    assert!(!names.into_iter().any(attribute) && !html.contains("<style"), "inline code");
    let mut files: Vec<String> = Vec::new();
    for attribute in ["src=\"", "href=\""] {
        for target in html.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap()) {
            match target {
                // Links to follow, no resources.
                _ if target.starts_with("https://") => {
                    assert!(html.contains(&format!("<a href=\"{target}")))
                }
                _ if target.starts_with("data:") => {}
                _ => files.push(target.to_string()),
            }
        }
    }
    let mut scripts = 0;
    while let Some(path) = files.pop() {
        let file = service.get(&path);
        assert_eq!(file.status, 200, "{path}");
        if path.ends_with(".js") {
            scripts += 1;
            assert_eq!(file.header("content-type"), Some("text/javascript; charset=utf-8"));
            let text = file.text();
            assert!(!text.contains("eval(") && !text.contains("innerHTML"), "{path}");
            let imports =
                text.lines().filter_map(|line| line.strip_prefix("import ")?.split('"').nth(1));
            files.extend(imports.map(|name| name.replace("./", "/page/")));
        }
    }
    assert!(scripts >= 7, "{scripts} scripts");
}

#[test]
fn large_answers_are_compressed_for_those_who_ask() {
    let service = Service::start(&[]);
    let asked = [("accept-encoding", "gzip")];
    let script = service.answer(&request("GET", "/page/app.js", &asked, b""));
    assert_eq!(script.header("content-encoding"), Some("gzip"));
    assert!(script.body.len() < service.get("/page/app.js").body.len());
    let small = service.answer(&request("GET", "/healthz", &asked, b""));
    assert_eq!(small.header("content-encoding"), None);
}

#[test]
fn test_digits_are_those_of_the_command() {
    let service = Service::start(&[]);
    let answer = service.get("/page/digits/0");
    assert_eq!((answer.status, answer.header("x-label")), (200, Some("7")));
    assert_eq!(answer.body, digit_image(0).into_raw());
}

fn probabilities(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).collect()
}

fn best(probabilities: &[f64]) -> usize {
    (0..probabilities.len()).max_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b])).unwrap()
}

/// What the page shows: SREN reads a digit at every angle, the plain CNN does not, and the features of
/// SREN rotate with the image.
#[test]
fn rotations_and_views_show_equivariance() {
    let service = Service::start(&[]);
    let image = digit(4);
    let path = "/page/rotations?from=0&step=30&count=12&scale=1";
    let rotations = service.post_png(path, &image).good();
    let right = |network: &str| {
        let rows = rotations[network].as_array().unwrap();
        assert_eq!(rows.len(), 12);
        rows.iter().filter(|row| best(&probabilities(row)) == 4).count()
    };
    assert!(right("served") >= 11, "{}", right("served"));
    assert!(right("plain") <= 8, "{}", right("plain"));

    let [upright, turned] = ["angle=0&scale=1", "angle=90&scale=1"]
        .map(|query| service.post_png(&format!("/page/view?{query}"), &image).good());
    let [before, after] =
        [&upright, &turned].map(|view| probabilities(&view["served"]["probabilities"]));
    assert_eq!((best(&before), best(&after)), (4, 4));
    // At the same angle, the view is the prediction.
    let prediction = service.post_png("/v1/predict", &image).good();
    let expected = prediction["predictions"][0]["probability"].as_f64().unwrap();
    assert!((before[4] - expected).abs() < 1e-4);
    let same = |network: &str| {
        let [a, b] = [&upright, &turned].map(|view| view[network]["features"].as_str().unwrap());
        assert_eq!(a.len(), (64usize * 64 * 3).div_ceil(3) * 4);
        a.bytes().zip(b.bytes()).filter(|(a, b)| a == b).count() as f64 / a.len() as f64
    };
    assert!(same("served") > 0.95, "{}", same("served"));
    assert!(same("plain") < 0.9, "{}", same("plain"));
    let frames = upright["frames"].as_array().unwrap();
    assert!(frames.len() > 20 && frames.len() == turned["frames"].as_array().unwrap().len());
}
