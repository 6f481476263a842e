//! Lists behind `IN`, kept from what DataFusion takes them for where a value may be null.
//!
//! ```text
//! a IN (1, b, NULL)        ─▶ a = 1 OR a = b OR a = NULL
//! a IN (1, 2) AND a IN (3) ─▶ a IN (1, 2) AND mark(a) IN (3)
//! ```
//! Its optimiser makes one list of two over one value: items that are in both, or in one of them
//! alone. Where none is left that is false or true for it, and it is null where the value is; and a
//! null in a list is no item like the others. Its evaluation takes a list for constant whose items
//! are constant over no rows, as `CASE` is. So lists have constants only, and two that it would
//! wrongly make one are over values that differ by a mark until it has run.

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result};
use datafusion_expr::expr::{BinaryExpr, InList};
use datafusion_expr::expr_rewriter::{FunctionRewrite, NamePreserver};
use datafusion_expr::utils::disjunction;
use datafusion_expr::{Expr, LogicalPlan, Operator, lit};

use super::cast::{mark_of, marked};

/// What names of marks begin with that tell values of lists apart.
const LISTED: &str = "list ";

/// Rewrites lists so that DataFusion's optimiser and evaluation do not mistake them.
#[derive(Debug)]
pub(crate) struct ExactLists;

impl FunctionRewrite for ExactLists {
    fn name(&self) -> &str {
        "exact_lists"
    }

    fn rewrite(
        &self,
        expr: Expr,
        _schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        match expr {
            Expr::InList(list) if !is_exact(&list) => {
                let equal = |item: Expr| (*list.expr).clone().eq(item);
                let terms = disjunction(list.list.into_iter().map(equal));
                let inside = terms.unwrap_or_else(|| lit(false));
                Ok(Transformed::yes(match list.negated {
                    true => !inside,
                    false => inside,
                }))
            }
            Expr::BinaryExpr(binary) if matches!(binary.op, Operator::And | Operator::Or) => {
                apart(binary)
            }
            expr => Ok(Transformed::no(expr)),
        }
    }
}

/// Whether all items are constants and none is null, or one is a subquery.
fn is_exact(list: &InList) -> bool {
    match list.list.as_slice() {
        [Expr::ScalarSubquery(_)] => true,
        items => items
            .iter()
            .all(|item| matches!(item, Expr::Literal(value, _) if !value.is_null())),
    }
}

/// The value of a list, and whether it must not be among its items.
type Listed<'e> = (&'e Expr, bool);

/// `binary` with marks around values on its right that lists on its left are over too.
fn apart(binary: BinaryExpr) -> Result<Transformed<Expr>> {
    let all_negated = binary.op == Operator::And;
    let left = listed(&binary.left, false);
    let right = listed(&binary.right, false);
    let meets = |(value, negated): &Listed<'_>| {
        let joins = |(other, others): &Listed<'_>| {
            other == value && !(*negated == all_negated && *others == all_negated)
        };
        left.iter().any(joins)
    };
    let values: Vec<Expr> = right
        .iter()
        .filter(|listed| meets(listed))
        .map(|(value, _)| (*value).clone())
        .collect();
    if values.is_empty() {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    }
    let name = format!("{LISTED}{}", marks(&binary.left) + marks(&binary.right));
    let right = binary.right.transform_up(|part| {
        Ok(match compared(&part) {
            Some(value) if values.contains(value) => {
                let value = value.clone();
                part.map_children(|child| {
                    Ok(match child == value {
                        true => Transformed::yes(marked(child, &name)),
                        false => Transformed::no(child),
                    })
                })?
            }
            _ => Transformed::no(part),
        })
    })?;
    let binary = BinaryExpr::new(binary.left, binary.op, Box::new(right.data));
    Ok(Transformed::yes(Expr::BinaryExpr(binary)))
}

/// The values of lists in the terms of `expr`, and of comparisons that may become lists.
fn listed(expr: &Expr, negated: bool) -> Vec<Listed<'_>> {
    match expr {
        Expr::InList(list) => vec![(&list.expr, list.negated != negated)],
        Expr::Not(inner) => listed(inner, !negated),
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(op, Operator::And | Operator::Or) =>
        {
            let mut values = listed(left, negated);
            values.extend(listed(right, negated));
            let (left, right) = (columns(left), columns(right));
            let both = left.into_iter().filter(|value| right.contains(value));
            values.extend(both.map(|value| (value, (*op == Operator::And) != negated)));
            values
        }
        _ => Vec::new(),
    }
}

/// The columns that terms of `expr` compare with constants.
fn columns(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Not(inner) => columns(inner),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And | Operator::Or,
            right,
        }) => {
            let mut found = columns(left);
            found.extend(columns(right));
            found
        }
        expr => compared(expr).into_iter().collect(),
    }
}

/// The value that `expr` looks for in a list, or the column that it compares with one constant.
fn compared(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::InList(list) => Some(&list.expr),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq | Operator::NotEq,
            right,
        }) => match (&**left, &**right) {
            (column @ Expr::Column(_), Expr::Literal(..))
            | (Expr::Literal(..), column @ Expr::Column(_)) => Some(column),
            _ => None,
        },
        _ => None,
    }
}

fn is_listed(expr: &Expr) -> bool {
    mark_of(expr).is_some_and(|name| name.starts_with(LISTED))
}

/// How many marks of values of lists are in `expr`.
fn marks(expr: &Expr) -> usize {
    let mut count = 0;
    let walked = expr.apply(|part| {
        count += usize::from(is_listed(part));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_or(0, |_| count)
}

/// `plan` without the marks.
///
/// # Errors
/// What putting its nodes together again says.
pub(crate) fn without_marks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let unmarked = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let unmarked = expr.transform_up(|part| {
                let is_marked = is_listed(&part);
                Ok(match part {
                    Expr::ScalarFunction(mut call) if is_marked => {
                        Transformed::yes(call.args.swap_remove(0))
                    }
                    part => Transformed::no(part),
                })
            })?;
            Ok(unmarked.update_data(|expr| name.restore(expr)))
        })
    });
    Ok(unmarked?.data)
}
