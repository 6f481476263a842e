//! Result columns are named as they are written: `count(*)`, `a + 1`.

use datafusion_sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr};

/// Names the columns of the outermost selects of `query` by their text.
pub(crate) fn name_by_text(query: &mut Query) {
    name_body(query.body.as_mut());
}

fn name_body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => select.projection.iter_mut().for_each(name_item),
        SetExpr::Query(query) => name_body(query.body.as_mut()),
        SetExpr::SetOperation { left, .. } => name_body(left),
        _ => {}
    }
}

fn name_item(item: &mut SelectItem) {
    let SelectItem::UnnamedExpr(value) = item else {
        return;
    };
    if matches!(value, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
        return;
    }
    let alias = Ident::with_quote('"', value.to_string());
    *item = SelectItem::ExprWithAlias {
        expr: value.clone(),
        alias,
    };
}
