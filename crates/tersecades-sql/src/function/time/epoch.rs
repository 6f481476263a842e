//! `epoch`, `epoch_ms`, `epoch_us` and `epoch_ns`: times as numbers since 1970, and `epoch_ms` of a
//! number as a time.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array};
use arrow_schema::{DataType, TimeUnit};
use datafusion_common::{Result, exec_datafusion_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::super::of_one;
use super::moment::{DAY, nanoseconds};
use super::{time_type, udf};

/// A number since 1970, or of a length of time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Epoch {
    name: &'static str,
    /// The unit of whole numbers; seconds have a fraction.
    unit: TimeUnit,
    signature: Signature,
}

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named = [
        ("epoch", TimeUnit::Second),
        ("epoch_ms", TimeUnit::Millisecond),
        ("epoch_us", TimeUnit::Microsecond),
        ("epoch_ns", TimeUnit::Nanosecond),
    ];
    named.into_iter().map(|(name, unit)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        udf(Epoch {
            name,
            unit,
            signature,
        })
    })
}

impl ScalarUDFImpl for Epoch {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [number] if number.is_integer() && self.unit == TimeUnit::Millisecond => {
                Ok(vec![DataType::Int64])
            }
            [length @ DataType::Duration(_)] => Ok(vec![length.clone()]),
            [time] => Ok(vec![time_type(self.name, time)?]),
            _ => plan_err!("{} takes 1 argument, got {}", self.name, given.len()),
        }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match (arguments, self.unit) {
            ([DataType::Int64], unit) => DataType::Timestamp(unit, None),
            (_, TimeUnit::Second) => DataType::Float64,
            _ => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |given| match given.data_type() {
            DataType::Int64 => {
                let to = DataType::Timestamp(self.unit, None);
                Ok(arrow_cast::cast(given, &to)?)
            }
            DataType::Date32 => {
                let days = arrow_cast::cast(given, &DataType::Int32)?;
                self.numbers(&days, DAY, i128::div_euclid)
            }
            DataType::Timestamp(unit, _) => {
                self.numbers(given, nanoseconds(*unit), i128::div_euclid)
            }
            DataType::Duration(unit) => {
                self.numbers(given, nanoseconds(*unit), |length, unit| length / unit)
            }
            other => plan_err!("{} takes a time, got {other}", self.name),
        })
    }
}

impl Epoch {
    /// The numbers of `ticks` of so many nanoseconds, of which `whole` makes units.
    fn numbers(
        &self,
        ticks: &ArrayRef,
        tick: i128,
        whole: fn(i128, i128) -> i128,
    ) -> Result<ArrayRef> {
        let ticks = arrow_cast::cast(ticks, &DataType::Int64)?;
        let ticks = ticks.as_primitive::<Int64Type>();
        let unit = nanoseconds(self.unit);
        if self.unit == TimeUnit::Second {
            let (times, divisor) = ((tick / unit).max(1) as f64, (unit / tick).max(1) as f64);
            let seconds: Float64Array = ticks.unary(|ticks| ticks as f64 * times / divisor);
            return Ok(Arc::new(seconds));
        }
        let numbers: Int64Array = ticks.try_unary(|ticks| {
            let number = i64::try_from(whole(i128::from(ticks) * tick, unit));
            number.map_err(|_| exec_datafusion_err!("{} of a time is out of range", self.name))
        })?;
        Ok(Arc::new(numbers))
    }
}
