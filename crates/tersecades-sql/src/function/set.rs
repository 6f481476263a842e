//! Sets behind `ANY` and `ALL`, told apart from the table that is compared with them.
//!
//! ```text
//! i > ALL (SELECT i FROM t) ─▶ i > ALL (SELECT i FROM (SELECT i FROM t) AS "set")
//! ```
//! DataFusion makes a join of both, whose condition names columns of either side by their tables:
//! of two sides that have columns of a table of one name it would compare one side with itself.

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{Expr, LogicalPlanBuilder};

/// The name of a set.
const SET: &str = "set";

/// Names sets whose columns are of a table that the value before `ANY` or `ALL` reads.
#[derive(Debug)]
pub(crate) struct NamedSets;

impl FunctionRewrite for NamedSets {
    fn name(&self) -> &str {
        "named_sets"
    }

    fn rewrite(
        &self,
        expr: Expr,
        _schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::SetComparison(mut comparison) = expr else {
            return Ok(Transformed::no(expr));
        };
        let set = Arc::clone(&comparison.subquery.subquery);
        let read = comparison.expr.column_refs();
        let is_read = |table| read.iter().any(|column| column.relation.as_ref() == table);
        if !set.schema().iter().any(|(table, _)| is_read(table)) {
            return Ok(Transformed::no(Expr::SetComparison(comparison)));
        }
        let named = LogicalPlanBuilder::from(set).alias(SET)?.build()?;
        comparison.subquery = comparison.subquery.with_plan(Arc::new(named));
        Ok(Transformed::yes(Expr::SetComparison(comparison)))
    }
}
