//! `string_agg(text[, separator])`, also called `listagg` and `group_concat`.
//!
//! Nothing here computes; the lowering turns each call into the engine's own.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion_common::{Result, ScalarValue, not_impl_err, plan_err};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility};

/// What stands between texts where nothing is said.
const SEPARATOR: &str = ",";

const NAMES: [&str; 3] = ["string_agg", "listagg", "group_concat"];

/// The aggregate under one of its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SqlStringAgg {
    name: &'static str,
    signature: Signature,
}

/// All of its names.
pub(crate) static STRING_AGGS: LazyLock<Vec<Arc<AggregateUDF>>> = LazyLock::new(|| {
    let names = NAMES.into_iter();
    names
        .map(|name| {
            let signature = Signature::user_defined(Volatility::Immutable);
            Arc::new(AggregateUDF::new_from_impl(SqlStringAgg {
                name,
                signature,
            }))
        })
        .collect()
});

impl SqlStringAgg {
    /// What stands between texts in a call with these arguments.
    ///
    /// # Errors
    /// `Plan` where it is no constant.
    pub(crate) fn separator<'e>(&self, arguments: &'e [Expr]) -> Result<&'e str> {
        let separator = match arguments {
            [_] => Some(SEPARATOR),
            [_, Expr::Literal(text, _)] => text.try_as_str().flatten(),
            _ => None,
        };
        match separator {
            Some(separator) => Ok(separator),
            None => plan_err!("the separator of {} must be a constant text", self.name),
        }
    }
}

impl AggregateUDFImpl for SqlStringAgg {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let takes = "takes a text and the separator, a constant";
        match given {
            [_] => Ok(vec![DataType::Utf8]),
            [_, separator] if separator.is_string() || separator.is_null() => {
                Ok(vec![DataType::Utf8; 2])
            }
            [_, other] => plan_err!("{} {takes} text, got {other}", self.name),
            _ => plan_err!("{} {takes}, got {} arguments", self.name, given.len()),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8(None))
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        not_impl_err!("{} runs in the engine", self.name)
    }
}
