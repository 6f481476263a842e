//! The mark of an as-of join: a condition on a pair of times that the lowering recognises.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion_common::{Result, not_impl_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The name of the mark.
pub(crate) const AS_OF: &str = "asof_join";

/// The function behind the mark; its argument is the inequality of the two times.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AsOfMark {
    signature: Signature,
}

/// The one of it.
pub(crate) static AS_OF_MARK: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(AsOfMark {
        // Volatile, so that no rule of the optimiser moves it.
        signature: Signature::variadic_any(Volatility::Volatile),
    }))
});

impl ScalarUDFImpl for AsOfMark {
    fn name(&self) -> &str {
        AS_OF
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Boolean] => Ok(DataType::Boolean),
            _ => plan_err!("ASOF JOIN needs one inequality of times, as a.ts >= b.ts"),
        }
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        not_impl_err!("ASOF outside of the condition of a join")
    }
}
