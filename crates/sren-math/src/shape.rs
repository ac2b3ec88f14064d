//! The number of values of an array, in checked arithmetic.

use crate::error::{MathError, Result};

/// Most values of one array: an allocation holds at most `isize::MAX` bytes.
const MAX_ELEMENTS: usize = isize::MAX as usize / size_of::<f32>();

/// The number of values of an `f32` array of this shape, for `operation` to check a slice against.
///
/// Returns an error if the array cannot exist in memory. Sizes of 0 count as 1 for this limit, so
/// that no product of some of the sizes can wrap either, in whatever order it is taken.
///
/// ```
/// use sren_math::element_count;
///
/// assert_eq!(element_count("example", &[2, 3, 4]), Ok(24));
/// assert_eq!(element_count("example", &[0, 3, 4]), Ok(0));
/// assert!(element_count("example", &[1 << (usize::BITS - 1), 4]).is_err());
/// assert!(element_count("example", &[0, usize::MAX]).is_err());
/// ```
pub fn element_count(operation: &'static str, shape: &[usize]) -> Result<usize> {
    let product = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size.max(&1)));
    match product {
        Some(product) if product <= MAX_ELEMENTS => {
            Ok(if shape.contains(&0) { 0 } else { product })
        }
        _ => {
            let expected = format!("sizes with a product of at most {MAX_ELEMENTS}");
            Err(MathError::new(operation, expected, format!("{shape:?}")))
        }
    }
}
