//! Lengths of arrays whose sizes come from outside.

/// Number of values of an array with these sizes, `None` if it exceeds what a `usize` holds.
pub(crate) fn len_of(sizes: &[usize]) -> Option<usize> {
    sizes.iter().try_fold(1usize, |len, size| len.checked_mul(*size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lengths_are_exact_or_none(sizes in proptest::collection::vec(
            prop_oneof![0usize..9, (1usize << 31)..(1 << 33), (usize::MAX - 9)..=usize::MAX], 0..4,
        )) {
            let exact = sizes.iter().try_fold(1u128, |n, size| n.checked_mul(*size as u128));
            // Where a factor is 0, a product that is too large on the way may be an error too.
            let expected = exact.and_then(|n| usize::try_from(n).ok());
            let got = len_of(&sizes);
            prop_assert!(got == expected || (got.is_none() && sizes.contains(&0)));
        }
    }
}
