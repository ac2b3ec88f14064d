//! The similarity convolution against torchvision's `deform_conv2d`.
//!
//! The files in `golden/` were made by `scripts/golden_simconv.py` (torch and torchvision versions
//! in `golden/manifest.json`); layout and definition are described there.

use std::path::Path;

use serde_json::Value;
use sren_kernels::{PoseField, SimConv, TapTable};
use sren_math::Grid;

/// Largest difference, relative to the largest value of the array.
const TOLERANCE: f32 = 1e-4;

struct Case {
    name: String,
    facts: Value,
    values: Vec<f32>,
}

impl Case {
    fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let text = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&text).unwrap();
        let load = |facts: &Value| {
            let name = facts["name"].as_str().unwrap().to_owned();
            let bytes = std::fs::read(folder.join(format!("{name}.bin"))).unwrap();
            let (words, rest) = bytes.as_chunks::<4>();
            assert!(rest.is_empty());
            let values = words.iter().map(|&word| f32::from_le_bytes(word)).collect();
            Self { name, facts: facts.clone(), values }
        };
        manifest["cases"].as_array().unwrap().iter().map(load).collect()
    }

    fn number(&self, key: &str) -> usize {
        self.facts[key].as_u64().unwrap() as usize
    }

    fn array(&self, name: &str) -> &[f32] {
        let mut start = 0;
        for entry in self.facts["arrays"].as_array().unwrap() {
            let len = entry[1].as_u64().unwrap() as usize;
            if entry[0] == name {
                return &self.values[start..][..len];
            }
            start += len;
        }
        panic!("{}: no array {name}", self.name);
    }

    fn compare(&self, name: &str, got: &[f32]) {
        let expected = self.array(name);
        assert_eq!(got.len(), expected.len(), "{} {name}", self.name);
        let largest = expected.iter().fold(0.0f32, |m, v| m.max(v.abs()));
        let off = got.iter().zip(expected).map(|(g, e)| (g - e).abs()).fold(0.0, f32::max);
        assert!(off <= TOLERANCE * largest, "{} {name}: {off} of {largest}", self.name);
    }
}

#[test]
fn agrees_with_deform_conv2d() {
    let cases = Case::all();
    assert!(cases.len() >= 10);
    for case in cases {
        let input_grid = Grid::pixels(case.number("height"), case.number("width"));
        let output_grid = input_grid.cell_centred(case.number("stride")).unwrap();
        let (batch, poses) = (case.number("batch"), case.number("poses"));
        let field = PoseField::new(
            output_grid,
            batch,
            poses,
            case.array("scale").to_vec(),
            case.array("angle").to_vec(),
            case.array("pose_weight").to_vec(),
            vec![1.0; batch * output_grid.len()],
        )
        .unwrap();
        let kappa = case.facts["kappa"].as_f64().unwrap() as f32;
        let k = case.number("kernel_size");
        let mut taps = TapTable::new(&field, &input_grid, k, kappa, false).unwrap();
        let relative_pose = case.facts["relative_pose"].as_bool().unwrap();
        if relative_pose {
            taps = taps.with_input_poses(&field).unwrap();
        }
        let conv = SimConv::new(case.number("c_in"), case.number("c_out"), relative_pose).unwrap();

        let (input, weight) = (case.array("input"), case.array("weight"));
        let output = conv.forward(&taps, input, weight, Some(case.array("bias"))).unwrap();
        case.compare("output", &output);
        let gradients =
            conv.backward(&taps, input, weight, case.array("grad_output"), true).unwrap();
        case.compare("grad_input", &gradients.input.unwrap());
        case.compare("grad_weight", &gradients.weight);
        case.compare("grad_bias", &gradients.bias);
    }
}
