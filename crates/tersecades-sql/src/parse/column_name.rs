//! Result columns are named as they are written: `count(*)`, `a + 1`; of two columns with one
//! name the second gets `_1`.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SetExpr, SetQuantifier, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};

use super::folded;
use crate::lower::rows::free_name;

/// Names the columns that `query` gives by their text.
pub(crate) fn name_by_text(query: &mut Query) {
    if let Some(items) = items_of(query.body.as_mut()) {
        items.iter_mut().for_each(name_item);
    }
}

/// Gives the columns that `query` gives different names, and those of all queries that are joined
/// to others by `UNION` and the like, which nobody sees.
pub(crate) fn tell_apart(query: &mut Query) {
    let is_set = is_set(query.body.as_ref());
    if let Some(items) = items_of(query.body.as_mut()) {
        number_names(items, is_set);
    }
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut Sets);
}

struct Sets;

impl VisitorMut for Sets {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        tell_branches_apart(query.body.as_mut());
        ControlFlow::Continue(())
    }
}

/// Gives different names to the columns of each branch behind the first; of sets that go by name
/// they count.
fn tell_branches_apart(body: &mut SetExpr) {
    use SetQuantifier::{AllByName, ByName, DistinctByName};
    let SetExpr::SetOperation {
        left,
        right,
        set_quantifier,
        ..
    } = body
    else {
        return;
    };
    tell_branches_apart(left);
    tell_branches_apart(right);
    let by_name = matches!(set_quantifier, AllByName | ByName | DistinctByName);
    if !by_name {
        number_unseen(right);
    }
}

/// Gives different names to columns whose names nobody sees.
pub(super) fn number_unseen(body: &mut SetExpr) {
    if let Some(items) = items_of(body) {
        items.iter_mut().for_each(name_item);
        number_names(items, true);
    }
}

fn is_set(body: &SetExpr) -> bool {
    match body {
        SetExpr::Query(query) => is_set(&query.body),
        SetExpr::SetOperation { .. } => true,
        _ => false,
    }
}

/// What the outermost select shows, the first of several.
fn items_of(body: &mut SetExpr) -> Option<&mut Vec<SelectItem>> {
    match body {
        SetExpr::Select(select) => Some(&mut select.projection),
        SetExpr::Query(query) => items_of(query.body.as_mut()),
        SetExpr::SetOperation { left, .. } => items_of(left),
        _ => None,
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

/// Gives columns of one name different ones; the planner takes columns of several tables with one
/// name as they are, but in a set.
fn number_names(items: &mut [SelectItem], in_set: bool) {
    let no_options = WildcardAdditionalOptions::default();
    let is_all = |item: &SelectItem| match item {
        SelectItem::Wildcard(options) => *options == no_options,
        _ => false,
    };
    let all = items.iter().any(is_all);
    let mut taken: Vec<String> = items.iter().filter_map(name_of).collect();
    for at in 0..items.len() {
        let (before, [item, ..]) = items.split_at_mut(at) else {
            return;
        };
        let Some(name) = name_of(item) else { continue };
        let is_column = matches!(item, SelectItem::UnnamedExpr(_));
        let twice = before.iter().any(|other| {
            let is_alike = name_of(other).as_deref() == Some(&name);
            is_alike && (in_set || !are_of_two_tables(other, item))
        });
        let is_in_all = all && is_column;
        if !twice && !is_in_all {
            continue;
        }
        let new = free_name(&name, |new| taken.iter().any(|known| known == new));
        taken.push(new.clone());
        let alias = Ident::with_quote('"', new);
        match item {
            SelectItem::ExprWithAlias { alias: known, .. } => *known = alias,
            SelectItem::UnnamedExpr(expr) => {
                let expr = expr.clone();
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            _ => {}
        }
    }
}

/// The name of a column, as it is compared.
pub(super) fn name_of(item: &SelectItem) -> Option<String> {
    let name = match item {
        SelectItem::ExprWithAlias { alias, .. } => alias,
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => name,
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => names.last()?,
        _ => return None,
    };
    Some(folded(name))
}

fn are_of_two_tables(one: &SelectItem, other: &SelectItem) -> bool {
    let table = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
            names.first().map(|name| name.value.to_lowercase())
        }
        _ => None,
    };
    matches!((table(one), table(other)), (Some(one), Some(other)) if one != other)
}
