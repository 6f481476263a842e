//! Times of seconds since 1970 as floats, of which Arrow makes the first or the last time there is
//! where they do not fit, and 1970 of NaN.
//!
//! ```text
//! to_timestamp(x) ─▶ float_time(x), an error where x is no time of nanoseconds
//! ```

use std::sync::Arc;

use arrow_array::TimestampNanosecondArray;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::{DataType, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, exec_err};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::of_one;

const SECOND_NS: f64 = 1e9;

#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatTime {
    signature: Signature,
}

impl ScalarUDFImpl for FloatTime {
    fn name(&self) -> &str {
        "float_time"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Nanosecond, None))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |seconds| {
            let seconds = seconds.as_primitive::<Float64Type>();
            let times: TimestampNanosecondArray = seconds.try_unary(nanoseconds)?;
            Ok(Arc::new(times))
        })
    }
}

/// The nearest nanosecond: whole seconds are exact.
fn nanoseconds(seconds: f64) -> Result<i64> {
    let whole = seconds.floor();
    // No 64-bit number of nanoseconds has more seconds; NaN is in no range.
    let few = (-9.3e9..9.3e9).contains(&whole).then_some(whole as i128);
    let fraction = ((seconds - whole) * SECOND_NS).round() as i128;
    let found = few.and_then(|whole| i64::try_from(whole * SECOND_NS as i128 + fraction).ok());
    match found {
        Some(found) => Ok(found),
        None => exec_err!(
            "{seconds:e} seconds since 1970 are no time: those of nanoseconds lie between the \
             years 1677 and 2262"
        ),
    }
}

/// Replaces such calls.
#[derive(Debug)]
pub(crate) struct FloatTimes;

impl FunctionRewrite for FloatTimes {
    fn name(&self) -> &str {
        "float_times"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::ScalarFunction(call) = &expr else {
            return Ok(Transformed::no(expr));
        };
        match (call.func.name(), call.args.as_slice()) {
            ("to_timestamp", [seconds]) if seconds.get_type(schema)?.is_floating() => {
                let signature = Signature::any(1, Volatility::Immutable);
                let function = ScalarUDF::new_from_impl(FloatTime { signature });
                let seconds = datafusion_expr::cast(seconds.clone(), DataType::Float64);
                Ok(Transformed::yes(Arc::new(function).call(vec![seconds])))
            }
            _ => Ok(Transformed::no(expr)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_the_nearest_nanoseconds_or_no_time() {
        for (seconds, expected) in [
            (0.0, 0),
            (1.005, 1_005_000_000),
            (-1.25, -1_250_000_000),
            (-0.000_000_001, -1),
            (9_223_372_036.0, 9_223_372_036_000_000_000),
            (-9_223_372_036.0, -9_223_372_036_000_000_000),
        ] {
            assert_eq!(nanoseconds(seconds).unwrap(), expected, "{seconds}");
        }
        for seconds in [f64::NAN, f64::INFINITY, -1e10, 1e10, 9_223_372_037.0, 1e300] {
            let error = nanoseconds(seconds).unwrap_err().to_string();
            assert!(error.contains("are no time"), "{error}");
        }
    }
}
