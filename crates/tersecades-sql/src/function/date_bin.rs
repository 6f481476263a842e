//! `date_bin`, whose results DataFusion leaves out where nanoseconds do not reach.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};

const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;

/// DataFusion's `date_bin`, and times by wider arithmetic where it has none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct DateBin {
    inner: Arc<ScalarUDF>,
}

impl DateBin {
    /// `inner` with what it leaves out.
    pub(crate) fn over(inner: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(DateBin { inner }))
    }
}

impl ScalarUDFImpl for DateBin {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (given, rows) = (arguments.args.clone(), arguments.number_rows);
        let binned = self.inner.invoke_with_args(arguments)?;
        let [ColumnarValue::Scalar(stride), times, origin @ ..] = given.as_slice() else {
            return Ok(binned);
        };
        let (times, found) = (times.to_array(rows)?, binned.to_array(rows)?);
        if stride.is_null() || times.null_count() == found.null_count() {
            return Ok(binned);
        }
        let origin = match origin {
            [ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(Some(origin), _))] => *origin,
            _ => 0,
        };
        Ok(ColumnarValue::Array(binned_widely(stride, &times, origin)?))
    }
}

/// The starts of the bins of `times`, of bins as long as `stride`, one of which starts at `origin`.
fn binned_widely(stride: &ScalarValue, times: &ArrayRef, origin: i64) -> Result<ArrayRef> {
    let (DataType::Timestamp(unit, _), ScalarValue::IntervalMonthDayNano(Some(stride))) =
        (times.data_type(), stride)
    else {
        return exec_err!("date_bin of such times is out of range");
    };
    if stride.months != 0 {
        return exec_err!("date_bin by months reaches from 1677-09-21 to 2262-04-11");
    }
    let per_tick: i128 = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let (days, origin) = (i128::from(stride.days), i128::from(origin));
    let stride = days * NANOSECONDS_PER_DAY + i128::from(stride.nanoseconds);
    let bin = |tick: i64| {
        let apart = i128::from(tick) * per_tick - origin;
        let start = origin + apart.div_euclid(stride) * stride;
        i64::try_from(start.div_euclid(per_tick)).map_err(|_| {
            let message = format!("date_bin of {tick} {unit} leaves the range of times");
            ArrowError::ComputeError(message)
        })
    };
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let ticks = cast_with_options(times, &DataType::Int64, &options)?;
    let ticks: Int64Array = ticks.as_primitive::<Int64Type>().try_unary(bin)?;
    Ok(cast_with_options(&ticks, times.data_type(), &options)?)
}
