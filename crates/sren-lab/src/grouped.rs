//! Large numbers with a comma after every three digits.

/// `number` as text: 11,957,738.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_after_three_digits() {
        let numbers = [0, 999, 1_000, 81_514, 11_957_738];
        let texts = ["0", "999", "1,000", "81,514", "11,957,738"];
        assert_eq!(numbers.map(grouped), texts);
    }
}
