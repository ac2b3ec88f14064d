//! Measurements as a user runs them: equivariance, stability, pictures and the report of a run.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use support::{assert_fails, json, nothing, sren, succeeds};

/// A run that takes seconds, made once for all tests.
fn run() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    RUN.get_or_init(|| {
        let path = nothing("run");
        let run = path.to_str().unwrap();
        let mut arguments = vec!["train", "--preset", "quick", "--images", "192", "--epochs", "1"];
        arguments.extend(["--batch", "32", "--test-images", "24", "--out", run]);
        succeeds(&sren(&arguments));
        run.to_string()
    })
}

fn errors(value: &Value) -> [f64; 4] {
    ["rotation", "scale", "both", "rot90"].map(|name| value[name].as_f64().unwrap())
}

#[test]
fn every_layer_of_random_and_trained_networks_is_measured_beside_a_cnn() {
    let random = ["equivariance", "--count", "2", "--angles", "4", "--positions", "2", "--json"];
    let report = json(&sren(&random));
    assert_eq!((&report["data"], &report["model"]), (&"mnist".into(), &"sren".into()));
    let names: Vec<&str> =
        report["layers"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["layers.0", "layers.1", "layers.2", "projection"]);
    let [rotation, _, both, rot90] = errors(&report["worst"]);
    let [cnn_rotation, _, cnn_both, cnn_rot90] = errors(&report["cnn"]["worst"]);
    assert!(rot90 < 1e-10 && cnn_rot90 > 0.1, "{report}");
    assert!(rotation < 0.04 * cnn_rotation && both < 0.2 * cnn_both, "{report}");
    for layer in report["layers"].as_array().unwrap() {
        assert!(errors(layer).iter().all(|error| error.is_finite()));
        assert!(layer["both_centred"].as_f64() >= layer["both"].as_f64());
    }
    assert_eq!(report, json(&sren(&random)), "same seed, same figures");

    let out = nothing("equivariance");
    let mut trained = vec!["equivariance", run(), "--count", "1", "--angles", "4"];
    trained.extend(["--positions", "1", "-o", out.to_str().unwrap()]);
    let text = succeeds(&sren(&trained));
    assert!(text.contains("worst layer: ") && text.contains("poses: "), "{text}");
    let written: Value =
        serde_json::from_str(&fs::read_to_string(out.join("equivariance.json")).unwrap()).unwrap();
    assert_eq!(written["weights"], run());
    for name in ["angle.svg", "scale.svg"] {
        let svg = fs::read_to_string(out.join(name)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("CNN stem") && svg.ends_with("</svg>"));
    }
}

#[test]
fn errors_on_smooth_images_are_small_and_folders_are_read() {
    let few = ["--count", "1", "--angles", "4", "--positions", "2", "--json"];
    let on = |images: &str| sren(&[&["equivariance", "--images", images], &few[..]].concat());
    let report = json(&on("smooth"));
    assert_eq!((&report["data"], &report["side"]), (&"smooth".into(), &96.into()));
    let [rotation, scale, both, rot90] = errors(&report["worst"]);
    assert!(rotation.max(scale).max(both) < 1e-4 && rot90 < 1e-12, "{report}");
    let blocks = [&["equivariance", "--images", "smooth", "--arch", "blocks"], &few[..]].concat();
    let report = json(&sren(&blocks));
    let [stem, ..] = errors(&report["layers"][0]);
    let [worst, .., rot90] = errors(&report["worst"]);
    assert!(stem < 1e-4 && worst < 0.01 && rot90 < 1e-12, "{report}");

    let folder = nothing("images");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.to_str().unwrap();
    assert_fails(
        &["equivariance", "--images", path],
        &["lab-images", "expected images below it, got none"],
    );
    let wave = |x: u32, y: u32| 127.0 + 60.0 * ((x as f32 / 5.0).sin() + (y as f32 / 7.0).cos());
    let picture = image::GrayImage::from_fn(40, 30, |x, y| image::Luma([wave(x, y) as u8]));
    picture.save(folder.join("a.png")).unwrap();
    let report = json(&on(path));
    assert_eq!((&report["images"], &report["side"]), (&1.into(), &192.into()));
    assert!(report["causes"]["pose"]["jumps"].is_number());
}

#[test]
fn stability_has_one_curve_per_run() {
    let out = nothing("stability");
    let mut arguments = vec!["stability", run(), run(), "--images", "8", "--json"];
    arguments.extend(["-o", out.to_str().unwrap()]);
    let report = json(&sren(&arguments));
    let runs = report["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["images"], &runs[0]["model"]), (2, &8.into(), &"sren".into()));
    assert_eq!(runs[0], runs[1]);
    let angles = runs[0]["angle"].as_array().unwrap();
    assert_eq!((angles.len(), &angles[1]["at"]), (24, &15.0.into()));
    // Rotations by 90 degrees only permute pixels.
    assert!((0..4).all(|i| angles[6 * i]["accuracy"] == angles[0]["accuracy"]), "{angles:?}");
    let scales = runs[0]["scale"].as_array().unwrap();
    let last = &scales[scales.len() - 1];
    assert_eq!((&scales[0]["at"], &last["at"]), (&0.5.into(), &3.0.into()));
    assert!(fs::read_to_string(out.join("angle.svg")).unwrap().contains("polyline"));
    let table = succeeds(&sren(&["stability", run(), "--images", "4"]));
    assert!(table.contains("degrees") && table.contains("345"), "{table}");
}

#[test]
fn features_are_drawn_with_trained_and_random_weights() {
    let out = nothing("visualize");
    let folder = out.to_str().unwrap();
    let said = succeeds(&sren(&["visualize", run(), "mnist:3", "-o", folder]));
    assert!(said.contains("visualize.png"), "{said}");
    let trained = image::open(out.join("visualize.png")).unwrap().to_rgb8();
    assert!(trained.width() > 900 && trained.height() > 800, "{:?}", trained.dimensions());
    let coloured = trained.pixels().filter(|p| p.0.iter().max() != p.0.iter().min()).count();
    assert!(coloured > 50_000, "{coloured}");
    let one = ["visualize", run(), "mnist:3", "--random", "--layers", "blocks.0", "-o", folder];
    succeeds(&sren(&one));
    let random = image::open(out.join("visualize.png")).unwrap().to_rgb8();
    assert!(random.height() < trained.height());
}

#[test]
fn errors_name_what_is_missing() {
    let out = nothing("nowhere");
    let folder = out.to_str().unwrap();
    assert_fails(&["equivariance", "no/such/run"], &["no/such/run"]);
    assert_fails(&["equivariance", "--images", "no/such/folder"], &["no/such/folder"]);
    assert_fails(&["stability", run(), "no/such/run"], &["no/such/run"]);
    assert_fails(&["visualize", "no/such/run", "mnist:0", "-o", folder], &["no/such/run"]);
    assert_fails(&["visualize", run(), "no/such.png", "-o", folder], &["no/such.png"]);
    assert_fails(&["visualize", run(), "mnist:10000", "-o", folder], &["mnist:0 to mnist:9999"]);
    assert_fails(
        &["visualize", run(), "mnist:0", "--layers", "blocks.7", "-o", folder],
        &["layer: expected one of stem, blocks.0, blocks.1, got blocks.7"],
    );
    assert!(!out.exists());
    let file = nothing("file");
    fs::write(&file, b"in the way").unwrap();
    let taken = file.to_str().unwrap();
    assert_fails(&["visualize", run(), "mnist:0", "-o", taken], &["lab-file", "cannot be created"]);
    for arguments in [
        &["stability", "--images", "x"][..],
        &["stability", "x", "--images", "0"],
        &["visualize", "x"],
        &["visualize", "x", "mnist:0", "--random", "--cnn", "y"],
        &["equivariance", "x", "--pose"],
        &["equivariance", "--count", "0"],
    ] {
        assert_eq!(sren(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_run_has_a_self_contained_report() {
    let page = fs::read_to_string(Path::new(run()).join("report.html")).unwrap();
    for part in [
        "<h2>Table 1</h2>",
        "<h2>Training</h2>",
        "<h2>Confusion</h2>",
        "<h2>Stability</h2>",
        "<h2>Equivariance</h2>",
        "<h2>Features</h2>",
        "<h2>Most confident errors</h2>",
        "SREN of the paper",
        "92.30",
        "24 test digits. Rows",
        "prefers-color-scheme:dark",
        "sren train --preset quick --images 192",
        "stem_reference_scale = ",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("@import"));
    // The one address is the name of SVG, which nobody fetches.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert_eq!(
        page.matches("src=\"").count(),
        page.matches("src=\"data:image/png;base64,").count()
    );
}

/// An installed browser, if there is one.
fn browser() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome", "chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    })
}

#[test]
fn the_report_fits_its_window_and_has_a_dark_scheme() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no browser (chromium or google-chrome) is installed");
        return;
    };
    let folder = nothing("browser");
    fs::create_dir_all(&folder).unwrap();
    let page = fs::read_to_string(Path::new(run()).join("report.html")).unwrap();
    // The page itself has no script; this copy reports how the browser renders it.
    let script = "<script>addEventListener('load',()=>{const d=document,e=d.documentElement;\
        d.title=[innerWidth,e.scrollWidth,d.querySelectorAll('svg').length,\
        [...d.images].filter(i=>i.naturalWidth>0).length==d.images.length,\
        getComputedStyle(d.body).backgroundColor].join('|')})</script></body>";
    let copy = folder.join("copy.html");
    fs::write(&copy, page.replace("</body>", script)).unwrap();
    let render = |width: usize, dark: bool| {
        let scheme = if dark { 0 } else { 1 };
        let output = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg(format!("--window-size={width},900"))
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .arg(format!("file://{}", copy.display()))
            .output()
            .unwrap();
        let dom = String::from_utf8_lossy(&output.stdout).to_string();
        let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
        title.unwrap_or_default().split('|').map(str::to_string).collect::<Vec<String>>()
    };
    for (width, dark, background) in [
        (1200, false, "rgb(255, 255, 255)"),
        (1200, true, "rgb(21, 24, 28)"),
        (390, false, "rgb(255, 255, 255)"),
    ] {
        let shown = render(width, dark);
        assert_eq!(shown.len(), 5, "{shown:?}");
        let [inner, needed] = [&shown[0], &shown[1]].map(|n| n.parse::<usize>().unwrap());
        assert!(needed <= inner, "{shown:?}");
        assert_eq!((&shown[2][..], &shown[3][..], &shown[4][..]), ("6", "true", background));
    }
}
