//! Intervals as PostgreSQL has them: added to dates, and beside lengths of time.
//!
//! ```text
//! seconds + INTERVAL '1.5 seconds'       ─▶ CAST(seconds AS TIMESTAMP(3)) + interval
//! date + interval                        ─▶ CAST(date AS TIMESTAMP) + interval
//! CAST(a.ts - b.ts AS interval) > '1 day' ─▶ nanoseconds of a.ts - b.ts > nanoseconds of a day
//! ```
//! DataFusion gives a date and drops the hours: `DATE '2024-01-01' + INTERVAL '36 hours'` would be
//! the second of January. It compares intervals, and lengths of time with them, part by part, so
//! that 30 hours would be less than a day.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use arrow_array::{ArrayRef, Decimal128Array};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, ScalarValue, exec_err};
use datafusion_expr::expr::{Between, BinaryExpr, Case, Cast, InList};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast,
};

use super::of_one;

/// Makes timestamps of dates that an interval is added to or taken from.
#[derive(Debug)]
pub(crate) struct TimesOfDates;

impl FunctionRewrite for TimesOfDates {
    fn name(&self) -> &str {
        "times_of_dates"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
            return Ok(Transformed::no(expr));
        };
        // Types that are not settled yet are no dates.
        let is_date = |side: &Expr| {
            let data_type = side.get_type(schema);
            matches!(data_type, Ok(DataType::Date32 | DataType::Date64))
        };
        let is_interval = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Interval(_)));
        let time = |date: Box<Expr>| {
            let data_type = DataType::Timestamp(TimeUnit::Microsecond, None);
            Box::new(cast(*date, data_type))
        };
        let adds = matches!(op, Operator::Plus | Operator::Minus);
        let (left, right, changed) = match (is_date(&left), is_date(&right)) {
            (true, _) if adds && is_interval(&right) => (time(left), right, true),
            (_, true) if op == Operator::Plus && is_interval(&left) => (left, time(right), true),
            _ => (left, right, false),
        };
        let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
        Ok(match changed {
            true => Transformed::yes(expr),
            false => Transformed::no(expr),
        })
    }
}

/// Adds intervals to times in a unit that holds the sum, where the unit of the time does not.
#[derive(Debug)]
pub(crate) struct FinerTimes;

impl FunctionRewrite for FinerTimes {
    fn name(&self) -> &str {
        "finer_times"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else {
            return Ok(Transformed::no(expr));
        };
        let finer = |time: &Expr, interval: &Expr| match (time.get_type(schema), interval) {
            (
                Ok(DataType::Timestamp(unit, zone)),
                Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _),
            ) => {
                let wanted = unit_of(value.nanoseconds);
                let data_type = DataType::Timestamp(wanted, zone);
                (wanted > unit).then(|| Box::new(cast(time.clone(), data_type)))
            }
            _ => None,
        };
        let (left, right) = match op {
            Operator::Plus | Operator::Minus => match finer(left, right) {
                Some(time) => (time, right.clone()),
                None => match finer(right, left) {
                    Some(time) => (left.clone(), time),
                    None => return Ok(Transformed::no(expr)),
                },
            },
            _ => return Ok(Transformed::no(expr)),
        };
        let op = *op;
        Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr {
            left,
            op,
            right,
        })))
    }
}

/// The coarsest unit of which `nanoseconds` are a whole number.
fn unit_of(nanoseconds: i64) -> TimeUnit {
    match nanoseconds {
        it if it % 1_000_000_000 == 0 => TimeUnit::Second,
        it if it % 1_000_000 == 0 => TimeUnit::Millisecond,
        it if it % 1_000 == 0 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// Compares intervals, and lengths of time with them, by their nanoseconds.
#[derive(Debug)]
pub(crate) struct NanosecondsOfLengths;

impl FunctionRewrite for NanosecondsOfLengths {
    fn name(&self) -> &str {
        "nanoseconds_of_lengths"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let compared = match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
                numbers([&**left, &**right], schema).map(|[left, right]| {
                    let (left, right) = (Box::new(left), Box::new(right));
                    let op = *op;
                    Expr::BinaryExpr(BinaryExpr { left, op, right })
                })
            }
            Expr::Between(between) => {
                let sides = [&*between.expr, &*between.low, &*between.high];
                numbers(sides, schema).map(|sides| {
                    let [value, low, high] = sides.map(Box::new);
                    Expr::Between(Between::new(value, between.negated, low, high))
                })
            }
            Expr::InList(list) => {
                let sides = std::iter::once(&*list.expr).chain(&list.list);
                let sides = numbers_of(&sides.collect::<Vec<_>>(), schema);
                sides.and_then(|mut sides| {
                    let listed = sides.split_off(1);
                    let value = Box::new(sides.pop()?);
                    Some(Expr::InList(InList::new(value, listed, list.negated)))
                })
            }
            Expr::Case(case) => case.expr.as_deref().and_then(|operand| {
                let found = case.when_then_expr.iter().map(|(when, _)| &**when);
                let sides: Vec<&Expr> = std::iter::once(operand).chain(found).collect();
                let mut sides = numbers_of(&sides, schema)?.into_iter();
                let operand = sides.next().map(Box::new);
                let results = case.when_then_expr.iter().map(|(_, result)| result.clone());
                let found = sides.map(Box::new).zip(results).collect();
                Some(Expr::Case(Case::new(
                    operand,
                    found,
                    case.else_expr.clone(),
                )))
            }),
            Expr::ScalarFunction(call) if call.func.name() == "nullif" => {
                null_if(&call.args, schema)
            }
            _ => None,
        };
        Ok(match compared {
            Some(compared) => Transformed::yes(compared),
            None => Transformed::no(expr),
        })
    }
}

/// The first of two intervals, or null where the second is as long; not of lengths of time, which
/// no column holds.
fn null_if(arguments: &[Expr], schema: &DFSchema) -> Option<Expr> {
    let [value, other] = arguments else {
        return None;
    };
    let [left, right] = numbers([value, other], schema)?;
    if is_length(value, schema) || !is_interval(value, schema) {
        return None;
    }
    let null = Expr::Literal(ScalarValue::IntervalMonthDayNano(None), None);
    let found = (Box::new(left.eq(right)), Box::new(null));
    let otherwise = Some(Box::new(value.clone()));
    Some(Expr::Case(Case::new(None, vec![found], otherwise)))
}

/// As [`numbers_of`], of so many sides.
fn numbers<const N: usize>(sides: [&Expr; N], schema: &DFSchema) -> Option<[Expr; N]> {
    numbers_of(&sides, schema)?.try_into().ok()
}

/// The nanoseconds of what is compared, if there are intervals among it.
fn numbers_of(sides: &[&Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let any = sides.iter().any(|side| is_interval(side, schema));
    let number = |side: &&Expr| nanoseconds(side, schema);
    any.then(|| sides.iter().map(number).collect())?
}

pub(super) fn is_interval(side: &Expr, schema: &DFSchema) -> bool {
    let own = side.get_type(schema);
    matches!(own, Ok(DataType::Interval(IntervalUnit::MonthDayNano)))
}

/// What was made an interval, if it was.
fn inner(side: &Expr) -> Option<&Expr> {
    match side {
        Expr::Cast(Cast { expr, field }) => {
            matches!(field.data_type(), DataType::Interval(_)).then_some(expr)
        }
        _ => None,
    }
}

fn is_length(side: &Expr, schema: &DFSchema) -> bool {
    let own = inner(side).unwrap_or(side).get_type(schema);
    matches!(own, Ok(DataType::Duration(_)))
}

/// The nanoseconds of an interval, a length of time that was made one, or nothing.
fn nanoseconds(side: &Expr, schema: &DFSchema) -> Option<Expr> {
    let constant = |nanoseconds| {
        let value = ScalarValue::Decimal128(nanoseconds, NANOSECOND_DIGITS, 0);
        Expr::Literal(value, None)
    };
    match (side, inner(side).unwrap_or(side)) {
        (_, Expr::Literal(value, _)) if value.is_null() => Some(constant(None)),
        (Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _), _) => {
            Some(constant(Some(nanoseconds_of(*value))))
        }
        (_, length) if is_length(side, schema) => Some(NANOSECONDS.call(vec![length.clone()])),
        _ => is_interval(side, schema).then(|| NANOSECONDS.call(vec![side.clone()])),
    }
}

/// Nanoseconds of a day.
const DAY: i128 = 86_400_000_000_000;

/// How long an interval is: months have 30 days of 24 hours, as in PostgreSQL.
fn nanoseconds_of(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.days) + i128::from(interval.months) * 30;
    days * DAY + i128::from(interval.nanoseconds)
}

/// Most digits of the nanoseconds in 64 bits of seconds.
const NANOSECOND_DIGITS: u8 = 28;

/// The nanoseconds of an interval, or of a length of time in any unit, which 64 bits hold of 292
/// years alone.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nanoseconds(Signature);

static NANOSECONDS: LazyLock<ScalarUDF> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(Nanoseconds(signature))
});

impl ScalarUDFImpl for Nanoseconds {
    fn name(&self) -> &str {
        "nanoseconds"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(NANOSECOND_DIGITS, 0))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |lengths| {
            let tick: i128 = match lengths.data_type() {
                DataType::Duration(TimeUnit::Second) => 1_000_000_000,
                DataType::Duration(TimeUnit::Millisecond) => 1_000_000,
                DataType::Duration(TimeUnit::Microsecond) => 1_000,
                _ => 1,
            };
            let nanoseconds: Decimal128Array = match lengths.data_type() {
                DataType::Interval(IntervalUnit::MonthDayNano) => {
                    let intervals = lengths.as_primitive::<IntervalMonthDayNanoType>();
                    intervals.unary(nanoseconds_of)
                }
                DataType::Duration(_) => {
                    let ticks = arrow_cast::cast(lengths, &DataType::Int64)?;
                    let ticks = ticks.as_primitive::<Int64Type>();
                    ticks.unary(|ticks| i128::from(ticks) * tick)
                }
                other => return exec_err!("{other} is no length of time"),
            };
            let nanoseconds = nanoseconds.with_precision_and_scale(NANOSECOND_DIGITS, 0)?;
            Ok(Arc::new(nanoseconds) as ArrayRef)
        })
    }
}
