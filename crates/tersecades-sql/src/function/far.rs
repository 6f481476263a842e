//! Values that the type in which DataFusion would compare them does not hold.
//!
//! ```text
//! ts < TIMESTAMP '9999-12-31' ─▶ CAST(ts AS TIMESTAMP(6)) < TIMESTAMP(6) '9999-12-31'
//! price = 1234567.1           ─▶ price = DECIMAL '1234567.1'
//! price < 1e300, price = x    ─▶ CAST(price AS DOUBLE) < 1e300, CAST(price AS DOUBLE) = x
//! ```
//! DataFusion compares times in the finer of both units, and nanoseconds end in the year 2262. What
//! the casts here cut off of times decides nothing beside constants so far away. Of floats beside
//! decimals it makes decimals with 15 digits behind the point, which floats do not have. `BETWEEN`
//! and `IN` become the comparisons that they stand for, those of integers and floats together too.

use arrow_schema::{DataType, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{Between, BinaryExpr, InList};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::utils::disjunction;
use datafusion_expr::{Expr, ExprSchemable, Operator, cast};

use super::cast::{CAST_MARK, CAST_TO};

/// Most digits of a constant before and behind the point that is made a decimal.
const DIGITS_MAX: usize = 18;

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
        let rewritten = match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
                compared(left, *op, right, schema)
            }
            Expr::Between(between) => between_far(between, schema),
            Expr::InList(list) => in_far(list, schema),
            _ => None,
        };
        Ok(match rewritten {
            Some(rewritten) => Transformed::yes(rewritten),
            None => Transformed::no(expr),
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
        let sides: Vec<&Expr> = match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
                vec![left, right]
            }
            Expr::Between(between) => vec![&between.expr, &between.low, &between.high],
            Expr::InList(list) => std::iter::once(&*list.expr).chain(&list.list).collect(),
            _ => return Ok(Transformed::no(expr)),
        };
        let beside_constant = sides.iter().any(|side| side.column_refs().is_empty());
        match beside_constant && sides.iter().any(|side| is_finer_time(side, schema)) {
            true => expr.map_children(|child| {
                Ok(match is_finer_time(&child, schema) {
                    true => Transformed::yes(marked(child)),
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

fn marked(cast: Expr) -> Expr {
    let name = Expr::Literal(ScalarValue::from("time"), None);
    CAST_MARK.call(vec![cast, name])
}

/// `left op right`, where one of them is a far constant.
fn compared(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (left, right) = match far(right, left, schema) {
        Some((right, left)) => (left, right),
        None => far(left, right, schema)?,
    };
    Some(binary(left, op, right))
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}

fn between_far(between: &Between, schema: &DFSchema) -> Option<Expr> {
    let ends = [
        (&between.low, Operator::GtEq),
        (&between.high, Operator::LtEq),
    ];
    let [low, high] = ends.map(|(end, op)| (end, op, compared(&between.expr, op, end, schema)));
    let mixed = is_float(low.0, schema) != is_float(high.0, schema);
    if low.2.is_none() && high.2.is_none() && !mixed {
        return None;
    }
    let [low, high] = [low, high].map(|(end, op, far)| {
        far.unwrap_or_else(|| binary((*between.expr).clone(), op, (**end).clone()))
    });
    let inside = low.and(high);
    Some(match between.negated {
        true => Expr::Not(Box::new(inside)),
        false => inside,
    })
}

/// Whether `expr` is a float: beside integers each is compared by itself, as one type for all
/// would round the integers.
fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema)
        .is_ok_and(|data_type| data_type.is_floating())
}

fn in_far(list: &InList, schema: &DFSchema) -> Option<Expr> {
    let (mut near, mut terms, mut changed) = (Vec::new(), Vec::new(), false);
    let floats = list.list.iter().filter(|item| is_float(item, schema));
    let mixed = (1..list.list.len()).contains(&floats.count());
    for item in &list.list {
        if mixed && is_float(item, schema) {
            terms.push(
                compared(&list.expr, Operator::Eq, item, schema)
                    .unwrap_or_else(|| binary((*list.expr).clone(), Operator::Eq, item.clone())),
            );
            continue;
        }
        match far(item, &list.expr, schema) {
            Some((item, expr)) if expr == *list.expr => {
                near.push(item);
                changed = true;
            }
            _ => match compared(&list.expr, Operator::Eq, item, schema) {
                Some(term) => terms.push(term),
                None => near.push(item.clone()),
            },
        }
    }
    if terms.is_empty() && !changed {
        return None;
    }
    if !near.is_empty() {
        terms.push(Expr::InList(InList::new(list.expr.clone(), near, false)));
    }
    let inside = disjunction(terms)?;
    Some(match list.negated {
        true => Expr::Not(Box::new(inside)),
        false => inside,
    })
}

/// `side` and `other` in types that hold both, where the common type of DataFusion does not.
fn far(side: &Expr, other: &Expr, schema: &DFSchema) -> Option<(Expr, Expr)> {
    let literal = |value| Expr::Literal(value, None);
    match other.get_type(schema).ok()? {
        DataType::Timestamp(_, zone) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, zone);
            let time = far_time(side, &micros)?;
            Some((literal(time), cast(other.clone(), micros)))
        }
        DataType::Date32 if !matches!(side, Expr::Literal(..)) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
            let time = far_time(side, &micros)?;
            Some((literal(time), cast(other.clone(), micros)))
        }
        DataType::Decimal128(..) if side.get_type(schema).ok()?.is_floating() => {
            let number = match constant(side) {
                Some(ScalarValue::Float64(Some(number))) => decimal(number),
                _ => None,
            };
            Some(match number {
                Some(number) => (literal(number), other.clone()),
                None => (side.clone(), cast(other.clone(), DataType::Float64)),
            })
        }
        _ => None,
    }
}

/// The decimal that is written as `number` is, where it has not too many digits.
fn decimal(number: f64) -> Option<ScalarValue> {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    if whole.len() > DIGITS_MAX || fraction.len() > DIGITS_MAX {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = fraction.len() as u8;
    let precision = whole.len() as u8 + scale;
    Some(ScalarValue::Decimal128(
        Some(digits),
        precision,
        scale.cast_signed(),
    ))
}

/// The time in microseconds that `side` is, where nanoseconds do not reach it.
fn far_time(side: &Expr, micros: &DataType) -> Option<ScalarValue> {
    let time = constant(side)?.cast_to(micros).ok()?;
    match time {
        ScalarValue::TimestampMicrosecond(Some(ticks), _) if ticks.checked_mul(1_000).is_none() => {
            Some(time)
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
            constant(&cast.expr)?.cast_to(&to).ok()
        }
        _ => None,
    }
}
