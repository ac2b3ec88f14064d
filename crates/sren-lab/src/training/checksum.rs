//! A checksum in the metadata of a file of weights: a flipped bit is found when the file is read.

use sren::Weights;

use crate::error::{LabError, Result};

/// CRC-32 of names, shapes, values and all other metadata, in hexadecimal.
const KEY: &str = "crc32";
/// CRC-32 of the values alone, in decimal: files of version 0.1.0.
const OLD_KEY: &str = "checksum";

/// In files of other programs: the library that wrote them.
const FOREIGN_KEY: &str = "format";

/// Adds the checksum.
pub(super) fn seal(weights: &mut Weights) {
    let sum = checksum(weights);
    weights.metadata.insert(KEY.into(), format!("{sum:08x}"));
}

/// Returns an error if the checksum is not that of the content. A file without metadata, or with that
/// of other programs, needs none. `name` is used in errors.
pub(super) fn verify(name: &str, weights: &Weights) -> Result<()> {
    let (stored, found) = match (weights.metadata.get(KEY), weights.metadata.get(OLD_KEY)) {
        (Some(stored), _) => (stored, format!("{:08x}", checksum(weights))),
        (None, Some(stored)) => (stored, value_checksum(weights).to_string()),
        (None, None) => {
            let metadata = &weights.metadata;
            return match metadata.is_empty() || metadata.contains_key(FOREIGN_KEY) {
                true => Ok(()),
                false => Err(LabError::invalid(name, "a checksum", "metadata without one")),
            };
        }
    };
    if *stored == found {
        return Ok(());
    }
    Err(LabError::invalid(name, format!("content of the checksum {stored}"), found))
}

/// CRC-32 of names, shapes, values and metadata but for a checksum.
pub(crate) fn checksum(weights: &Weights) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for (key, value) in weights.metadata.iter().filter(|(key, _)| *key != KEY) {
        hasher.update(format!("{key}={value}\n").as_bytes());
    }
    for (name, (shape, values)) in &weights.tensors {
        hasher.update(format!("{name} {shape:?}\n").as_bytes());
        update(&mut hasher, values);
    }
    hasher.finalize()
}

fn value_checksum(weights: &Weights) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    weights.tensors.values().for_each(|(_, values)| update(&mut hasher, values));
    hasher.finalize()
}

fn update(hasher: &mut crc32fast::Hasher, values: &[f32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    hasher.update(&bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_is_found() {
        let mut weights = Weights::default();
        weights.tensors.insert("a".into(), (vec![2], vec![1.0, -0.5]));
        weights.metadata.insert("epoch".into(), "3".into());
        assert!(verify("x", &weights).is_err());
        seal(&mut weights);
        verify("x", &weights).unwrap();
        let mut changed = [weights.clone(), weights.clone(), weights.clone(), weights];
        changed[0].tensors.get_mut("a").unwrap().1[1] = -0.500_000_1;
        changed[1].metadata.insert("epoch".into(), "1".into());
        changed[2].tensors.get_mut("a").unwrap().0 = vec![1, 2];
        let tensor = changed[3].tensors.remove("a").unwrap();
        changed[3].tensors.insert("b".into(), tensor);
        for weights in &changed {
            let error = verify("x", weights).unwrap_err().to_string();
            assert!(error.starts_with("x: expected content of the checksum "), "{error}");
        }
    }
}
