//! Fields that are read digit by digit: decimals and bytes.

use super::field::{Cell, FieldResult, Misfit};

/// The bytes that pairs of hexadecimal digits stand for.
pub fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = text.trim_ascii().as_bytes().chunks(2);
    let bytes = pairs.map(|pair| match pair {
        [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    });
    bytes.collect()
}

/// The digits of a decimal of `precision` digits, `scale` of them behind the point.
///
/// # Errors
/// A [`Misfit`] for what is no such number, or has more digits.
pub fn parse_decimal(text: &str, precision: u8, scale: i8) -> FieldResult<Cell> {
    let not_decimal = || Misfit {
        reason: "is not a decimal number".into(),
        hint: "decimals are written as -12.50; list it as a null string, or use float64 or utf8",
    };
    let too_long = || Misfit {
        reason: format!("does not fit a decimal of {precision} digits, {scale} behind the point"),
        hint: "give the column a wider decimal type, or float64",
    };
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !are_digits(whole) || !are_digits(fraction) {
        return Err(not_decimal());
    }
    let fraction = fraction.trim_end_matches('0');
    let missing = i64::from(scale) - fraction.len() as i64;
    let mut digits = 0i128;
    for byte in whole.bytes().chain(fraction.bytes()) {
        let digit = i128::from(byte - b'0');
        let longer = digits
            .checked_mul(10)
            .and_then(|ten| ten.checked_add(digit));
        digits = longer.ok_or_else(too_long)?;
    }
    let scaled = match u32::try_from(missing) {
        Ok(missing) => 10i128
            .checked_pow(missing)
            .and_then(|by| digits.checked_mul(by)),
        // Of a scale below zero: whole tens, hundreds, … .
        Err(_) if fraction.is_empty() => {
            let by = 10i128.checked_pow(missing.unsigned_abs() as u32);
            by.filter(|by| digits % by == 0).map(|by| digits / by)
        }
        Err(_) => None,
    };
    let most = 10i128.pow(u32::from(precision));
    match scaled {
        Some(value) if value < most && text.starts_with('-') => Ok(Cell::Decimal(-value)),
        Some(value) if value < most => Ok(Cell::Decimal(value)),
        _ => Err(too_long()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly_or_not_at_all() {
        for (text, precision, scale, digits) in [
            ("1.25", 20, 4, Some(12_500)),
            ("-0.05", 20, 4, Some(-500)),
            ("+7", 3, 0, Some(7)),
            ("7.000", 3, 0, Some(7)),
            (".5", 3, 1, Some(5)),
            ("5.", 3, 1, Some(50)),
            ("00012", 2, 0, Some(12)),
            ("999", 3, 0, Some(999)),
            ("1000", 3, 0, None),
            ("1.25", 20, 1, None),
            ("1200", 4, -2, Some(12)),
            ("1250", 4, -2, None),
            (
                "99999999999999999999999999999999999999",
                38,
                0,
                Some(10i128.pow(38) - 1),
            ),
            ("340282366920938463463374607431768211457", 38, 0, None),
            ("0.00000000000000000000000000000000000001", 38, 38, Some(1)),
            ("", 3, 0, None),
            (".", 3, 0, None),
            ("-", 3, 0, None),
            ("1e3", 9, 0, None),
            ("1,5", 9, 1, None),
            ("--1", 9, 1, None),
        ] {
            let found = parse_decimal(text, precision, scale);
            let expected = digits.map(Cell::Decimal);
            assert_eq!(found.clone().ok(), expected, "{text}: {found:?}");
        }
    }

    #[test]
    fn bytes_are_pairs_of_hexadecimal_digits() {
        assert_eq!(hexadecimal("00fF"), Some(vec![0, 255]));
        assert_eq!(hexadecimal(""), Some(vec![]));
        assert_eq!(hexadecimal("0"), None);
        assert_eq!(hexadecimal("0x"), None);
        assert_eq!(hexadecimal("\u{e9}"), None);
    }
}
