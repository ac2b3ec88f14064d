//! The bench runs, and its report reads as a table and as JSON.

use sren_lab::bench::{LAYERS, Options, run};

#[test]
fn reports_every_layer_as_table_and_json() {
    let options = Options { repetitions: 1, threads: vec![1], memory: Some((2, 32)) };
    let report = run(&options).unwrap();
    assert_eq!(report.operators.len(), 2 * LAYERS.len());
    let table = report.to_string();
    let json = serde_json::to_value(&report).unwrap();
    for layer in LAYERS {
        assert!(table.contains(layer.name));
    }
    assert!(json["operators"][0]["kernel_to_burn"].as_f64().unwrap() > 0.0);
    for block in &report.blocks {
        let shares = block.simconv_share + block.norm_share + block.optimiser_share;
        assert!((shares + block.rest_share - 1.0).abs() < 1e-9);
    }
}
