//! Volatile functions, as `random()`: one value for each row, whatever reads it.
//!
//! ```text
//! SELECT random() BETWEEN a AND b FROM t ─▶ SELECT r BETWEEN a AND b
//!                                           FROM (SELECT *, random() AS r FROM t)
//! ```
//! `BETWEEN`, `CASE x WHEN`, `IN`, `nullif` and others become expressions that say twice what they
//! read. So a volatile function inside of a larger expression becomes a column before any of that,
//! and once more behind the optimiser, which puts columns that are read once back in their place.

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DataFusionError, JoinType, Result};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Volatility};
use datafusion_optimizer::analyzer::AnalyzerRule;
use tersecades_columnar::error::Error;

use crate::function::join::AS_OF;
use crate::function::window::{IN_WINDOW, WindowEdge};
use crate::lower::rows::free_name;

/// Makes columns of volatile functions inside of larger expressions.
#[derive(Debug)]
pub(crate) struct DrawnOnce;

impl AnalyzerRule for DrawnOnce {
    fn name(&self) -> &str {
        "drawn_once"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let drawn = plan.transform_up_with_subqueries(|node| {
            if !node.expressions().iter().any(draws_inside) {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(match node {
                LogicalPlan::Join(join) => behind_join(join)?,
                LogicalPlan::Filter(filter) => filtered(filter)?,
                node => with_columns(node)?,
            }))
        });
        Ok(drawn?.data)
    }
}

/// Whether `expr` calls a volatile function, but for windows and marks of conditions.
pub(crate) fn draws(expr: &Expr) -> bool {
    expr.exists(|part| Ok(is_drawn(part))).unwrap_or(true)
}

fn is_drawn(part: &Expr) -> bool {
    let Expr::ScalarFunction(call) = part else {
        return false;
    };
    is_random(&call.func)
}

/// Whether `function` is volatile, and neither a window nor a mark of a condition.
pub(crate) fn is_random(function: &ScalarUDF) -> bool {
    let inner = function.inner().as_ref();
    function.signature().volatility == Volatility::Volatile
        && inner.downcast_ref::<WindowEdge>().is_none()
        && ![AS_OF, IN_WINDOW].contains(&function.name())
}

/// Refuses `plan`, which `reader` reads more than once, where each reading would draw other values.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check_reads(
    plan: &LogicalPlan,
    reader: &str,
) -> tersecades_columnar::error::Result<()> {
    let drawn = plan.exists(|node| Ok(node.expressions().iter().any(draws)));
    match drawn.unwrap_or(true) {
        true => {
            let message =
                format!("random values below {reader}, which reads its rows more than once");
            let hint = "CREATE TABLE r AS SELECT ... draws and keeps them";
            Err(Error::unsupported(message).hint(hint))
        }
        false => Ok(()),
    }
}

/// Whether a volatile function is a part of `expr`, and not all of it.
fn draws_inside(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => draws_inside(&alias.expr),
        expr => !is_drawn(expr) && draws(expr),
    }
}

/// The join with its volatile conditions behind it.
fn behind_join(mut join: Join) -> Result<LogicalPlan> {
    let keys = join.on.iter().flat_map(|(left, right)| [left, right]);
    if join.join_type != JoinType::Inner || keys.into_iter().any(draws) {
        let message = "random values in the condition of this join are not supported";
        let error = Error::unsupported(message)
            .hint("compute them in a subquery: JOIN (SELECT *, random() AS r FROM t)");
        return Err(DataFusionError::External(Box::new(error)));
    }
    let terms = join.filter.take().map(split_conjunction_owned);
    let (drawn, rest): (Vec<Expr>, Vec<Expr>) =
        terms.unwrap_or_default().into_iter().partition(draws);
    join.filter = conjunction(rest);
    let joined = LogicalPlan::Join(join);
    match conjunction(drawn) {
        Some(drawn) => filtered(Filter::try_new(drawn, Arc::new(joined))?),
        None => Ok(joined),
    }
}

/// The filter with its other terms first, as joins are found by them.
fn filtered(filter: Filter) -> Result<LogicalPlan> {
    let terms = split_conjunction_owned(filter.predicate);
    let (drawn, rest): (Vec<Expr>, Vec<Expr>) = terms.into_iter().partition(draws);
    let input = match conjunction(rest) {
        Some(rest) => Arc::new(LogicalPlan::Filter(Filter::try_new(rest, filter.input)?)),
        None => filter.input,
    };
    let Some(drawn) = conjunction(drawn) else {
        return Ok(Arc::unwrap_or_clone(input));
    };
    with_columns(LogicalPlan::Filter(Filter::try_new(drawn, input)?))
}

/// `node` over its input with a column for each volatile function inside of its expressions.
fn with_columns(node: LogicalPlan) -> Result<LogicalPlan> {
    let [input] = node.inputs()[..] else {
        return Ok(node);
    };
    let input = input.clone();
    let mut columns: Vec<Expr> = Vec::new();
    let before = node.schema().columns();
    let (names, passes) = (NamePreserver::new(&node), node.schema() == input.schema());
    let drawn = node.map_expressions(|expr| {
        if !draws_inside(&expr) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let drawn = expr.transform_down(|part| draw(part, &input, &mut columns))?;
        Ok(drawn.update_data(|expr| name.restore(expr)))
    })?;
    let own = input.schema().columns().into_iter().map(Expr::Column);
    let columns: Vec<Expr> = own.chain(columns).collect();
    let with_columns = LogicalPlanBuilder::from(input).project(columns)?.build()?;
    let expressions = drawn.data.expressions();
    let drawn = drawn.data.with_new_exprs(expressions, vec![with_columns])?;
    match passes {
        // Filters and sorts hand on all columns of their input.
        true => LogicalPlanBuilder::from(drawn)
            .project(before.into_iter().map(Expr::Column))?
            .build(),
        false => Ok(drawn),
    }
}

/// A column of `columns` for `part`, where that is a volatile function.
fn draw(part: Expr, input: &LogicalPlan, columns: &mut Vec<Expr>) -> Result<Transformed<Expr>> {
    if !is_drawn(&part) {
        return Ok(Transformed::no(part));
    }
    let taken = |name: &str| {
        let known = input.schema().fields().iter().map(|field| field.name());
        let drawn = columns.iter().filter_map(|column| match column {
            Expr::Alias(alias) => Some(&alias.name),
            _ => None,
        });
        known.chain(drawn).any(|known| known == name)
    };
    let name = free_name("drawn", taken);
    columns.push(part.alias(&name));
    let column = Expr::Column(Column::new_unqualified(name));
    Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
}
