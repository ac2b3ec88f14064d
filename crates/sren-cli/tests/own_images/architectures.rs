//! Every architecture with every equivariance group, from images to a report.

use std::fs;

use crate::support::{nothing, succeeds, text};
use crate::written::{split_folder, train};

const ARCHITECTURES: [&str; 7] =
    ["small", "wide", "blocks", "resnet18", "resnet16", "wrn16-8", "photos"];

#[test]
fn a_run_of_every_architecture_and_group_ends_with_its_report() {
    let folder = split_folder("architectures");
    for arch in ARCHITECTURES {
        for model in ["sren", "so2", "scale", "cnn"] {
            let path = nothing(&format!("{arch}-{model}"));
            let one = ["--arch", arch, "--model", model, "--epochs", "1"];
            let shown = succeeds(&train(text(&folder), text(&path), &one));
            assert!(shown.contains("ood"), "{arch} {model}: {shown}");
            let page = fs::read_to_string(path.join("report.html")).unwrap();
            assert!(page.contains("<h2>Classes</h2>"), "{arch} {model}");
            fs::remove_dir_all(&path).unwrap();
        }
    }
}
