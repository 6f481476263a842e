//! `NULL || NULL`, for which DataFusion finds no type: it is a null text.

use arrow_schema::DataType;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion_sql::sqlparser::ast::BinaryOperator;

/// Makes a text of the left one.
#[derive(Debug)]
pub(crate) struct NullTexts;

impl ExprPlanner for NullTexts {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_null = |side: &Expr| {
            let data_type = side.get_type(schema);
            data_type.is_ok_and(|data_type| data_type.is_null())
        };
        if raw.op != BinaryOperator::StringConcat || !is_null(&raw.left) || !is_null(&raw.right) {
            return Ok(PlannerResult::Original(raw));
        }
        let text = Box::new(cast(raw.left, DataType::Utf8));
        Ok(PlannerResult::Planned(Expr::BinaryExpr(BinaryExpr::new(
            text,
            Operator::StringConcat,
            Box::new(raw.right),
        ))))
    }
}
