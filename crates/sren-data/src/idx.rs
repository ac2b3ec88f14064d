//! The idx format of MNIST: a magic number, the sizes as big-endian u32, then bytes.

use sren_math::element_count;

use crate::error::{DataError, Result};

/// Most dimensions of an array.
const MAX_RANK: u8 = 16;

/// An array of bytes with its sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idx {
    sizes: Vec<usize>,
    values: Vec<u8>,
}

impl Idx {
    /// Reads an idx file of unsigned bytes with `rank` dimensions, at most 16. `name` is used in
    /// errors.
    pub fn parse(name: &str, bytes: &[u8], rank: usize) -> Result<Self> {
        let Some(dimensions) = u8::try_from(rank).ok().filter(|rank| *rank <= MAX_RANK) else {
            let expected = format!("at most {MAX_RANK} dimensions");
            return Err(DataError::format(name, expected, rank.to_string()));
        };
        let header = 4 + 4 * rank;
        if bytes.len() < header {
            let expected = format!("an idx header of {header} bytes");
            return Err(DataError::format(name, expected, format!("{} bytes", bytes.len())));
        }
        let magic = [0, 0, 8, dimensions];
        if bytes[..4] != magic {
            return Err(DataError::format(
                name,
                format!("magic number {magic:02x?} (unsigned bytes, {rank} dimensions)"),
                format!("{:02x?}", &bytes[..4]),
            ));
        }
        let sizes: Vec<usize> = bytes[4..header]
            .chunks_exact(4)
            .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
            .collect();
        if element_count("idx", &sizes).ok() != Some(bytes.len() - header) {
            return Err(DataError::format(
                name,
                format!("{sizes:?} values"),
                format!("{} bytes of them", bytes.len() - header),
            ));
        }
        Ok(Self { sizes, values: bytes[header..].to_vec() })
    }

    /// The sizes, slowest first.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The values.
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// The values alone.
    pub fn into_values(self) -> Vec<u8> {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_good_file_is_read_and_bad_ones_are_named() {
        let good = [0, 0, 8, 1, 0, 0, 0, 2, 7, 9];
        assert_eq!(Idx::parse("x", &good, 1).unwrap().values(), [7, 9]);
        for (bytes, message) in [
            (&good[..5], "x: expected an idx header of 8 bytes, got 5 bytes"),
            (&good[..9], "x: expected [2] values, got 1 bytes of them"),
            (
                &[0, 0, 9, 1, 0, 0, 0, 0][..],
                "x: expected magic number [00, 00, 08, 01] (unsigned bytes, 1 dimensions), got [00, 00, 09, 01]",
            ),
        ] {
            assert_eq!(Idx::parse("x", bytes, 1).unwrap_err().to_string(), message);
        }
        let huge = [0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255];
        assert!(Idx::parse("x", &huge, 3).is_err());
        for rank in [17, 256, usize::MAX / 4, usize::MAX] {
            assert!(Idx::parse("x", &[0; 80], rank).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_result(bytes in proptest::collection::vec(any::<u8>(), 0..64), rank in 0usize..4) {
            let _ = Idx::parse("x", &bytes, rank);
        }

        #[test]
        fn a_header_is_believed_only_if_the_values_are_there(
            sizes in proptest::collection::vec(prop_oneof![0u32..5, Just(u32::MAX), any::<u32>()], 0..5),
            len in 0usize..130,
        ) {
            let mut bytes = vec![0, 0, 8, sizes.len() as u8];
            sizes.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
            bytes.extend(vec![7; len]);
            let exact: u128 = sizes.iter().map(|size| u128::from(*size)).product();
            let read = Idx::parse("x", &bytes, sizes.len());
            prop_assert!(read.is_err() || exact == len as u128);
            prop_assert!(read.is_ok() || exact != len as u128 || exact == 0);
        }
    }
}
