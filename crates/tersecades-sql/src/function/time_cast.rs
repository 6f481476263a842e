//! Casts of times as the engine makes them, and local times of a zone.
//!
//! ```text
//! CAST(ts AS TIMESTAMP(0))                        ─▶ time_as(ts), of seconds
//! CAST(ts AT TIME ZONE 'Europe/Berlin' AS TIMESTAMP) ─▶ to_local_time(ts AT TIME ZONE …)
//! z + INTERVAL '1' DAY                            ─▶ time_as(to_local_time(z) + INTERVAL '1' DAY)
//! to_timestamp_seconds(ts), to_unixtime(ts)       ─▶ time_as(ts), CAST(time_as(ts) AS BIGINT)
//! ```
//! Arrow cuts times before 1970 towards it, fails where clocks change, and takes a time of a zone
//! for that of UTC where parts of it, its day and its text are local.

use std::sync::Arc;

use arrow_array::types::IntervalMonthDayNano;
use arrow_schema::{DataType, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::BinaryExpr;
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast,
};
use tersecades_engine::expression::cast_time;

use super::{FUNCTIONS, of_one};

/// A cast of times to a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TimeAs {
    /// The type.
    pub(crate) to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for TimeAs {
    fn name(&self) -> &str {
        "time_as"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |times| Ok(cast_time(times, &self.to)?))
    }
}

fn time_as(time: Expr, to: DataType) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(TimeAs { to, signature })).call(vec![time])
}

/// Replaces such casts.
#[derive(Debug)]
pub(crate) struct CastTimes;

impl FunctionRewrite for CastTimes {
    fn name(&self) -> &str {
        "cast_times"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let exact = match &expr {
            Expr::Cast(cast) => exactly(&cast.expr, cast.field.data_type(), schema)?,
            Expr::TryCast(cast) => match cast.field.data_type() {
                // Others may leave the range of the type.
                to if is_coarser(&cast.expr.get_type(schema)?, to) => {
                    exactly(&cast.expr, to, schema)?
                }
                _ => None,
            },
            Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
                ("to_timestamp_seconds", [time]) => in_unit(time, TimeUnit::Second, schema)?,
                ("to_timestamp_millis", [time]) => in_unit(time, TimeUnit::Millisecond, schema)?,
                ("to_timestamp_micros", [time]) => in_unit(time, TimeUnit::Microsecond, schema)?,
                ("to_unixtime", [time]) => in_unit(time, TimeUnit::Second, schema)?
                    .map(|seconds| cast(seconds, DataType::Int64)),
                _ => None,
            },
            Expr::BinaryExpr(binary) => moved(binary, schema)?,
            _ => None,
        };
        Ok(exact.map_or_else(|| Transformed::no(expr), Transformed::yes))
    }
}

/// `time` as one of the type `to`, where Arrow makes another of it.
fn exactly(time: &Expr, to: &DataType, schema: &DFSchema) -> Result<Option<Expr>> {
    use DataType::Timestamp;
    let own = time.get_type(schema)?;
    Ok(match (&own, to) {
        (Timestamp(unit, Some(zone)), Timestamp(_, None)) if !is_utc(zone) => {
            let local = FUNCTIONS.scalars["to_local_time"].call(vec![time.clone()]);
            let local_type = Timestamp(*unit, None);
            Some(if is_coarser(&local_type, to) {
                time_as(local, to.clone())
            } else if local_type == *to {
                local
            } else {
                cast(local, to.clone())
            })
        }
        (Timestamp(_, None), Timestamp(_, Some(zone))) if !is_utc(zone) => {
            Some(time_as(time.clone(), to.clone()))
        }
        _ => is_coarser(&own, to).then(|| time_as(time.clone(), to.clone())),
    })
}

/// A time of a zone some days and months from another: by its local time, which may be one that
/// there is not.
fn moved(binary: &BinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let BinaryExpr { left, op, right } = binary;
    let (time, length) = match (&**left, &**right) {
        (time, Expr::Literal(length, _)) => (time, length),
        (Expr::Literal(length, _), time) if *op == Operator::Plus => (time, length),
        _ => return Ok(None),
    };
    let ScalarValue::IntervalMonthDayNano(Some(length)) = length else {
        return Ok(None);
    };
    let own = time.get_type(schema)?;
    let in_zone = matches!(&own, DataType::Timestamp(_, Some(zone)) if !is_utc(zone));
    let by_days = length.months != 0 || length.days != 0;
    if !(in_zone && by_days && matches!(op, Operator::Plus | Operator::Minus)) {
        return Ok(None);
    }
    let by = |time: Expr, months: i32, days: i32, nanoseconds: i64| {
        let length = IntervalMonthDayNano::new(months, days, nanoseconds);
        let length = Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(length)), None);
        Expr::BinaryExpr(BinaryExpr::new(Box::new(time), *op, Box::new(length)))
    };
    let local = FUNCTIONS.scalars["to_local_time"].call(vec![time.clone()]);
    let time = time_as(by(local, length.months, length.days, 0), own);
    Ok(Some(match length.nanoseconds {
        0 => time,
        nanoseconds => by(time, 0, 0, nanoseconds),
    }))
}

fn is_coarser(own: &DataType, to: &DataType) -> bool {
    use DataType::Timestamp;
    matches!((own, to), (Timestamp(unit, _), Timestamp(coarser, _)) if unit > coarser)
}

fn is_utc(zone: &str) -> bool {
    ["UTC", "+00:00"].contains(&zone)
}

/// `time` in whole ticks of a unit that is coarser than its own.
fn in_unit(time: &Expr, unit: TimeUnit, schema: &DFSchema) -> Result<Option<Expr>> {
    let own = time.get_type(schema)?;
    let DataType::Timestamp(_, zone) = &own else {
        return Ok(None);
    };
    let to = DataType::Timestamp(unit, zone.clone());
    Ok(is_coarser(&own, &to).then(|| time_as(time.clone(), to)))
}
