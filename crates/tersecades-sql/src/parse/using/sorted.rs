//! Names in expressions of `ORDER BY`, which are those of the tables before those of the result.
//!
//! ```text
//! SELECT y AS x, x AS k FROM t ORDER BY x + 1  ─▶  SELECT y AS x, x AS k FROM t ORDER BY t.x + 1
//! SELECT -x AS x FROM t ORDER BY x                 stays: a name alone is that of the result
//! SELECT -x AS x FROM t ORDER BY x + 1             is refused
//! ```
//! The planner takes names of the result first, and has no two columns of one name: what is not
//! shown under another one cannot be had. What several tables may have stays as it is.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor,
    TableWithJoins, VisitMut, VisitorMut,
};

use tersecades_columnar::error::{Error, Result};

use super::super::{folded, place};
use super::scope::Scope;
use crate::catalog::Catalog;
use crate::function::FUNCTIONS;

/// Writes such names of `query` with their tables.
///
/// # Errors
/// `Unsupported` with the place for those that the result hides.
pub(crate) fn by_tables(query: &mut Query, catalog: &Catalog) -> Result<()> {
    match query.visit(&mut Sorted(Scope::new(catalog))) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Sorted<'c>(Scope<'c>);

impl VisitorMut for Sorted<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.0.enter(query);
        if let SetExpr::Select(select) = query.body.as_ref()
            && let Some(order) = &mut query.order_by
            && let OrderByKind::Expressions(by) = &mut order.kind
            && select.distinct.is_none()
        {
            let hidden = hidden_names(select).filter_map(|name| {
                let table = called(self.table_of(select, &name)?)?;
                let is_shown = select.projection.iter().any(|item| shows(item, &name));
                Some(Hidden {
                    name,
                    table,
                    is_shown,
                })
            });
            let mut names = Names {
                hidden: hidden.collect(),
                depth: 0,
            };
            for by in by {
                match shown_as(select, &by.expr) {
                    Some(name) => by.expr = Expr::Identifier(name),
                    None if matches!(by.expr, Expr::Identifier(_)) => {}
                    None => by.expr.visit(&mut names)?,
                }
            }
        }
        self.0.visit();
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        self.0.leave();
        ControlFlow::Continue(())
    }
}

impl Sorted<'_> {
    /// The one table of `select` with the column, where those of all tables are known.
    fn table_of<'s>(&self, select: &'s Select, name: &str) -> Option<&'s TableFactor> {
        let mut found = None;
        for table in tables_of(&select.from) {
            let columns = self.0.columns(table)?;
            if columns.iter().any(|column| column == name) {
                if found.is_some() {
                    return None;
                }
                found = Some(table);
            }
        }
        found
    }
}

/// The tables of a `FROM`.
fn tables_of(from: &[TableWithJoins]) -> impl Iterator<Item = &TableFactor> {
    from.iter().flat_map(|tables| {
        let joined = tables.joins.iter().map(|join| &join.relation);
        std::iter::once(&tables.relation).chain(joined)
    })
}

/// Names that the result gives to something else than a column of that name, which rows still have
/// when they are sorted.
fn hidden_names(select: &Select) -> impl Iterator<Item = String> {
    let keys = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => keys.as_slice(),
        GroupByExpr::All(_) => &[],
    };
    let groups = !keys.is_empty() || select.projection.iter().any(aggregates);
    select.projection.iter().filter_map(move |item| match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            let name = folded(alias);
            let is_there = !groups || keys.iter().any(|key| is_column(key, &name));
            (is_there && !is_column(expr, &name)).then_some(name)
        }
        _ => None,
    })
}

fn is_column(value: &Expr, name: &str) -> bool {
    match value {
        Expr::Identifier(own) => folded(own) == name,
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|own| folded(own) == name),
        _ => false,
    }
}

/// Whether `item` is the column `name` under whatever name.
fn shows(item: &SelectItem, name: &str) -> bool {
    match item {
        SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } => {
            is_column(value, name)
        }
        _ => false,
    }
}

/// The name that the result gives to `value`, which is more than a column.
fn shown_as(select: &Select, value: &Expr) -> Option<Ident> {
    let is_column = matches!(value, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let mut items = select.projection.iter().filter(|_| !is_column);
    items.find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if expr == value => Some(alias.clone()),
        _ => None,
    })
}

fn aggregates(item: &SelectItem) -> bool {
    let mut item = item.clone();
    item.visit(&mut Aggregates).is_break()
}

struct Aggregates;

impl VisitorMut for Aggregates {
    type Break = ();

    fn pre_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<()> {
        let aggregates = |name: &str| FUNCTIONS.aggregates.contains_key(&name.to_lowercase());
        match value {
            Expr::Function(call) if call.over.is_none() && aggregates(&call.name.to_string()) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// What the columns of a table are told by.
fn called(table: &TableFactor) -> Option<Vec<Ident>> {
    match table {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(vec![alias.name.clone()]),
        TableFactor::Table {
            name, alias: None, ..
        } => name.0.iter().map(|part| part.as_ident().cloned()).collect(),
        _ => None,
    }
}

/// A column of `table` whose name the result gives to something else.
struct Hidden {
    name: String,
    table: Vec<Ident>,
    /// Whether the result has it under another name.
    is_shown: bool,
}

struct Names {
    hidden: Vec<Hidden>,
    depth: usize,
}

impl VisitorMut for Names {
    type Break = Error;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<Error> {
        if let (0, Expr::Identifier(name)) = (self.depth, &*value) {
            let wanted = folded(name);
            let mut hidden = self.hidden.iter();
            let Some(column) = hidden.find(|column| column.name == wanted) else {
                return ControlFlow::Continue(());
            };
            if !column.is_shown {
                let message = format!(
                    "ORDER BY of the column `{name}`, whose name the result gives to another{}",
                    place(name.span.start)
                );
                let hint = "give the result a name of its own, or order by that name alone";
                return ControlFlow::Break(Error::unsupported(message).hint(hint));
            }
            let mut names = column.table.clone();
            names.push(name.clone());
            *value = Expr::CompoundIdentifier(names);
        }
        ControlFlow::Continue(())
    }
}
