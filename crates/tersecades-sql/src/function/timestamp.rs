//! `make_timestamp`: times from their parts, which some data keep in columns of their own.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, TimestampSecondArray};
use arrow_schema::{DataType, TimeUnit};
use datafusion_common::Result;
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use tersecades_engine::expression::seconds_of;

const NAME: &str = "make_timestamp";

/// `make_timestamp(year, month, day[, hour[, minute[, second]]])`.
pub(crate) static MAKE_TIMESTAMP: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let parts = |count| TypeSignature::Exact(vec![DataType::Int64; count]);
    let signature = Signature::one_of((3..=6).map(parts).collect(), Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(MakeTimestamp { signature }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct MakeTimestamp {
    signature: Signature,
}

impl ScalarUDFImpl for MakeTimestamp {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Second, None))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let arrays = arguments.args.into_iter();
        let arrays: Vec<ArrayRef> = arrays
            .map(|part| part.into_array(rows))
            .collect::<Result<_>>()?;
        let columns = arrays.iter().map(|array| array.as_primitive::<Int64Type>());
        let columns: Vec<&Int64Array> = columns.collect();
        let at = |row: usize| {
            let mut parts = [1970, 1, 1, 0, 0, 0];
            for (part, column) in parts.iter_mut().zip(&columns) {
                *part = column.is_valid(row).then(|| column.value(row))?;
            }
            seconds_of(parts)
        };
        let times: TimestampSecondArray = (0..rows).map(at).collect();
        Ok(ColumnarValue::Array(Arc::new(times)))
    }
}
