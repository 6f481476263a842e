//! The mark around a cast that gives it a name of its own.
//!
//! DataFusion names a column without its casts, so that `sum(x)` and `sum(CAST(x AS BIGINT))` are
//! two columns of one name, which it refuses.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The name of the mark.
pub(crate) const CAST_TO: &str = "cast_to";

/// What a mark names for a type around a cast to the common one of both sides of a comparison.
pub(crate) const COMMON: &str = "common";

/// What a mark names for a type around a cast to floats that the query asks for.
pub(crate) const ASKED: &str = "float";

/// The function behind the mark: its first argument, which is cast to the type that the second
/// one names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CastMark {
    signature: Signature,
}

/// The one of it.
pub(crate) static CAST_MARK: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(CastMark {
        signature: Signature::any(2, Volatility::Immutable),
    }))
});

/// `cast` with the mark around it.
pub(crate) fn marked(cast: Expr, data_type: &str) -> Expr {
    let name = Expr::Literal(ScalarValue::from(data_type), None);
    CAST_MARK.call(vec![cast, name])
}

/// Whether `expr` is a cast with a mark that says that the query asks for it.
pub(crate) fn is_asked_for(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.name() == CAST_TO
        && !matches!(call.args.get(1), Some(Expr::Literal(ScalarValue::Utf8(Some(name)), _))
            if name == COMMON))
}

impl ScalarUDFImpl for CastMark {
    fn name(&self) -> &str {
        CAST_TO
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [value, _] => Ok(value.clone()),
            _ => plan_err!("{CAST_TO} has a value and a type"),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.into_iter().next() {
            Some(value) => Ok(value),
            None => plan_err!("{CAST_TO} has a value and a type"),
        }
    }
}
