//! Casts of 64-bit floats to 32 bits, of which Arrow makes infinities where they do not fit.
//!
//! ```text
//! CAST(x AS REAL)     ─▶ real(x), an error where x does not fit
//! TRY_CAST(x AS REAL) ─▶ real(x), null where x does not fit
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float32Array};
use arrow_schema::{ArrowError, DataType};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use tersecades_engine::expression::narrowed;

use super::of_one;

/// Such a cast.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Real {
    /// Whether what does not fit is null.
    pub(crate) tries: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Real {
    fn name(&self) -> &str {
        "real"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |floats| Ok(self.reals(floats)?))
    }
}

impl Real {
    fn reals(&self, floats: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
        let floats = floats.as_primitive::<Float64Type>();
        let reals: Float32Array = match self.tries {
            true => floats.unary_opt(|float| narrowed(float).ok()),
            false => floats.try_unary(narrowed)?,
        };
        Ok(Arc::new(reals))
    }
}

/// Replaces such casts.
#[derive(Debug)]
pub(crate) struct CastReals;

impl FunctionRewrite for CastReals {
    fn name(&self) -> &str {
        "cast_reals"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let (float, to, tries) = match &expr {
            Expr::Cast(cast) => (&cast.expr, &cast.field, false),
            Expr::TryCast(cast) => (&cast.expr, &cast.field, true),
            _ => return Ok(Transformed::no(expr)),
        };
        if *to.data_type() != DataType::Float32 || float.get_type(schema)? != DataType::Float64 {
            return Ok(Transformed::no(expr));
        }
        let signature = Signature::any(1, Volatility::Immutable);
        let real = Arc::new(ScalarUDF::new_from_impl(Real { tries, signature }));
        Ok(Transformed::yes(real.call(vec![(**float).clone()])))
    }
}
