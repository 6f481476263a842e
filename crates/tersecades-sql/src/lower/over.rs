//! `OVER (...)`: one operator of the engine for all calls of one partition and order.

use arrow_schema::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion_expr::{
    Expr, ExprSchemable, SortExpr, Window, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition,
};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::operator::over::{Bound, Frame, Over, OverCall, OverFunction, Units};
use tersecades_engine::operator::row::keys::SortOrder;

use super::Lowering;
use super::expression::{Lowerer, constant_number, is_widening};
use super::rows::{Column, Reach, Rows, free_name, unique_names};
use super::window::length;
use crate::error::of_datafusion;
use crate::function::aggregate::SqlAggregate;

/// Named columns over which the calls run.
#[derive(Default)]
pub(super) struct Columns(pub(super) Vec<(String, Expression)>);

impl Columns {
    /// The name of a column with this value.
    pub(super) fn of(&mut self, value: Expression) -> String {
        if let Some((name, _)) = self.0.iter().find(|(_, known)| *known == value) {
            return name.clone();
        }
        self.add("value", value)
    }

    /// Adds a column, called as `wanted` where that is free.
    pub(super) fn add(&mut self, wanted: &str, value: Expression) -> String {
        let name = self.free(wanted);
        self.0.push((name.clone(), value));
        name
    }

    /// `wanted`, or a name like it that is free.
    pub(super) fn free(&self, wanted: &str) -> String {
        free_name(wanted, |name| self.0.iter().any(|(known, _)| known == name))
    }
}

impl Lowering<'_> {
    /// Lowers calls with `OVER`.
    ///
    /// # Errors
    /// `Unsupported` for functions and frames that the engine does not have.
    pub(super) fn over(&self, window: &Window) -> Result<Rows> {
        let rows = self.plan(&window.input)?.spread()?;
        let schema = window.input.schema();
        let mut columns = Columns::default();
        let mut shown = Vec::new();
        for (index, name) in unique_names(schema).iter().enumerate() {
            shown.push(columns.add(name, rows.value(index)?.clone()));
        }
        let lowerer = rows.lowerer(schema)?;
        let mut steps: Vec<Over> = Vec::new();
        let mut outputs = Vec::new();
        for expr in &window.window_expr {
            let call = call_of(expr)?;
            let output = columns.free(&format!("over {}", outputs.len()));
            let (partition, order) = sorting(&call.params, &lowerer, &mut columns)?;
            let call = over_call(call, &lowerer, (&mut columns, output.clone()))?;
            outputs.push(output);
            match steps.last_mut() {
                Some(step) if step.partition == partition && step.order == order => {
                    step.calls.push(call);
                }
                _ => steps.push(Over {
                    partition,
                    order,
                    calls: vec![call],
                }),
            }
        }
        let mut stream = rows.stream.project(columns.0);
        for step in steps {
            stream = stream.rows(step);
        }
        let names = shown.into_iter().chain(outputs);
        Ok(Rows {
            stream,
            columns: names.map(|name| Column::Value(col(name))).collect(),
            time: None,
            reach: Reach::Other,
            pending: Vec::new(),
        })
    }
}

fn call_of(expr: &Expr) -> Result<&WindowFunction> {
    match expr {
        Expr::Alias(alias) => call_of(&alias.expr),
        Expr::WindowFunction(call) => Ok(call),
        other => Err(Error::internal(format!("`{other}` has no OVER"))),
    }
}

type Sorting = (Vec<String>, Vec<(Expression, SortOrder)>);

fn sorting(
    params: &WindowFunctionParams,
    lowerer: &Lowerer<'_>,
    columns: &mut Columns,
) -> Result<Sorting> {
    let mut partition = Vec::new();
    for key in &params.partition_by {
        partition.push(columns.of(lowerer.typed_value(key)?));
    }
    let order = order_of(&params.order_by, lowerer, |value| col(columns.of(value)))?;
    Ok((partition, order))
}

/// The engine's form of an order.
///
/// # Errors
/// What lowering the expressions says.
pub(super) fn order_of(
    by: &[SortExpr],
    lowerer: &Lowerer<'_>,
    mut named: impl FnMut(Expression) -> Expression,
) -> Result<Vec<(Expression, SortOrder)>> {
    let mut order = Vec::with_capacity(by.len());
    for sort in by {
        let direction = SortOrder {
            descending: !sort.asc,
            nulls_first: sort.nulls_first,
        };
        order.push((named(lowerer.typed_value(&sort.expr)?), direction));
    }
    Ok(order)
}

fn over_call(
    call: &WindowFunction,
    lowerer: &Lowerer<'_>,
    (columns, output): (&mut Columns, String),
) -> Result<OverCall> {
    let WindowFunctionParams { args, .. } = &call.params;
    let name = call.fun.name().to_lowercase();
    let unsupported = |what: &str| {
        Error::unsupported(format!("{name}(...) OVER with {what}")).hint(match what {
            "FILTER" => "write sum(CASE WHEN condition THEN x END) OVER (...)",
            _ => "group in a subquery, and join its result",
        })
    };
    if call.params.distinct {
        return Err(unsupported("DISTINCT"));
    }
    if call.params.filter.is_some() {
        return Err(unsupported("FILTER"));
    }
    if call.params.null_treatment.is_some() {
        return Err(unsupported("IGNORE NULLS"));
    }
    let function = function_of(call, &name)?;
    let counts_rows = function == OverFunction::Count && args.first().is_some_and(is_literal);
    let mut column = |expr: Option<&Expr>| -> Result<Option<String>> {
        expr.map(|expr| Ok(columns.of(lowerer.typed_value(expr)?)))
            .transpose()
    };
    let argument = match counts_rows || matches!(function, OverFunction::Tile(_)) {
        true => None,
        false => column(args.first())?,
    };
    let default = match (&function, args.as_slice()) {
        (OverFunction::Shift(_), [value, _, default]) if !is_null(default) => {
            Some(columns.of(default_value(default, value, lowerer)?))
        }
        _ => None,
    };
    check_days(&call.params, lowerer)?;
    Ok(OverCall {
        frame: frame_of(&call.params.window_frame)?,
        function,
        argument,
        default,
        output,
    })
}

/// What stands for rows that are not there, in the type of the other values.
fn default_value(default: &Expr, value: &Expr, lowerer: &Lowerer<'_>) -> Result<Expression> {
    let type_of = |expr: &Expr| {
        let found = expr.get_type(lowerer.schema);
        found.map(|found| logical_type(&found))
    };
    let types = type_of(default).and_then(|own| Ok((own, type_of(value)?)));
    let (own, wanted) = types.map_err(|error| of_datafusion(&error))?;
    let (fits, shown) = match default {
        Expr::Literal(constant, _) => {
            let there = constant.cast_to(&wanted);
            let back = there.and_then(|there| there.cast_to(&own));
            (
                back.is_ok_and(|back| back == *constant),
                constant.to_string(),
            )
        }
        _ => (
            own == wanted || is_widening(&own, &wanted),
            format!("`{default}`"),
        ),
    };
    if !fits {
        let name = value.schema_name();
        let message = format!("the default {shown} of `{name}` is no {wanted}");
        return Err(Error::invalid(message).hint("cast both to one type"));
    }
    Ok(lowerer.value(default)?.cast(wanted))
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if !value.is_null())
}

fn function_of(call: &WindowFunction, name: &str) -> Result<OverFunction> {
    let args = &call.params.args;
    let whole = |index: usize, otherwise: Option<i64>| -> Result<i64> {
        let number = match args.get(index) {
            None => otherwise,
            Some(value) => whole_number(value).map(|number| {
                let most = i128::from(i64::MAX);
                number.clamp(-most, most) as i64
            }),
        };
        number.ok_or_else(|| {
            Error::invalid(format!("argument {} of {name} must be a number", index + 1))
                .hint(format!("write {name}(x, 2) OVER (ORDER BY ts)"))
        })
    };
    let positive = |index| -> Result<u64> {
        let number = whole(index, None)?;
        let number = u64::try_from(number).ok().filter(|number| *number > 0);
        number.ok_or_else(|| Error::invalid(format!("{name} needs a number of 1 or more")))
    };
    let aggregate = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) => {
            let known = function.inner().as_ref().downcast_ref::<SqlAggregate>();
            known.map_or("", |known| known.function)
        }
        WindowFunctionDefinition::WindowUDF(_) => "",
    };
    let variance = |sample, root| OverFunction::Variance { sample, root };
    Ok(match (name, aggregate) {
        ("row_number", _) => OverFunction::RowNumber,
        ("rank", _) => OverFunction::Rank,
        ("dense_rank", _) => OverFunction::DenseRank,
        ("percent_rank", _) => OverFunction::PercentRank,
        ("cume_dist", _) => OverFunction::CumulativeShare,
        ("ntile", _) => OverFunction::Tile(positive(0)?),
        ("lag", _) => OverFunction::Shift(whole(1, Some(1))?),
        ("lead", _) => OverFunction::Shift(-whole(1, Some(1))?),
        ("first_value", _) | (_, "first") => OverFunction::Nth(1),
        ("last_value", _) | (_, "last") => OverFunction::Last,
        ("nth_value", _) => OverFunction::Nth(positive(1)?),
        (_, "count") => OverFunction::Count,
        (_, "sum") => OverFunction::Sum,
        (_, "mean") => OverFunction::Mean,
        (_, "variance") => variance(true, false),
        (_, "variance_population") => variance(false, false),
        (_, "stddev") => variance(true, true),
        (_, "stddev_population") => variance(false, true),
        (_, "min") => OverFunction::Min,
        (_, "max") => OverFunction::Max,
        _ => {
            return Err(
                Error::unsupported(format!("{name}(...) OVER is not supported")).hint(
                    "with OVER: row_number, rank, dense_rank, percent_rank, cume_dist, ntile, \
                     lag, lead, first_value, last_value, nth_value, count, sum, avg, min, max, \
                     var_samp, var_pop, stddev, stddev_pop; \
                     of a whole partition: group in a subquery, and join its result by the keys",
                ),
            );
        }
    })
}

fn frame_of(frame: &WindowFrame) -> Result<Frame> {
    let units = match frame.units {
        WindowFrameUnits::Rows => Units::Rows,
        WindowFrameUnits::Groups => Units::Groups,
        WindowFrameUnits::Range => Units::Range,
    };
    let distance = |value: &ScalarValue| distance(value, units);
    let bound = |bound: &WindowFrameBound, is_start: bool| -> Result<Bound> {
        Ok(match bound {
            bound if bound.is_unbounded() && is_start => Bound::First,
            bound if bound.is_unbounded() => Bound::Last,
            WindowFrameBound::CurrentRow => Bound::Current,
            WindowFrameBound::Preceding(value) => Bound::Shifted(-distance(value)?),
            WindowFrameBound::Following(value) => Bound::Shifted(distance(value)?),
        })
    };
    Ok(Frame {
        units,
        start: bound(&frame.start_bound, true)?,
        end: bound(&frame.end_bound, false)?,
    })
}

/// Refuses distances in days over times of a zone whose days differ in length.
fn check_days(params: &WindowFunctionParams, lowerer: &Lowerer<'_>) -> Result<()> {
    let is_fixed = |zone: &str| zone == "UTC" || zone.starts_with(['+', '-']);
    let differ = |sort: &SortExpr| {
        let data_type = sort.expr.get_type(lowerer.schema);
        matches!(data_type, Ok(DataType::Timestamp(_, Some(zone))) if !is_fixed(&zone))
    };
    let has_days = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) => match value {
            ScalarValue::IntervalMonthDayNano(Some(length)) => length.days != 0,
            ScalarValue::IntervalDayTime(Some(length)) => length.days != 0,
            _ => false,
        },
        WindowFrameBound::CurrentRow => false,
    };
    let frame = &params.window_frame;
    let by_days = has_days(&frame.start_bound) || has_days(&frame.end_bound);
    match by_days && params.order_by.iter().any(differ) {
        false => Ok(()),
        true => Err(
            Error::unsupported("RANGE by days over times of a zone is not supported").hint(
                "its days may have 23 or 25 hours: write INTERVAL '24' HOUR for exactly so many",
            ),
        ),
    }
}

/// How far a bound is from the current row: rows, groups, or units of the order.
fn distance(value: &ScalarValue, units: Units) -> Result<i128> {
    let literal = Expr::Literal(value.clone(), None);
    if units == Units::Range && matches!(value.data_type(), DataType::Interval(_)) {
        let length = length(
            &literal,
            "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND ...",
        )?;
        return Ok(length.as_nanos() as i128);
    }
    match whole_number(&literal) {
        Some(number) if number >= 0 => Ok(number),
        _ => Err(
            Error::invalid(format!("`{value}` is no distance of a frame"))
                .hint("write ROWS BETWEEN 5 PRECEDING AND CURRENT ROW"),
        ),
    }
}

/// The whole number that `expr` is, for arguments that must be constant; integers are taken digit
/// by digit, as floats do not hold all of them.
fn whole_number(expr: &Expr) -> Option<i128> {
    let value = match expr {
        Expr::Literal(value, _) => value,
        Expr::Alias(alias) => return whole_number(&alias.expr),
        _ => return None,
    };
    let data_type = value.data_type();
    let exact = match data_type.is_integer() || data_type.is_string() {
        true => value.to_string().parse().ok(),
        false => None,
    };
    exact.or_else(|| {
        let number = constant_number(expr).filter(|number| number.fract() == 0.0);
        number.map(|number| number as i128)
    })
}
