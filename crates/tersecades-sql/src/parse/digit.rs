//! Numbers of more digits than floats have keep them where they are compared or cast.
//!
//! ```text
//! price = 12345678901234567890.5             ─▶ price = CAST('12345678901234567890.5' AS DOUBLE)
//! CAST(12345678901234567890.5 AS DECIMAL(…)) ─▶ CAST('12345678901234567890.5' AS DECIMAL(…))
//! VALUES (CAST(1 AS DECIMAL(…))), (1e-20) ─▶ VALUES (CAST(CAST(1 AS DECIMAL(…)) AS DOUBLE)), …
//! ```
//! They are floats as all others, and [`crate::function::far`] reads their digits beside numbers
//! that are none. Of floats beside decimals in a column of `VALUES` DataFusion makes decimals,
//! which hold few of their digits.

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, UnaryOperator, Value, Values,
};

/// Most digits of a decimal.
const DIGITS_MAX: usize = 38;

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

/// Keeps the digits of numbers that `value` compares or casts.
pub(super) fn keep(value: &mut Expr) {
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
        _ => {}
    }
}

/// Makes floats of the decimals in columns of `rows` that have floats too.
pub(super) fn keep_floats(rows: &mut Values) {
    let width = rows.rows.first().map_or(0, |row| row.len());
    for column in 0..width {
        let cells = rows.rows.iter_mut().filter_map(|row| row.get_mut(column));
        let cells: Vec<&mut Expr> = cells.collect();
        if cells.iter().any(|cell| is_float(cell)) {
            let decimals = cells.into_iter().filter(|cell| is_decimal(cell));
            decimals.for_each(|cell| *cell = as_double(cell.clone()));
        }
    }
}

fn is_float(cell: &Expr) -> bool {
    match cell {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_float(inner),
        Expr::Value(value) => matches!(&value.value, Value::Number(number, _)
            if number.parse::<i64>().is_err() && number.parse::<u64>().is_err()),
        Expr::Cast { data_type, .. } => matches!(
            data_type,
            DataType::Double(_) | DataType::DoublePrecision | DataType::Float(_) | DataType::Real
        ),
        _ => false,
    }
}

fn is_decimal(cell: &Expr) -> bool {
    match cell {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_decimal(inner),
        Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::Decimal(_) | DataType::Numeric(_))
        }
        _ => false,
    }
}

fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn keep_number(number: &mut Expr) {
    if let Some(text) = long_number(number) {
        *number = as_double(Expr::Value(Value::SingleQuotedString(text).into()));
    }
}

fn as_double(value: Expr) -> Expr {
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
