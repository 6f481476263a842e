//! Values that the type in which DataFusion would compare them does not hold.
//!
//! ```text
//! ts < TIMESTAMP '9999-12-31' ─▶ CAST(ts AS TIMESTAMP(6)) < TIMESTAMP(6) '9999-12-31'
//! price = 1234567.1           ─▶ price = DECIMAL '1234567.1'
//! price < 1e-300, price = x   ─▶ CAST(price AS DOUBLE) < 1e-300, CAST(price AS DOUBLE) = x
//! ```
//! DataFusion compares times in the finer of both units, and nanoseconds end in the year 2262. What
//! the casts here cut off of times decides nothing beside constants so far away. Of floats beside
//! decimals it makes decimals with 15 digits behind the point, which floats do not have. `BETWEEN`
//! and `IN` become the comparisons that they stand for, those of integers and floats together too.
//! Casts of whole numbers to floats that a query asks for are marked, as the others are dropped.

use arrow_schema::{DataType, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion_expr::expr::{Between, BinaryExpr, InList};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::utils::disjunction;
use datafusion_expr::{Expr, ExprSchemable, Operator, cast, lit};
use tersecades_engine::expression::with_seconds;

use super::cast::{ASKED, CAST_TO, COMMON, DIGITS, mark_of, marked};
use super::compare::by_operator;
use crate::lower::expression::unmarked;
use crate::parse::digit::Digits;

/// Compares such values in types that hold them.
#[derive(Debug)]
pub(crate) struct FarConstants;

impl FunctionRewrite for FarConstants {
    fn name(&self) -> &str {
        "far_constants"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let asked = as_asked(expr, schema)?;
        let rewritten = match &asked.data {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
                compared(left, *op, right, schema)?
            }
            Expr::Between(between) => between_far(between, schema)?,
            Expr::InList(list) => in_far(list, schema)?,
            _ => None,
        };
        Ok(match rewritten {
            Some(rewritten) => Transformed::yes(rewritten),
            None => asked,
        })
    }
}

/// Keeps the casts of times to finer units beside constants: DataFusion's optimiser would cut the
/// constant to the unit of the time instead, and `seconds = TIMESTAMP '... 00:00:01.5'` be true.
#[derive(Debug)]
pub(crate) struct KeptCasts;

impl FunctionRewrite for KeptCasts {
    fn name(&self) -> &str {
        "kept_casts"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let sides = sides(&expr);
        let beside_constant = sides.iter().any(|side| side.column_refs().is_empty());
        match beside_constant && sides.iter().any(|side| is_finer_time(side, schema)) {
            true => expr.map_children(|child| {
                Ok(match is_finer_time(&child, schema) {
                    true => Transformed::yes(marked(child, COMMON)),
                    false => Transformed::no(child),
                })
            }),
            false => Ok(Transformed::no(expr)),
        }
    }
}

/// Whether `side` is a time of some column in a finer unit than its own.
fn is_finer_time(side: &Expr, schema: &DFSchema) -> bool {
    let Expr::Cast(cast) = side else {
        return false;
    };
    let times =
        |data_type: &DataType| matches!(data_type, DataType::Timestamp(..) | DataType::Date32);
    let from = cast.expr.get_type(schema);
    times(cast.field.data_type())
        && from.is_ok_and(|from| times(&from))
        && !side.column_refs().is_empty()
}

/// The sides of a comparison.
fn sides(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            vec![left, right]
        }
        Expr::Between(between) => vec![&between.expr, &between.low, &between.high],
        Expr::InList(list) => std::iter::once(&*list.expr).chain(&list.list).collect(),
        _ => Vec::new(),
    }
}

/// The comparison with marks around casts of whole numbers to floats that the query asks for, where
/// what they round may decide.
fn as_asked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let asked = |side: &Expr| is_rounding(side, schema);
    let sides = sides(&expr);
    let decides = sides.iter().filter(|side| !is_short(side)).count() > 1;
    if !(decides && sides.iter().any(|side| asked(side))) {
        return Ok(Transformed::no(expr));
    }
    expr.map_children(|child| {
        Ok(match asked(&child) {
            true => Transformed::yes(marked(child, ASKED)),
            false => Transformed::no(child),
        })
    })
}

/// Whether `side` makes floats of whole numbers that may have more digits.
fn is_rounding(side: &Expr, schema: &DFSchema) -> bool {
    use DataType::{Float32, Int8, Int16, UInt8, UInt16};
    let Expr::Cast(cast) = side else {
        return false;
    };
    let (to, from) = (cast.field.data_type(), cast.expr.get_type(schema));
    to.is_floating()
        && from.is_ok_and(|from| match from {
            Int8 | UInt8 | Int16 | UInt16 => false,
            DataType::Int32 | DataType::UInt32 => *to == Float32,
            from => from.is_integer(),
        })
}

/// Whether `side` is a constant below all whole numbers that floats of 32 bits round.
pub(super) fn is_short(side: &Expr) -> bool {
    let float = constant(side).and_then(|value| value.cast_to(&DataType::Float64).ok());
    matches!(float, Some(ScalarValue::Float64(Some(number))) if number.abs() < f64::from(1 << 24))
}

/// `left op right`, where one of them is a far constant.
fn compared(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    if let Some((left, right)) = long_constants(left, right) {
        return by_operator(&left, op, &right, schema);
    }
    let sides = match far(right, left, schema)? {
        Some((right, left)) => Some((left, right)),
        None => far(left, right, schema)?,
    };
    Ok(sides.map(|(left, right)| binary(left, op, right)))
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}

/// Whether both are equal, compared in types that hold them.
pub(super) fn equal(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Expr> {
    if let Some(far) = far_equal(left, right, schema)? {
        return Ok(far);
    }
    let equal = binary(left.clone(), Operator::Eq, right.clone());
    Ok(as_asked(equal, schema)?.data)
}

/// As [`equal`], where the common type of DataFusion does not hold both.
pub(super) fn far_equal(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    compared(left, Operator::Eq, right, schema)
}

fn between_far(between: &Between, schema: &DFSchema) -> Result<Option<Expr>> {
    let (value, low, high) = (&*between.expr, &*between.low, &*between.high);
    let far_low = compared(value, Operator::GtEq, low, schema)?;
    let far_high = compared(value, Operator::LtEq, high, schema)?;
    let mixed = is_float(low, schema) != is_float(high, schema);
    if far_low.is_none() && far_high.is_none() && !mixed {
        return Ok(None);
    }
    let plain = |op, end: &Expr| binary(value.clone(), op, end.clone());
    let low = far_low.unwrap_or_else(|| plain(Operator::GtEq, low));
    let inside = low.and(far_high.unwrap_or_else(|| plain(Operator::LtEq, high)));
    Ok(Some(match between.negated {
        true => Expr::Not(Box::new(inside)),
        false => inside,
    }))
}

/// Whether `expr` is a float: beside integers each is compared by itself, as one type for all
/// would round the integers.
fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema)
        .is_ok_and(|data_type| data_type.is_floating())
}

fn in_far(list: &InList, schema: &DFSchema) -> Result<Option<Expr>> {
    let (mut near, mut terms, mut changed) = (Vec::new(), Vec::new(), false);
    let floats = list.list.iter().filter(|item| is_float(item, schema));
    let mixed = (1..list.list.len()).contains(&floats.count());
    for item in &list.list {
        if mixed && is_float(item, schema) {
            terms.push(equal(&list.expr, item, schema)?);
            continue;
        }
        match far(item, &list.expr, schema)? {
            Some((item, expr)) if expr == *list.expr => {
                near.push(item);
                changed = true;
            }
            _ => match compared(&list.expr, Operator::Eq, item, schema)? {
                Some(term) => terms.push(term),
                None => near.push(item.clone()),
            },
        }
    }
    if terms.is_empty() && !changed {
        return Ok(None);
    }
    if !near.is_empty() {
        terms.push(Expr::InList(InList::new(list.expr.clone(), near, false)));
    }
    Ok(disjunction(terms).map(|inside| match list.negated {
        true => Expr::Not(Box::new(inside)),
        false => inside,
    }))
}

/// `side` and `other` in types that hold both, where the common type of DataFusion does not.
///
/// # Errors
/// For numbers with more digits than decimals have.
fn far(side: &Expr, other: &Expr, schema: &DFSchema) -> Result<Option<(Expr, Expr)>> {
    let Ok(other_type) = other.get_type(schema) else {
        return Ok(None);
    };
    Ok(match other_type {
        DataType::Timestamp(_, zone) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, zone);
            far_time(side, &micros).map(|time| (time, cast(other.clone(), micros)))
        }
        DataType::Date32 if !matches!(side, Expr::Literal(..)) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
            far_time(side, &micros).map(|time| (time, cast(other.clone(), micros)))
        }
        number if number.is_decimal() || number.is_integer() => far_number(side, schema, &number)?
            .map(|far| match far {
                (far, true) => (far, cast(other.clone(), DataType::Float64)),
                (far, false) => (far, other.clone()),
            }),
        _ => None,
    })
}

/// What `side`, a float, is beside numbers of another type, and whether those must be floats too.
fn far_number(side: &Expr, schema: &DFSchema, other: &DataType) -> Result<Option<(Expr, bool)>> {
    if !is_float(side, schema) {
        return Ok(None);
    }
    let beside = other.is_decimal();
    let Some(written) = written(side) else {
        return Ok(beside.then(|| (side.clone(), true)));
    };
    let is_text = is_text(side);
    if !(beside || is_text) {
        return Ok(None);
    }
    let number: f64 = written.parse().unwrap_or(f64::NAN);
    Ok(match decimal(&written) {
        Some((digits, precision, scale)) if precision - scale <= whole_digits(other) => {
            let number = ScalarValue::Decimal128(Some(digits), precision, scale.cast_signed());
            Some((Expr::Literal(number, None), false))
        }
        None if number.is_nan() || number.abs() < 1e38 => match is_text {
            true => return plan_err!("{written} has more than 38 digits"),
            false => Some((side.clone(), true)),
        },
        // Behind all numbers of the other type, and behind their nearest floats too.
        _ => Some((lit(f64::INFINITY.copysign(number)), true)),
    })
}

/// Both as decimals, where they are floats of which one has more digits than floats have.
fn long_constants(left: &Expr, right: &Expr) -> Option<(Expr, Expr)> {
    let number = |side: &Expr| {
        let (digits, precision, scale) = decimal(&written(side)?)?;
        let number = ScalarValue::Decimal128(Some(digits), precision, scale.cast_signed());
        Some(Expr::Literal(number, None))
    };
    let long = is_text(left) || is_text(right);
    long.then(|| Some((number(left)?, number(right)?)))?
}

/// Whether the float that `side` is stands as text.
fn is_text(side: &Expr) -> bool {
    !matches!(constant(side), Some(ScalarValue::Float64(_)))
}

/// Most digits before the point.
fn whole_digits(number: &DataType) -> u8 {
    match number {
        DataType::Decimal128(precision, scale) => {
            precision.saturating_add_signed(scale.saturating_neg())
        }
        _ => 20,
    }
}

/// How the float that `side` is was written, or could have been.
fn written(side: &Expr) -> Option<String> {
    match side {
        Expr::Literal(ScalarValue::Float64(Some(number)), _) => Some(number.to_string()),
        Expr::Negative(inner) => Some(match written(inner)? {
            number if number.starts_with('-') => number[1..].to_owned(),
            number => format!("-{number}"),
        }),
        Expr::ScalarFunction(call) if call.func.name() == CAST_TO => match call.args.first()? {
            cast if mark_of(side) == Some(DIGITS) => match unmarked(cast) {
                Expr::Cast(cast) => match &*cast.expr {
                    Expr::Literal(text, _) => text.try_as_str().flatten().map(str::to_owned),
                    _ => None,
                },
                _ => None,
            },
            cast => written(cast),
        },
        _ => None,
    }
}

/// Digits, precision and scale of the decimal that is written so, where there are not too many.
fn decimal(text: &str) -> Option<(i128, u8, u8)> {
    let number = Digits::of(text)?;
    let scale = u8::try_from(number.behind_point).ok()?;
    let digits = number.digits.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    let precision = u8::try_from(digits).ok()?.max(scale);
    Some((number.digits, precision, scale))
}

/// The time in microseconds that `side` is, where nanoseconds do not reach it.
fn far_time(side: &Expr, micros: &DataType) -> Option<Expr> {
    let time = constant(side)?.cast_to(micros).ok()?;
    match time {
        ScalarValue::TimestampMicrosecond(Some(ticks), _) if ticks.checked_mul(1_000).is_none() => {
            Some(Expr::Literal(time, None))
        }
        _ => None,
    }
}

/// The constant that `side` is, times of text in microseconds.
fn constant(side: &Expr) -> Option<ScalarValue> {
    match side {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Negative(inner) => constant(inner)?.arithmetic_negate().ok(),
        Expr::ScalarFunction(call) if call.func.name() == CAST_TO => constant(call.args.first()?),
        Expr::Cast(cast) => {
            let to = match cast.field.data_type() {
                DataType::Timestamp(_, zone) => {
                    DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
                }
                DataType::Date32 => DataType::Date32,
                _ => return None,
            };
            let value = constant(&cast.expr)?;
            let whole = value.try_as_str().flatten().and_then(with_seconds);
            whole.map_or(value, ScalarValue::from).cast_to(&to).ok()
        }
        _ => None,
    }
}
