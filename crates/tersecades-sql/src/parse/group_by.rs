//! Keys that stand twice in a `GROUP BY`: once is enough, and twice is more than the planner takes.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, GroupByExpr, Query, Select, SelectItem, Value, VisitMut, VisitorMut,
};

/// Leaves out of each `GROUP BY` of `query` the keys that stand before, as they are or by number.
pub(crate) fn distinct_keys(query: &mut Query) {
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut Keys);
}

struct Keys;

impl VisitorMut for Keys {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let GroupByExpr::Expressions(keys, modifiers) = &mut select.group_by else {
            return ControlFlow::Continue(());
        };
        if modifiers.is_empty() {
            // A number whose column is not known is none that an item of the list is.
            let mut known: Vec<(bool, Expr)> = Vec::with_capacity(keys.len());
            keys.retain(|key| {
                let item = by_number(key, &select.projection);
                let is_number = item.is_none() && matches!(key, Expr::Value(_));
                let meant = (is_number, item.unwrap_or(key).clone());
                let is_new = !known.contains(&meant);
                known.push(meant);
                is_new
            });
        }
        ControlFlow::Continue(())
    }
}

/// The item of the select list that `key` is the number of.
fn by_number<'a>(key: &Expr, items: &'a [SelectItem]) -> Option<&'a Expr> {
    let Expr::Value(value) = key else {
        return None;
    };
    let Value::Number(digits, _) = &value.value else {
        return None;
    };
    let index = digits.parse::<usize>().ok()?.checked_sub(1)?;
    let item = |item: &'a SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    };
    // Behind a `*` items have other numbers.
    let items: Option<Vec<&Expr>> = items.get(..=index)?.iter().map(item).collect();
    items?.pop()
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::GenericDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn keys_stand_once() {
        for (given, wanted) in [
            (
                "SELECT k, v AS w FROM t GROUP BY k, 2, k, v",
                "GROUP BY k, 2",
            ),
            ("SELECT k AS v, v FROM t GROUP BY 1, v", "GROUP BY 1, v"),
            ("SELECT 1, 1, a FROM t GROUP BY 1, 2, 3", "GROUP BY 1, 3"),
            (
                "SELECT k FROM (SELECT k FROM t GROUP BY k, k) GROUP BY 1",
                "GROUP BY k) GROUP BY 1",
            ),
            ("SELECT * FROM t GROUP BY 1, 1", "GROUP BY 1"),
            ("SELECT *, a FROM t GROUP BY a, 2", "GROUP BY a, 2"),
            ("SELECT *, 1 FROM t GROUP BY 1, 2", "GROUP BY 1, 2"),
        ] {
            let parser = Parser::new(&GenericDialect {}).try_with_sql(given);
            let mut query = parser.unwrap().parse_query().unwrap();
            distinct_keys(&mut query);
            assert!(query.to_string().ends_with(wanted), "{query}");
        }
    }
}
