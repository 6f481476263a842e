//! Subqueries that read columns of the query around them, before they are turned into joins.
//!
//! ```text
//! WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v > 3)   t SEMI JOIN u (v > 3) ON u.k = t.k
//! ```
//! A condition such as `u.k = t.k` then moves out of the subquery, above all that it stood below.
//! That changes nothing for filters and groups by key, and would change what windows, sets of
//! groups, outer joins and `OFFSET` see: these are refused. An aggregate without `GROUP BY` has one
//! row whatever it reads, also none, which a join would lose.

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, JoinType, Result};
use datafusion_expr::expr::{Exists, InSubquery};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{
    Aggregate, Distinct, Expr, Join, LogicalPlan, Operator, SkipType, Subquery, binary_expr, lit,
};
use tersecades_columnar::error::Error;

use crate::parse::row_in::ROWS;

/// `plan` with subqueries that have one row compared as such, where all of them can become joins.
///
/// # Errors
/// `Unsupported` for those that would give other rows as joins.
pub(crate) fn checked(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let compared = expr.transform_up(of_one_row)?;
            Ok(compared.update_data(|expr| name.restore(expr)))
        })
    })?;
    plan.data.apply_with_subqueries(|node| {
        if let LogicalPlan::Subquery(lateral) = node {
            check(lateral, Use::Values)?;
        }
        node.apply_expressions(|expr| expr.apply(check_expression))
    })?;
    Ok(plan.data)
}

/// `x = (…)` for `x IN (…)`, and true for `EXISTS (…)`, of aggregates without `GROUP BY`.
fn of_one_row(expr: Expr) -> Result<Transformed<Expr>> {
    let is_one = |subquery: &Subquery| is_correlated(subquery) && has_one_row(&subquery.subquery);
    Ok(match expr {
        Expr::InSubquery(found) if is_one(&found.subquery) => {
            let operator = match found.negated {
                true => Operator::NotEq,
                false => Operator::Eq,
            };
            let row = Expr::ScalarSubquery(found.subquery);
            Transformed::yes(binary_expr(*found.expr, operator, row))
        }
        Expr::Exists(found) if is_one(&found.subquery) => Transformed::yes(lit(!found.negated)),
        expr => Transformed::no(expr),
    })
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// Whether there is always one row.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        plan if passes(plan) => plan.inputs().into_iter().all(has_one_row),
        _ => false,
    }
}

/// Whether `plan` has a row for each of its input.
fn passes(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Sort(_)
    )
}

/// What a subquery is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Exists,
    In,
    /// A value, or rows of `LATERAL`.
    Values,
}

fn check_expression(expr: &Expr) -> Result<TreeNodeRecursion> {
    match expr {
        Expr::Exists(Exists { subquery, .. }) => check(subquery, Use::Exists)?,
        Expr::InSubquery(InSubquery { subquery, .. }) => check(subquery, Use::In)?,
        Expr::SetComparison(compared) => check(&compared.subquery, Use::Exists)?,
        Expr::ScalarSubquery(subquery) => check(subquery, Use::Values)?,
        _ => {}
    }
    Ok(TreeNodeRecursion::Continue)
}

/// Refuses a subquery that would give other rows as a join.
fn check(subquery: &Subquery, used: Use) -> Result<()> {
    if !is_correlated(subquery) {
        return Ok(());
    }
    if used == Use::Exists {
        check_limits(&subquery.subquery, true, &mut false)?;
    }
    check_moved(&subquery.subquery, used != Use::Values)
}

/// Refuses limits of a subquery in `EXISTS` that would be dropped: those behind a condition that
/// moves, which was `seen`. One row of those at the `top` is as good as all.
fn check_limits(plan: &LogicalPlan, top: bool, seen: &mut bool) -> Result<()> {
    let is_limit = matches!(plan, LogicalPlan::Limit(_));
    for input in plan.inputs() {
        check_limits(input, top && (is_limit || passes(plan)), seen)?;
    }
    if is_limit && !top && *seen {
        return refuse("LIMIT");
    }
    *seen |= plan.contains_outer_reference();
    Ok(())
}

/// Refuses what conditions cannot move out of; `above` says whether something stands above that
/// would not see the row of an aggregate without rows.
fn check_moved(plan: &LogicalPlan, above: bool) -> Result<()> {
    if plan.inputs().iter().all(|input| !reads_outer(input)) {
        return Ok(());
    }
    match plan {
        LogicalPlan::Aggregate(aggregate) if is_of_sets(aggregate) => {
            return refuse("grouping sets");
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() && above => {
            return refuse("an aggregate without GROUP BY");
        }
        LogicalPlan::Filter(filter) if has_one_row(&filter.input) => {
            return refuse("HAVING without GROUP BY");
        }
        LogicalPlan::SubqueryAlias(rows) if rows.alias.table() == ROWS => {
            let message = "IN (SELECT ...) of rows that reads the query around it is not supported";
            let hint = "write EXISTS (SELECT 1 FROM u WHERE u.x = t.a AND u.y = t.b AND ...)";
            let error = Error::unsupported(message).hint(hint);
            return Err(DataFusionError::External(Box::new(error)));
        }
        LogicalPlan::Window(_) => return refuse("OVER"),
        LogicalPlan::Distinct(Distinct::On(_)) => return refuse("DISTINCT ON"),
        LogicalPlan::Limit(limit) if !matches!(limit.get_skip_type()?, SkipType::Literal(0)) => {
            return refuse("OFFSET");
        }
        LogicalPlan::Join(join) if fills_outer(join) => return refuse("an outer join"),
        _ => {}
    }
    let mut inputs = plan.inputs().into_iter();
    inputs.try_for_each(|input| check_moved(input, above || !passes(plan)))
}

fn reads_outer(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

fn is_of_sets(aggregate: &Aggregate) -> bool {
    matches!(aggregate.group_expr[..], [Expr::GroupingSet(_)])
}

/// Whether a side of `join` that is filled with nulls, or whose rows hide others, reads the query
/// around it.
fn fills_outer(join: &Join) -> bool {
    use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi};
    use JoinType::{Right, RightAnti, RightMark, RightSemi};
    let (left, right) = (|| reads_outer(&join.left), || reads_outer(&join.right));
    match join.join_type {
        Inner | LeftSemi | RightSemi => false,
        Left | LeftAnti | LeftMark => right(),
        Right | RightAnti | RightMark => left(),
        Full => left() || right(),
    }
}

fn refuse(what: &str) -> Result<()> {
    let message = format!("{what} of rows that a column of the outer query picks is not supported");
    let error = Error::unsupported(message)
        .hint("compute it for all rows in WITH, and join that by the columns that pick them");
    Err(DataFusionError::External(Box::new(error)))
}
