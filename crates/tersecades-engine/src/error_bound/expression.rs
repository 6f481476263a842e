//! Interval rules: how far an expression may be off when its columns are.

use std::collections::HashMap;

use arrow_schema::{DataType, Schema};
use tersecades_columnar::types::Value;

use super::{ErrorBound, Influence};
use crate::expression::{Arithmetic, Expression};

/// What lossy columns do to each name.
pub(super) type Names = HashMap<String, Influence>;

/// What lossy columns do to those of `schema`, of which its metadata tells.
pub(super) fn names_of(schema: &Schema) -> Names {
    let fields = schema.fields().iter();
    fields
        .map(|field| (field.name().clone(), Influence::of_field(field)))
        .filter(|(_, influence)| !influence.is_none())
        .collect()
}

/// What lossy columns do to `expression`.
pub(super) fn influence(expression: &Expression, names: &Names) -> Influence {
    match expression {
        Expression::Column(name) => names.get(name).cloned().unwrap_or_default(),
        Expression::Literal(value) => Influence {
            may_be_whole: matches!(value, Value::Integer(_)),
            ..Influence::default()
        },
        Expression::Arithmetic(how, a, b) => arithmetic(*how, a, b, names),
        Expression::Cast(input, to) => cast(influence(input, names), to),
        // Lossy encoding keeps nulls, and so does what has a bound.
        Expression::IsNull(input) if !influence(input, names).may_move_nulls() => {
            Influence::default()
        }
        _ => any(expression, names).with(ErrorBound::Unknown),
    }
}

/// All lossy columns that `expression` reads.
pub(super) fn any(expression: &Expression, names: &Names) -> Influence {
    let mut all = Influence::default();
    for name in expression.columns() {
        if let Some(influence) = names.get(name) {
            all.columns.extend(influence.columns.iter().cloned());
        }
    }
    all
}

/// All lossy columns that any of the names depends on.
pub(super) fn of_all(names: &Names) -> Influence {
    let mut all = Influence::default();
    for influence in names.values() {
        all.columns.extend(influence.columns.iter().cloned());
    }
    all
}

fn arithmetic(how: Arithmetic, a: &Expression, b: &Expression, names: &Names) -> Influence {
    let (left, right) = (influence(a, names), influence(b, names));
    let bound = match (how, constant(a), constant(b)) {
        (Arithmetic::Add | Arithmetic::Subtract, ..) => left.bound.plus(right.bound),
        (Arithmetic::Multiply, Some(factor), _) => right.bound.scaled(factor),
        (Arithmetic::Multiply, _, Some(factor)) => left.bound.scaled(factor),
        (Arithmetic::Divide, _, Some(divisor)) if divisor != 0.0 => {
            let bound = left.bound.scaled(divisor.recip());
            match left.may_be_whole {
                true => truncated(bound),
                false => bound,
            }
        }
        _ => ErrorBound::Unknown,
    };
    Influence {
        may_be_whole: left.may_be_whole && right.may_be_whole,
        ..left.joined(&right, bound)
    }
}

/// Two numbers that far apart are, without their fractions, at most one further apart.
fn truncated(bound: ErrorBound) -> ErrorBound {
    match bound {
        ErrorBound::Within(bound) => ErrorBound::Within(bound + 1.0),
        _ => ErrorBound::Unknown,
    }
}

fn constant(expression: &Expression) -> Option<f64> {
    match expression {
        Expression::Literal(Value::Integer(value)) => Some(*value as f64),
        Expression::Literal(Value::Float(value)) => Some(*value),
        Expression::Literal(Value::Decimal(digits, scale)) => {
            Some(*digits as f64 / 10f64.powi(i32::from(*scale)))
        }
        _ => None,
    }
}

fn cast(input: Influence, to: &DataType) -> Influence {
    let bound = match (input.bound, to) {
        (bound, DataType::Float64) => bound,
        (bound, to) if to.is_integer() => truncated(bound),
        _ => ErrorBound::Unknown,
    };
    Influence {
        may_be_whole: to.is_integer(),
        ..input.with(bound)
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::{col, lit};

    use super::*;

    fn names() -> Names {
        let lossy = |name: &str, bound| {
            let columns = [name.to_owned()].into();
            let influence = Influence {
                bound: ErrorBound::Within(bound),
                columns,
                may_be_whole: false,
            };
            (name.to_owned(), influence)
        };
        [lossy("x", 0.5), lossy("y", 0.25)].into()
    }

    #[test]
    fn bounds_follow_the_rules_of_intervals() {
        use ErrorBound::{Unknown, Within};
        for (expression, bound) in [
            (col("x") + col("y"), Within(0.75)),
            (col("x") - lit(7), Within(0.5)),
            (col("x") * -4.0, Within(2.0)),
            (lit(4) * col("y"), Within(1.0)),
            (col("x") / 2, Within(0.25)),
            (lit(1) / col("x"), Unknown),
            (col("x") * col("y"), Unknown),
            (col("x") % 2, Unknown),
            (col("x").gt(3), Unknown),
            (col("x").cast(DataType::Int64), Within(1.5)),
            (col("x").cast(DataType::Int64) / 2, Within(1.75)),
            ((col("x").cast(DataType::Int64) + 1) / 4, Within(1.375)),
            (col("x").cast(DataType::Int64) / 2.0, Within(1.75)),
            (col("x").is_null(), Within(0.0)),
            ((col("x") + 1).is_null(), Within(0.0)),
            ((lit(1) / col("x")).is_null(), Unknown),
            (col("z") + 1, Within(0.0)),
            (col("z") / 4, Within(0.0)),
            // Whether what is exact is a whole number, nothing says.
            (
                (col("x").cast(DataType::Int64) + col("z")) / 4,
                Within(1.375),
            ),
            (
                (col("x").cast(DataType::Int64) + (col("z") % 3)) / 4,
                Within(1.375),
            ),
            ((col("x").cast(DataType::Int64) + 0.5) / 4, Within(0.375)),
            ((col("x") + col("z")) / 4, Within(0.125)),
        ] {
            assert_eq!(
                influence(&expression, &names()).bound,
                bound,
                "{expression}"
            );
        }
        let both = influence(&(col("x") + col("y")), &names());
        assert_eq!(both.names(), "x,y");
    }
}
