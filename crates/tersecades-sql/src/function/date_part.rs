//! Parts of dates, compared as they are computed.
//!
//! DataFusion turns a comparison of a year into one of times with the year's two ends, which are
//! null where they lie outside what the type holds (`extract(year FROM ts) <> 5` of nanoseconds is
//! then true of no row). A function that gives no such range keeps the comparison.

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use arrow_schema::{DataType, FieldRef};

const NAME: &str = "date_part";

/// `date_part` of DataFusion, without the ranges of its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Computed(ScalarUDF);

impl ScalarUDFImpl for Computed {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.0.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.0.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.invoke_with_args(arguments)
    }
}

/// Replaces DataFusion's function by one that is computed.
#[derive(Debug)]
pub(crate) struct ComputeDateParts;

impl FunctionRewrite for ComputeDateParts {
    fn name(&self) -> &str {
        "compute_date_parts"
    }

    fn rewrite(
        &self,
        expr: Expr,
        _schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        match expr {
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == NAME => {
                let computed = ScalarUDF::new_from_impl(Computed((*func).clone()));
                let call = ScalarFunction::new_udf(computed.into(), args);
                Ok(Transformed::yes(Expr::ScalarFunction(call)))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}
