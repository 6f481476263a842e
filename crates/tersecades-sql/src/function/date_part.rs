//! Parts of dates, compared as they are computed, and the seconds of intervals and lengths of time.
//!
//! DataFusion turns a comparison of a year into one of times with the year's two ends, which are
//! null where they lie outside what the type holds (`extract(year FROM ts) <> 5` of nanoseconds is
//! then true of no row). A function that gives no such range keeps the comparison. Of one time it
//! cuts a fraction of a second towards 1970, of the times of a column it does not; days that begin
//! before the first nanosecond of 64 bits it makes times of 2262.

use std::sync::{Arc, LazyLock};

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{
    DFSchema, DataFusionError, Result, ScalarValue, exec_datafusion_err, exec_err,
};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, cast, lit,
};

use arrow_arith::aggregate::min;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use arrow_array::{ArrayRef, Float64Array};
use arrow_cast::cast as cast_array;
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use tersecades_engine::expression::cast_time;

use super::date_interval::is_interval;
use super::of_one;

const NAME: &str = "date_part";
const DATE_TRUNC: &str = "date_trunc";

const DAY_SECONDS: i64 = 86_400;

/// A function of DataFusion, without the ranges of its values, that takes one time as a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Computed(ScalarUDF);

impl ScalarUDFImpl for Computed {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.0.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.0.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(time) = arguments.args.last_mut() else {
            return self.0.invoke_with_args(arguments);
        };
        let is_one = matches!(time, ColumnarValue::Scalar(_));
        let own = arguments.return_field.data_type().clone();
        let rows = if is_one { 1 } else { arguments.number_rows };
        let mut times = time.to_array(rows)?;
        if let DataType::Timestamp(unit, zone) = times.data_type()
            && self.name() == DATE_TRUNC
            && begins_early(&times, *unit)?
        {
            if *unit != TimeUnit::Nanosecond {
                return exec_err!("{DATE_TRUNC} of a time in the first day of 64 bits");
            }
            let coarser = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            times = cast_time(&times, &coarser)?;
            arguments.return_field = Arc::new(Field::new(DATE_TRUNC, coarser, true));
        }
        *time = ColumnarValue::Array(times);
        arguments.number_rows = rows;
        let computed = self.0.invoke_with_args(arguments)?.into_array(rows)?;
        let computed = cast_time(&computed, &own).map_err(|_| {
            exec_datafusion_err!("{DATE_TRUNC} gives a time before 1677-09-21 00:12:43.145224193")
        })?;
        Ok(match is_one {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

/// Whether 64 bits of `unit` may not hold the begin of the day of one of `times`.
fn begins_early(times: &ArrayRef, unit: TimeUnit) -> Result<bool> {
    let day = match unit {
        TimeUnit::Second => DAY_SECONDS,
        TimeUnit::Millisecond => DAY_SECONDS * 1_000,
        TimeUnit::Microsecond => DAY_SECONDS * 1_000_000,
        TimeUnit::Nanosecond => DAY_SECONDS * 1_000_000_000,
    };
    let ticks = cast_array(times, &DataType::Int64)?;
    let least = min(ticks.as_primitive::<Int64Type>());
    Ok(least.is_some_and(|least| least < i64::MIN + day))
}

/// A part of a time by `date_part`, whose arguments are the part and the time.
///
/// # Errors
/// What `date_part` says.
pub(super) fn computed_part(
    date_part: &ScalarUDF,
    arguments: ScalarFunctionArgs,
) -> Result<ColumnarValue> {
    Computed(date_part.clone()).invoke_with_args(arguments)
}

/// Replaces DataFusion's function by one that is computed.
#[derive(Debug)]
pub(crate) struct ComputeDateParts;

impl FunctionRewrite for ComputeDateParts {
    fn name(&self) -> &str {
        "compute_date_parts"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        match expr {
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == NAME => {
                if let [part, interval] = args.as_slice()
                    && is_interval(interval, schema)
                    && name_of(part).eq_ignore_ascii_case("epoch")
                {
                    let seconds = INTERVAL_SECONDS.call(vec![interval.clone()]);
                    return Ok(Transformed::yes(seconds));
                }
                if let [part, length] = args.as_slice()
                    && let DataType::Duration(unit) = length.get_type(schema)?
                {
                    return Ok(Transformed::yes(seconds(part, length, unit)?));
                }
                Ok(Transformed::yes(computed(&func, args)))
            }
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == DATE_TRUNC => {
                Ok(Transformed::yes(computed(&func, args)))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

fn computed(function: &ScalarUDF, arguments: Vec<Expr>) -> Expr {
    let computed = ScalarUDF::new_from_impl(Computed(function.clone()));
    Expr::ScalarFunction(ScalarFunction::new_udf(computed.into(), arguments))
}

/// The name of a part, where it is written out.
fn name_of(part: &Expr) -> &str {
    match part {
        Expr::Literal(name, _) => name.try_as_str().flatten().unwrap_or_default(),
        _ => "",
    }
}

/// The seconds of an interval.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalSeconds(Signature);

static INTERVAL_SECONDS: LazyLock<ScalarUDF> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(IntervalSeconds(signature))
});

impl ScalarUDFImpl for IntervalSeconds {
    fn name(&self) -> &str {
        "interval_seconds"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |intervals| {
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            let seconds: Float64Array = intervals.unary(seconds_of);
            Ok(Arc::new(seconds) as ArrayRef)
        })
    }
}

/// The seconds of an interval as PostgreSQL counts them: years have 365.25 days, months beside
/// them 30.
fn seconds_of(interval: IntervalMonthDayNano) -> f64 {
    let (years, months) = (interval.months / 12, interval.months % 12);
    let days = f64::from(years) * 365.25 + f64::from(months) * 30.0 + f64::from(interval.days);
    days * DAY_SECONDS as f64 + interval.nanoseconds as f64 / 1e9
}

/// The seconds of a length of time, with their fraction.
fn seconds(part: &Expr, length: &Expr, unit: TimeUnit) -> Result<Expr> {
    let name = name_of(part);
    if !name.eq_ignore_ascii_case("epoch") {
        let message = format!("extract({name} FROM a length of time); extract(epoch FROM it) is");
        return Err(DataFusionError::NotImplemented(message));
    }
    let ticks = match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    };
    let whole = cast(length.clone(), DataType::Int64);
    Ok(cast(whole, DataType::Float64) / lit(ticks))
}
