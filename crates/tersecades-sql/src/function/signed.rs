//! The negative of unsigned numbers, in the signed type that holds it.
//!
//! ```text
//! -u ─▶ -signed(u) ─▶ -CAST(u AS BIGINT)
//! ```
//! DataFusion's planner takes the sign of signed numbers alone, so the mark stands in the query
//! until types are known.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast,
};

/// The name of the mark.
pub(crate) const SIGNED: &str = "signed";

/// The function behind the mark.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SignedMark(Signature);

/// The one of it.
pub(crate) static SIGNED_MARK: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(SignedMark(signature)))
});

impl ScalarUDFImpl for SignedMark {
    fn name(&self) -> &str {
        SIGNED
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [own] => Ok(signed(own)),
            _ => plan_err!("{SIGNED} has one value"),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.into_iter().next() {
            Some(value) => value.cast_to(arguments.return_field.data_type(), None),
            None => plan_err!("{SIGNED} has one value"),
        }
    }
}

/// The narrowest type that holds the negative of each value of `own`.
fn signed(own: &DataType) -> DataType {
    match own {
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        other => other.clone(),
    }
}

/// Replaces the mark by a cast, where its value is unsigned.
#[derive(Debug)]
pub(crate) struct SignUnsigned;

impl FunctionRewrite for SignUnsigned {
    fn name(&self) -> &str {
        "sign_unsigned"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        match expr {
            Expr::ScalarFunction(mut call) if call.func.name() == SIGNED => {
                let Some(value) = call.args.pop() else {
                    return plan_err!("{SIGNED} has one value");
                };
                let own = value.get_type(schema)?;
                let wanted = signed(&own);
                Ok(Transformed::yes(match own == wanted {
                    true => value,
                    false => cast(value, wanted),
                }))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}
