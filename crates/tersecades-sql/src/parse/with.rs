//! `WITH` queries of random values: read twice they would be drawn twice.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Cte, Expr, Function, ObjectName, Query, Visit, Visitor};
use tersecades_columnar::error::Error;

use super::check::placed;
use super::{folded, single};
use crate::drawn::is_random;
use crate::function::FUNCTIONS;

/// Refuses those of `query` that are read more than once.
pub(super) fn check_drawn(query: &Query) -> ControlFlow<Error> {
    let with = query.with.as_ref();
    let ctes = with.map_or(&[][..], |with| with.cte_tables.as_slice());
    let mut drawn: Vec<String> = Vec::new();
    for (index, cte) in ctes.iter().enumerate() {
        if cte.query.visit(&mut Draws(&drawn)).is_continue() {
            continue;
        }
        let name = folded(&cte.alias.name);
        let is_read_twice = reads_of(&name, &ctes[index + 1..], query) > 1;
        drawn.push(name);
        if is_read_twice {
            let (place, name) = (placed(cte), &cte.alias.name.value);
            let message = format!("`{name}` has random values and is read more than once{place}");
            let hint = format!("CREATE TABLE {name} AS SELECT ... draws and keeps them");
            return ControlFlow::Break(Error::unsupported(message).hint(hint));
        }
    }
    ControlFlow::Continue(())
}

/// Whether `expr` has random values.
pub(super) fn is_drawn(expr: &Expr) -> bool {
    expr.visit(&mut Draws(&[])).is_break()
}

/// How often `name` is read by later ones and by the query itself.
fn reads_of(name: &str, later: &[Cte], query: &Query) -> usize {
    let mut reads = Reads { name, count: 0 };
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = reads.count(later, query);
    reads.count
}

struct Reads<'a> {
    name: &'a str,
    count: usize,
}

impl Reads<'_> {
    fn count(&mut self, later: &[Cte], query: &Query) -> ControlFlow<()> {
        for cte in later {
            cte.query.visit(self)?;
        }
        query.body.visit(self)?;
        query.order_by.visit(self)
    }
}

impl Visitor for Reads<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.count += usize::from(is_named(relation, self.name));
        ControlFlow::Continue(())
    }
}

/// Looks for random values and for reads of these queries, which have some.
struct Draws<'a>(&'a [String]);

impl Visitor for Draws<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let mut drawn = self.0.iter();
        match drawn.any(|name| is_named(relation, name)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) if draws(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn draws(function: &Function) -> bool {
    let name = function.name.to_string().to_lowercase();
    let known = FUNCTIONS.scalars.get(&name);
    known.is_some_and(|function| is_random(function))
}

fn is_named(relation: &ObjectName, name: &str) -> bool {
    single(relation).is_some_and(|own| folded(own) == name)
}
