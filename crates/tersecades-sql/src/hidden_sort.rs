//! Sorts of subqueries whose order nothing shows: rows that are grouped, joined or sorted again.
//!
//! The planner drops the sorts of all subqueries but of those with a limit; here they stay wherever
//! rows come out in their order, as users of `FROM (SELECT … ORDER BY t) LIMIT 10` expect.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::LogicalPlan;

/// `plan` without them.
pub(crate) fn without_hidden_sorts(plan: LogicalPlan) -> Result<LogicalPlan> {
    pruned(plan, true)
}

/// `plan`, of which the order of rows is `shown` or not.
fn pruned(plan: LogicalPlan, shown: bool) -> Result<LogicalPlan> {
    let shown = match plan {
        LogicalPlan::Sort(sort) if !shown && sort.fetch.is_none() => {
            return pruned(Arc::unwrap_or_clone(sort.input), false);
        }
        LogicalPlan::Limit(_) => true,
        LogicalPlan::Aggregate(_) | LogicalPlan::Join(_) | LogicalPlan::Sort(_) => false,
        _ => shown,
    };
    let inputs = |input| Ok(Transformed::yes(pruned(input, shown)?));
    let plan = plan.map_children(inputs)?.data;
    let of_expressions = |subquery| Ok(Transformed::yes(pruned(subquery, false)?));
    Ok(plan.map_subqueries(of_expressions)?.data)
}
