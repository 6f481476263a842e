//! `USING` and `NATURAL` become conditions, and what they share one column.
//!
//! ```text
//! SELECT k, x FROM a FULL JOIN b USING (k)
//!   ─▶ SELECT coalesce(a.k, b.k) AS k, x FROM a FULL JOIN b ON a.k = b.k
//! SELECT * FROM …
//!   ─▶ SELECT a.* REPLACE (coalesce(a.k, b.k) AS k), b.* EXCLUDE (k) FROM …
//! ```
//! The planner of queries takes the key of one side for both, which is null where that side has no
//! row. Of an inner or left join the shared column is that of the left side, of a right join that
//! of the right one.

pub(super) mod joined;
pub(crate) mod letter_case;
pub(crate) mod pivot;
pub(crate) mod rename;
mod scope;
pub(crate) mod sorted;

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator,
    OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, VisitMut,
    VisitorMut, WildcardAdditionalOptions,
};

use super::column_name::name_of;
use super::window::named;
use super::{folded, single};
use crate::catalog::Catalog;
use joined::{Joined, Part, Shared, Side, binary};
use scope::Scope;

/// Writes the joins of `query` by `USING` and `NATURAL` as joins by a condition, where it is known
/// which tables have the columns.
pub(crate) fn merge_keys(query: &mut Query, catalog: &Catalog) {
    let mut keys = Keys(Scope::new(catalog));
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut keys);
}

struct Keys<'c>(Scope<'c>);

impl VisitorMut for Keys<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.0.enter(query);
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Some((from, joined)) = self.rewritten(select)
        {
            if let Some(order) = &mut query.order_by
                && let OrderByKind::Expressions(by) = &mut order.kind
            {
                let shared = joined.shared.iter();
                let unseen = shared.filter(|it| !is_shown(&select.projection, &it.name));
                let unseen: Vec<&Shared> = unseen.collect();
                by.iter_mut()
                    .for_each(|by| self.replace(&mut by.expr, &unseen));
            }
            self.merge(select, from, &joined);
        }
        self.0.visit();
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.0.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let Some((from, joined)) = self.rewritten(select) {
            self.merge(select, from, &joined);
        }
        ControlFlow::Continue(())
    }
}

impl Keys<'_> {
    /// The tables of `select` with conditions for what they share; `None` where they share nothing
    /// or it is not known which of them have it.
    fn rewritten(&self, select: &Select) -> Option<(Vec<TableWithJoins>, Joined)> {
        if !select.from.iter().any(joins_by_name) {
            return None;
        }
        let (mut from, mut joined) = (select.from.clone(), Joined::default());
        for tables in &mut from {
            self.tables(tables, &mut joined)?;
        }
        let all_known = joined.parts.iter().all(|part| part.columns.is_some());
        let plain = select.projection.iter().all(|item| match item {
            SelectItem::Wildcard(options) => match excluded(options) {
                Some(names) => {
                    names.is_empty() || all_known && names.iter().all(|name| joined.has(name))
                }
                None => false,
            },
            _ => true,
        });
        (plain && !joined.shared.is_empty()).then_some((from, joined))
    }

    /// Adds what `tables` join, and gives each join a condition for what it shares.
    fn tables(&self, tables: &mut TableWithJoins, joined: &mut Joined) -> Option<()> {
        let start = joined.parts.len();
        self.table(&mut tables.relation, joined)?;
        let mut joins = tables.joins.iter_mut();
        joins.try_for_each(|join| self.join(join, start, joined))
    }

    /// Adds the table, under a name by which its columns can be told from those of others.
    fn table(&self, factor: &mut TableFactor, joined: &mut Joined) -> Option<()> {
        let columns = self.0.columns(factor);
        let (own, alias) = match factor {
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => return self.tables(table_with_joins, joined),
            TableFactor::Table { name, alias, .. } => (Some(&*name), alias),
            TableFactor::Derived { alias, .. } => (None, alias),
            _ => return None,
        };
        let quoted = |name: &Ident| Ident::with_quote('"', folded(name));
        let own = own.filter(|_| alias.is_none()).and_then(|name| {
            let parts = name.0.iter();
            parts.map(|part| part.as_ident().map(quoted)).collect()
        });
        let name = own.unwrap_or_else(|| {
            let other = || {
                let number = joined.parts.len() + 1;
                named(Ident::with_quote('"', format!("table {number}")))
            };
            vec![alias.get_or_insert_with(other).name.clone()]
        });
        joined.parts.push(Part { name, columns });
        Some(())
    }

    /// Gives the join to the tables since `start` a condition for what it shares.
    fn join(&self, join: &mut Join, start: usize, joined: &mut Joined) -> Option<()> {
        let middle = joined.parts.len();
        self.table(&mut join.relation, joined)?;
        let side = Side::of(&join.join_operator)?;
        let constraint = constraint_of(&mut join.join_operator);
        let names = match constraint.as_deref() {
            Some(JoinConstraint::Using(names)) => {
                let names = names.iter().map(|name| single(name).cloned());
                names.collect::<Option<Vec<Ident>>>()?
            }
            Some(JoinConstraint::Natural) => joined.common(start, middle)?,
            _ => Vec::new(),
        };
        let terms = names.iter();
        let terms = terms.map(|name| joined.share(name, start, middle, side));
        let terms: Option<Vec<Expr>> = terms.collect();
        let condition = terms?
            .into_iter()
            .reduce(|a, b| binary(a, BinaryOperator::And, b));
        match (constraint, condition) {
            (Some(constraint), Some(condition)) => *constraint = JoinConstraint::On(condition),
            (Some(JoinConstraint::On(condition)), None) => {
                let shared = joined.shared.iter().filter(|it| it.first >= start);
                self.replace(condition, &shared.collect::<Vec<_>>());
            }
            _ => {}
        }
        if side == Side::LeftAlone {
            joined.truncate(middle);
        }
        Some(())
    }

    /// Gives `select` its new tables and what they share.
    fn merge(&self, select: &mut Select, from: Vec<TableWithJoins>, joined: &Joined) {
        let shared: Vec<&Shared> = joined.shared.iter().collect();
        let items = std::mem::take(&mut select.projection).into_iter();
        let items = items.flat_map(|item| match item {
            SelectItem::Wildcard(options) => joined.all(&excluded(&options).unwrap_or_default()),
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => vec![joined.item(name)],
            item => vec![item],
        });
        select.projection = items.collect();
        select.from = Vec::new();
        self.replace(select, &shared);
        select.from = from;
    }

    /// Puts what tables share in the place of its names, in subqueries where these have no column
    /// of the name.
    fn replace(&self, of: &mut impl VisitMut, shared: &[&Shared]) {
        let mut replaced = Replaced {
            scope: &self.0,
            inner: Vec::new(),
            shared,
        };
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) = of.visit(&mut replaced);
    }
}

/// The columns that `*` leaves out; `None` where it says more than that.
fn excluded(options: &WildcardAdditionalOptions) -> Option<Vec<Ident>> {
    let names = match &options.opt_exclude {
        None => Vec::new(),
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names.iter().collect(),
    };
    let others = WildcardAdditionalOptions {
        opt_exclude: None,
        ..options.clone()
    };
    let names: Option<Vec<Ident>> = names.into_iter().map(|it| single(it).cloned()).collect();
    names.filter(|_| others == WildcardAdditionalOptions::default())
}

fn constraint_of(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator::{
        Anti, FullOuter, Inner, Join, Left, LeftAnti, LeftOuter, LeftSemi, Right, RightOuter, Semi,
    };
    match operator {
        Join(it) | Inner(it) | Left(it) | LeftOuter(it) | Right(it) | RightOuter(it)
        | FullOuter(it) | Semi(it) | LeftSemi(it) | Anti(it) | LeftAnti(it) => Some(it),
        _ => None,
    }
}

fn joins_by_name(tables: &TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| {
        matches!(factor, TableFactor::NestedJoin { table_with_joins, .. }
            if joins_by_name(table_with_joins))
    };
    let by_name = |join: &Join| {
        let constraint = constraint_of(&mut join.join_operator.clone()).cloned();
        matches!(
            constraint,
            Some(JoinConstraint::Using(_) | JoinConstraint::Natural)
        )
    };
    let mut joins = tables.joins.iter();
    nested(&tables.relation) || joins.any(|join| by_name(join) || nested(&join.relation))
}

struct Replaced<'s> {
    scope: &'s Scope<'s>,
    /// The names of the subqueries around.
    inner: Vec<Option<Vec<String>>>,
    shared: &'s [&'s Shared],
}

impl VisitorMut for Replaced<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.inner.push(self.scope.names_in(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.inner.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = &*expr {
            let name = folded(name);
            let lacks = |names: &Option<Vec<String>>| match names {
                Some(names) => !names.contains(&name),
                None => false,
            };
            let mut shared = self.shared.iter();
            if let Some(shared) = shared.find(|it| folded(&it.name) == name)
                && self.inner.iter().all(lacks)
            {
                *expr = shared.value.clone();
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether `items` have a column of this name.
fn is_shown(items: &[SelectItem], name: &Ident) -> bool {
    items.iter().any(|item| {
        matches!(item, SelectItem::Wildcard(_)) || name_of(item).as_deref() == Some(&folded(name))
    })
}
