//! Computed keys of sets of groups: columns before anything rewrites them.
//!
//! ```text
//! GROUP BY ROLLUP (a % 3) ─▶ SELECT ... FROM (SELECT *, a % 3 AS "a % 3" FROM t)
//!                            GROUP BY ROLLUP ("a % 3")
//! ```
//! A rule that rewrites a part of a set gives all of it another name, and the group-by has a set no
//! more.

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result};
use datafusion_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Volatility};
use datafusion_optimizer::analyzer::AnalyzerRule;

/// Makes columns of the computed keys of `GROUPING SETS`, `ROLLUP` and `CUBE`.
#[derive(Debug)]
pub(crate) struct ComputedKeys;

impl AnalyzerRule for ComputedKeys {
    fn name(&self) -> &str {
        "computed_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let computed = plan.transform_up_with_subqueries(|node| {
            let LogicalPlan::Aggregate(aggregate) = &node else {
                return Ok(Transformed::no(node));
            };
            let keys = computed_keys(aggregate);
            match keys.is_empty() {
                true => Ok(Transformed::no(node)),
                false => Ok(Transformed::yes(with_columns(aggregate, &keys)?)),
            }
        });
        Ok(computed?.data)
    }
}

/// The keys of sets that are no columns, but for windows, which are lowered as they stand.
fn computed_keys(aggregate: &Aggregate) -> Vec<Expr> {
    let [Expr::GroupingSet(sets)] = aggregate.group_expr.as_slice() else {
        return Vec::new();
    };
    let is_computed = |key: &&&Expr| !matches!(key, Expr::Column(_)) && !is_volatile(key);
    let keys = sets.distinct_expr();
    keys.iter()
        .filter(is_computed)
        .map(|key| (*key).clone())
        .collect()
}

fn is_volatile(key: &Expr) -> bool {
    let called = key.exists(|part| {
        Ok(matches!(part, Expr::ScalarFunction(call)
            if call.func.signature().volatility == Volatility::Volatile))
    });
    called.unwrap_or(true)
}

/// `aggregate` over its input with a column for each of `keys`, named as the key is.
fn with_columns(aggregate: &Aggregate, keys: &[Expr]) -> Result<LogicalPlan> {
    let named = |key: &Expr| key.schema_name().to_string();
    let own = aggregate.input.schema().columns();
    let own = own.into_iter().map(Expr::Column);
    let columns = keys.iter().map(|key| key.clone().alias(named(key)));
    let input = LogicalPlanBuilder::from(Arc::clone(&aggregate.input))
        .project(own.chain(columns))?
        .build()?;
    let as_column = |part: Expr| match keys.contains(&part) {
        true => {
            let column = Expr::Column(Column::new_unqualified(named(&part)));
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        }
        false => Ok(Transformed::no(part)),
    };
    let read = |expr: &Expr| Ok(expr.clone().transform_down(as_column)?.data);
    let groups: Result<Vec<Expr>> = aggregate.group_expr.iter().map(read).collect();
    let calls = aggregate
        .aggr_expr
        .iter()
        .map(|call| match is_grouping(call) {
            true => read(call),
            false => Ok(call.clone()),
        });
    let calls: Result<Vec<Expr>> = calls.collect();
    Aggregate::try_new(Arc::new(input), groups?, calls?).map(LogicalPlan::Aggregate)
}

/// Whether `call` says which keys a set has, and so names them.
fn is_grouping(call: &Expr) -> bool {
    matches!(call, Expr::AggregateFunction(call) if call.func.name() == "grouping")
}
