//! `WITH` queries of inner queries, which may have the name of one further out.
//!
//! ```text
//! WITH a AS (…), b AS (WITH a AS (…) SELECT a.x FROM a) SELECT * FROM b
//!   ─▶ WITH a AS (…), b AS (WITH "a (1)" AS (…) SELECT a.x FROM "a (1)" AS a) SELECT * FROM b
//! ```
//! The planner takes each name once; that of the inner query gets a number.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Ident, ObjectName, Query, TableFactor, VisitMut, VisitorMut};

use super::window::named;
use super::{folded, single};

/// Gives `WITH` queries of queries within `query` names that no other has further out.
pub(crate) fn tell_apart(query: &mut Query) {
    let _ = query.visit(&mut Inner::default());
}

#[derive(Default)]
struct Inner {
    /// Names of the queries that the one at hand lies in, and of its own.
    names: Vec<Vec<String>>,
    count: usize,
}

impl VisitorMut for Inner {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        self.names
            .push(ctes.map(|cte| folded(&cte.alias.name)).collect());
        ControlFlow::Continue(())
    }

    // The innermost come first, so that what is left of a name means the query at hand.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let own = self.names.pop().unwrap_or_default();
        for (index, name) in own.iter().enumerate() {
            let is_once = own.iter().filter(|other| *other == name).count() == 1;
            if is_once && self.names.iter().any(|outer| outer.contains(name)) {
                self.count += 1;
                rename(query, index, self.count)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Gives the `WITH` query `index` of `query` a name with `number`, where it is read too.
fn rename(query: &mut Query, index: usize, number: usize) -> ControlFlow<()> {
    let Some(with) = &mut query.with else {
        return ControlFlow::Continue(());
    };
    let own = &mut with.cte_tables[index].alias.name;
    let from = folded(own);
    let to = Ident::with_quote('"', format!("{from} ({number})"));
    *own = Ident {
        span: own.span,
        ..to.clone()
    };
    let mut reads = Reads { from, to };
    for later in &mut with.cte_tables[index + 1..] {
        later.query.visit(&mut reads)?;
    }
    query.body.visit(&mut reads)?;
    query.order_by.visit(&mut reads)
}

struct Reads {
    from: String,
    to: Ident,
}

impl VisitorMut for Reads {
    type Break = ();

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = factor
            && let Some(own) = single(name).filter(|own| folded(own) == self.from)
        {
            alias.get_or_insert_with(|| named(own.clone()));
            let span = own.span;
            *name = ObjectName::from(vec![Ident {
                span,
                ..self.to.clone()
            }]);
        }
        ControlFlow::Continue(())
    }
}
