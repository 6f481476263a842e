//! Numbers of more digits than floats have keep them where they are compared or cast.
//!
//! ```text
//! x = 12345678901234567890.5 ─▶ x = cast_to(CAST('12345678901234567890.5' AS DOUBLE), 'digits')
//! CAST(12345678901234567890.5 AS DECIMAL(…)) ─▶ CAST('12345678901234567890.5' AS DECIMAL(…))
//! ```
//! They are floats as all others, and [`crate::function::far`] reads their digits beside numbers
//! that are none. `FLOAT(n)` has a precision of `n` bits or more: from 25 on it is a double.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Query, UnaryOperator, Value,
    VisitMut, VisitorMut,
};

use super::window::call_of;
use crate::function::cast::{CAST_TO, DIGITS};

/// Most digits of a decimal.
const DIGITS_MAX: usize = 38;

/// The first `n` of `FLOAT(n)` that a float of 32 bits does not have.
const REAL_BITS: u64 = 25;

/// A number as `digits * 10^-behind_point`, without zeros at the end behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digits {
    /// All digits, with the sign.
    pub(crate) digits: i128,
    /// How many of them stand behind the point.
    pub(crate) behind_point: usize,
}

impl Digits {
    /// The number that is written so; `None` where it has more digits than a decimal.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (sign, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", mantissa),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let written = format!("{whole}{fraction}");
        let digits = written.trim_end_matches('0').trim_start_matches('0');
        if digits.is_empty() && written.contains('0') {
            return Some(Digits {
                digits: 0,
                behind_point: 0,
            });
        }
        let zeros = written.len() - written.trim_end_matches('0').len();
        let behind =
            i64::try_from(fraction.len()).ok()? - i64::try_from(zeros).ok()? - i64::from(exponent);
        let zeros = usize::try_from(-behind).unwrap_or(0);
        let behind_point = usize::try_from(behind).unwrap_or(0);
        if digits.len().checked_add(zeros)? > DIGITS_MAX || behind_point > DIGITS_MAX {
            return None;
        }
        let digits = format!("{sign}{digits}{}", "0".repeat(zeros));
        Some(Digits {
            digits: digits.parse().ok()?,
            behind_point,
        })
    }
}

/// Keeps the digits of numbers that `query` compares or casts.
pub(crate) fn keep_digits(query: &mut Query) {
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut Numbers);
}

struct Numbers;

impl VisitorMut for Numbers {
    type Break = ();

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<()> {
        keep(value);
        ControlFlow::Continue(())
    }
}

/// Keeps the digits of numbers that `value` compares or casts.
fn keep(value: &mut Expr) {
    match value {
        Expr::BinaryOp { left, op, right } if compares(op) => {
            keep_number(left);
            keep_number(right);
        }
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            keep_number(left);
            keep_number(right);
        }
        Expr::Between {
            expr, low, high, ..
        } => [expr, low, high].into_iter().for_each(|it| keep_number(it)),
        Expr::InList { expr, list, .. } => {
            keep_number(expr);
            list.iter_mut().for_each(keep_number);
        }
        Expr::Case {
            operand: Some(operand),
            conditions,
            ..
        } => {
            keep_number(operand);
            let conditions = conditions.iter_mut();
            conditions.for_each(|case| keep_number(&mut case.condition));
        }
        Expr::Cast {
            expr,
            data_type: DataType::Decimal(_) | DataType::Numeric(_),
            ..
        } => {
            if let Some(text) = long_number(expr) {
                **expr = Expr::Value(Value::SingleQuotedString(text).into());
            }
        }
        Expr::Cast { data_type, .. } => keep_bits(data_type),
        _ => {}
    }
}

/// Makes a double of a float of more bits than a `REAL` has.
pub(super) fn keep_bits(data_type: &mut DataType) {
    if let DataType::Float(ExactNumberInfo::Precision(REAL_BITS..)) = data_type {
        *data_type = DataType::Double(ExactNumberInfo::None);
    }
}

fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn keep_number(number: &mut Expr) {
    if let Some(written) = long_number(number) {
        let text = |text: String| Expr::Value(Value::SingleQuotedString(text).into());
        let arguments = [as_double(text(written)), text(DIGITS.to_owned())];
        *number = Expr::Function(call_of(CAST_TO, arguments));
    }
}

pub(super) fn as_double(value: Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(value),
        data_type: DataType::Double(ExactNumberInfo::None),
        array: false,
        format: None,
    }
}

/// The text of a number that 64 bits do not hold, whole or as a float.
fn long_number(number: &Expr) -> Option<String> {
    match number {
        Expr::Nested(inner) => long_number(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match &**expr {
            Expr::Value(value) => long_text(&value.value, "-"),
            inner => long_number(inner).map(|text| format!("-{text}")),
        },
        Expr::Value(value) => long_text(&value.value, ""),
        _ => None,
    }
}

fn long_text(value: &Value, sign: &str) -> Option<String> {
    let Value::Number(number, _) = value else {
        return None;
    };
    let text = format!("{sign}{number}");
    let whole = text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    let float: f64 = text.parse().ok()?;
    let same = match Digits::of(&text) {
        Some(digits) => Digits::of(&float.to_string()) == Some(digits),
        None => number.len() <= DIGITS_MAX,
    };
    (!whole && !same && float.is_finite()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_to_the_last_digit() {
        let of = |text: &str| Digits::of(text).map(|it| (it.digits, it.behind_point));
        assert_eq!(
            of("12345678901234567890.50"),
            Some((123_456_789_012_345_678_905, 1))
        );
        assert_eq!(of("-0.00120"), Some((-12, 4)));
        assert_eq!(of("1.5e3"), Some((1_500, 0)));
        assert_eq!(of("15e-3"), Some((15, 3)));
        assert_eq!(of("0.00"), Some((0, 0)));
        assert_eq!(of("100"), Some((100, 0)));
        assert_eq!(of("1e38"), None);
        assert_eq!(of("1e-39"), None);
        assert_eq!(of("1e400000000000"), None);
        assert_eq!(of(&format!("{}.5", "9".repeat(38))), None);
        assert_eq!(of(&"9".repeat(38)), Some((10i128.pow(38) - 1, 0)));
        assert_eq!(of("inf"), None);
        assert_eq!(of(""), None);
    }
}
