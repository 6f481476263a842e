//! `ORDER BY ALL`: the columns of the result, from the first to the last.
//!
//! ```text
//! SELECT a, b + 1 FROM t ORDER BY ALL DESC ─▶ ORDER BY 1 DESC, 2 DESC
//! SELECT * FROM t ORDER BY ALL             ─▶ all columns, once the planner knows them
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Value, VisitMut, VisitorMut,
};
use tersecades_columnar::error::{Error, Result};

use super::check::placed;

/// Writes out the orders of `query` by all columns.
///
/// # Errors
/// `Unsupported` where it is not known which columns these are.
pub(crate) fn by_all(query: &mut Query) -> Result<()> {
    match query.visit(&mut All) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct All;

impl VisitorMut for All {
    type Break = Error;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let Some(order) = &mut query.order_by else {
            return ControlFlow::Continue(());
        };
        let OrderByKind::Expressions(keys) = &order.kind else {
            return ControlFlow::Continue(());
        };
        let [key] = keys.as_slice() else {
            return ControlFlow::Continue(());
        };
        if !is_all(&key.expr) {
            return ControlFlow::Continue(());
        }
        match ordered(&query.body, key) {
            Some(kind) => {
                order.kind = kind;
                ControlFlow::Continue(())
            }
            None => {
                let place = placed(&key.expr);
                let message = format!("ORDER BY ALL of these columns is not supported{place}");
                let hint = "name the columns: ORDER BY 1, 2";
                ControlFlow::Break(Error::unsupported(message).hint(hint))
            }
        }
    }
}

/// Whether `key` is the word `ALL`, which no column is called without quotes.
fn is_all(key: &Expr) -> bool {
    matches!(key, Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all"))
}

/// The order of all columns of `body`, each as `key` says.
fn ordered(body: &SetExpr, key: &OrderByExpr) -> Option<OrderByKind> {
    let is_one = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    let numbered = |count: usize| {
        let numbers = (1..=count).map(|number| OrderByExpr {
            expr: Expr::Value(Value::Number(number.to_string(), false).into()),
            ..key.clone()
        });
        Some(OrderByKind::Expressions(numbers.collect()))
    };
    match body {
        SetExpr::Select(select) if select.projection.iter().all(is_one) => {
            numbered(select.projection.len())
        }
        SetExpr::Select(select) => {
            let columns = select.projection.iter().all(|item| match item {
                SelectItem::UnnamedExpr(column) => matches!(column, Expr::Identifier(_)),
                SelectItem::ExprWithAlias { .. } => false,
                _ => true,
            });
            columns.then_some(OrderByKind::All(key.options))
        }
        SetExpr::Values(values) => numbered(values.rows.first()?.len()),
        SetExpr::SetOperation { left, .. } => match ordered(left, key)? {
            OrderByKind::All(_) => None,
            numbers => Some(numbers),
        },
        _ => None,
    }
}
