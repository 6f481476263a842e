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

/// What a mark names for a type around a number of a query whose digits count where it is compared.
pub(crate) const DIGITS: &str = "digits";

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
    mark_of(expr).is_some_and(|name| name != COMMON)
}

/// What the mark of `expr` names for a type, if it has one.
pub(crate) fn mark_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == CAST_TO => match call.args.get(1) {
            Some(Expr::Literal(name, _)) => name.try_as_str().flatten(),
            _ => None,
        },
        _ => None,
    }
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
