//! Configurations of networks as files hold them.

use serde_json::{Value, json};
use sren::models::{Architecture, NetworkConfig};

fn parse(value: &Value) -> Result<NetworkConfig, String> {
    serde_json::from_value(value.clone()).map_err(|e| e.to_string())
}

#[test]
fn every_architecture_comes_back_from_its_file() {
    for arch in Architecture::ALL {
        let value = serde_json::to_value(arch.config(3, 7)).unwrap();
        let again = serde_json::to_value(parse(&value).unwrap()).unwrap();
        assert_eq!(again, value, "{arch:?}");
    }
}

#[test]
fn unknown_and_missing_keys_are_named() {
    let good = serde_json::to_value(Architecture::Small.config(1, 10)).unwrap();
    for (table, key) in [("head", "upright"), ("backbone", "kappa"), ("pose", "ring")] {
        let mut bad = good.clone();
        bad[table][key] = json!(0.5);
        let error = parse(&bad).unwrap_err();
        assert_eq!(error, format!("unknown field `{key}`"));
    }
    let mut bad = good.clone();
    bad["backbone"]["layers"][1]["padding"] = json!(1);
    assert_eq!(parse(&bad).unwrap_err(), "unknown field `padding`");
    let mut bad = good.clone();
    bad.as_object_mut().unwrap().remove("backbone");
    assert!(parse(&bad).unwrap_err().contains("missing field `backbone`"));
    let mut bad = good;
    bad["head"]["kind"] = json!("pooling");
    assert!(parse(&bad).unwrap_err().contains("unknown variant `pooling`"));
}
