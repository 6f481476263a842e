//! Whole days added to dates.
//!
//! ```text
//! d + 1, 1 + d ─▶ CAST(CAST(d AS BIGINT) + 1 AS DATE)
//! d - 1        ─▶ CAST(CAST(d AS BIGINT) - 1 AS DATE)
//! ```

use arrow_schema::DataType;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion_sql::sqlparser::ast::BinaryOperator;

/// Adds integers to dates, and takes them off.
#[derive(Debug)]
pub(crate) struct DaysOfDates;

impl ExprPlanner for DaysOfDates {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let [left, right] = [&raw.left, &raw.right].map(|side| side.get_type(schema).ok());
        let is_date = |side: &Option<DataType>| *side == Some(DataType::Date32);
        let is_whole = |side: &Option<DataType>| side.as_ref().is_some_and(DataType::is_integer);
        let op = match raw.op {
            BinaryOperator::Plus if is_date(&left) && is_whole(&right) => Operator::Plus,
            BinaryOperator::Plus if is_whole(&left) && is_date(&right) => Operator::Plus,
            BinaryOperator::Minus if is_date(&left) && is_whole(&right) => Operator::Minus,
            _ => return Ok(PlannerResult::Original(raw)),
        };
        let days = |side: Expr| Box::new(cast(side, DataType::Int64));
        let moved = BinaryExpr::new(days(raw.left), op, days(raw.right));
        let moved = cast(Expr::BinaryExpr(moved), DataType::Date32);
        Ok(PlannerResult::Planned(moved))
    }
}
