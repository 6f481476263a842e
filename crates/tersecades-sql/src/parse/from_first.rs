//! `FROM t` without a `SELECT`: all columns.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Query, Select, SelectFlavor, SelectItem, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

/// Writes `*` where `query` and its subqueries say nothing.
pub(crate) fn select_all(query: &mut Query) {
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut All);
}

struct All;

impl VisitorMut for All {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            let all = SelectItem::Wildcard(WildcardAdditionalOptions::default());
            select.projection = vec![all];
        }
        ControlFlow::Continue(())
    }
}
