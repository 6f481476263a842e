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

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    OrderByKind, Query, ReplaceSelectElement, ReplaceSelectItem, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, VisitMut,
    VisitorMut, WildcardAdditionalOptions,
};

use super::column_name::name_of;
use super::window::{call_of, named};
use crate::catalog::Catalog;

/// Writes the joins of `query` by `USING` and `NATURAL` as joins by a condition, where it is known
/// which tables have the columns.
pub(crate) fn merge_keys(query: &mut Query, catalog: &Catalog) {
    let mut keys = Keys {
        catalog,
        queries: Vec::new(),
    };
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut keys);
}

struct Keys<'c> {
    catalog: &'c Catalog,
    /// The queries of `WITH`, which hide tables, and their columns where they are known.
    queries: Vec<(String, Option<Vec<String>>)>,
}

/// A table of `FROM`.
struct Part {
    name: Ident,
    /// Its columns, where they are known.
    columns: Option<Vec<String>>,
}

/// A column that joins share.
struct Shared {
    name: Ident,
    /// The first of the tables that have it.
    first: usize,
    /// The others.
    others: Vec<usize>,
    /// What it is of all of them.
    value: Expr,
}

/// What a `FROM` joins and shares.
#[derive(Default)]
struct Joined {
    parts: Vec<Part>,
    shared: Vec<Shared>,
}

impl VisitorMut for Keys<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.queries.extend(with.map(|query| {
            let columns = columns_named(&query.alias);
            let columns = columns.or_else(|| columns_given(&query.query.body));
            (folded(&query.alias.name), columns)
        }));
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Some((from, joined)) = self.rewritten(select)
        {
            if let Some(order) = &mut query.order_by
                && let OrderByKind::Expressions(by) = &mut order.kind
            {
                let shown = |name: &Ident| is_shown(&select.projection, name);
                let mut unseen = joined
                    .shared
                    .iter()
                    .filter(|it| !shown(&it.name))
                    .peekable();
                if unseen.peek().is_some() {
                    let values: Vec<&Shared> = unseen.collect();
                    by.iter_mut().for_each(|by| replace(&mut by.expr, &values));
                }
            }
            merge(select, from, &joined);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let Some((from, joined)) = self.rewritten(select) {
            merge(select, from, &joined);
        }
        ControlFlow::Continue(())
    }
}

impl Keys<'_> {
    /// The tables of `select` with conditions for what they share; `None` where they share nothing
    /// or it is not known which of them have it.
    fn rewritten(&self, select: &Select) -> Option<(Vec<TableWithJoins>, Joined)> {
        let mut joins = select.from.iter().flat_map(|tables| &tables.joins);
        if !joins.any(is_by_name) {
            return None;
        }
        let (mut from, mut joined) = (select.from.clone(), Joined::default());
        for tables in &mut from {
            let start = joined.parts.len();
            let part = self.part(&mut tables.relation, start)?;
            joined.parts.push(part);
            for join in &mut tables.joins {
                self.join(join, start, &mut joined)?;
            }
        }
        let plain = select.projection.iter().all(|item| {
            !matches!(item, SelectItem::Wildcard(options)
                if *options != WildcardAdditionalOptions::default())
        });
        (plain && !joined.shared.is_empty()).then_some((from, joined))
    }

    /// The table, under a name by which its columns can be told from those of others.
    fn part(&self, factor: &mut TableFactor, index: usize) -> Option<Part> {
        let (TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. }) = &*factor
        else {
            return None;
        };
        let given = alias.clone();
        let columns = given.as_ref().and_then(columns_named);
        let columns = columns.or_else(|| match &*factor {
            TableFactor::Table { name, .. } => self.columns_of(name),
            TableFactor::Derived { subquery, .. } => columns_given(&subquery.body),
            _ => None,
        });
        let own = match &*factor {
            TableFactor::Table { name, .. } => single(name).filter(|name| {
                let plain = |letter: char| letter.is_alphanumeric() || letter == '_';
                name.value.chars().all(plain)
            }),
            _ => None,
        };
        let name = match (given, own) {
            (Some(alias), _) => alias.name,
            (None, Some(own)) => own.clone(),
            (None, None) => Ident::with_quote('"', format!("table {}", index + 1)),
        };
        if let TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } = factor {
            alias.get_or_insert_with(|| named(name.clone()));
        }
        Some(Part { name, columns })
    }

    fn columns_of(&self, name: &ObjectName) -> Option<Vec<String>> {
        let name = single(name)?;
        let mut queries = self.queries.iter().rev();
        if let Some((_, columns)) = queries.find(|(known, _)| *known == folded(name)) {
            return columns.clone();
        }
        let relation = self.catalog.find(&folded(name)).ok()?;
        let fields = relation.schema.fields().iter();
        Some(fields.map(|field| field.name().clone()).collect())
    }

    /// Gives the join to the tables since `start` a condition for what it shares.
    fn join(&self, join: &mut Join, start: usize, joined: &mut Joined) -> Option<()> {
        let right = joined.parts.len();
        let part = self.part(&mut join.relation, right)?;
        let side = Side::of(&join.join_operator)?;
        let constraint = constraint_of(&mut join.join_operator);
        let names = match constraint.as_deref() {
            Some(JoinConstraint::Using(names)) => {
                let names: Option<Vec<Ident>> =
                    names.iter().map(|name| single(name).cloned()).collect();
                names?
            }
            Some(JoinConstraint::Natural) => {
                let columns = part.columns.as_ref()?;
                let mut names = Vec::new();
                for left in &joined.parts[start..] {
                    let both = left.columns.as_ref()?.iter();
                    let both = both.filter(|name| columns.contains(name));
                    names.extend(both.map(|name| Ident::with_quote('"', name.clone())));
                }
                names.dedup();
                names
            }
            _ => Vec::new(),
        };
        let terms: Option<Vec<Expr>> = names
            .into_iter()
            .map(|name| joined.share(name, &part, start, side))
            .collect();
        let condition = terms?
            .into_iter()
            .reduce(|a, b| binary(a, BinaryOperator::And, b));
        match (constraint, condition) {
            (Some(constraint), Some(condition)) => *constraint = JoinConstraint::On(condition),
            (Some(JoinConstraint::On(condition)), None) => {
                replace(condition, &joined.shared.iter().collect::<Vec<_>>());
            }
            _ => {}
        }
        if side != Side::LeftAlone {
            joined.parts.push(part);
        }
        Some(())
    }
}

impl Joined {
    /// The condition that `name` of the tables since `start` equals that of `part`, which is the
    /// next.
    fn share(&mut self, name: Ident, part: &Part, start: usize, side: Side) -> Option<Expr> {
        let is_it =
            |shared: &Shared| folded(&shared.name) == folded(&name) && shared.first >= start;
        let right = self.parts.len();
        let own = Expr::CompoundIdentifier(vec![part.name.clone(), name.clone()]);
        let at = match self.shared.iter().position(is_it) {
            Some(at) => at,
            None => {
                let first = self.owner(&name, start)?;
                let value = vec![self.parts[first].name.clone(), name.clone()];
                self.shared.push(Shared {
                    name,
                    first,
                    others: Vec::new(),
                    value: Expr::CompoundIdentifier(value),
                });
                self.shared.len() - 1
            }
        };
        let shared = self.shared.get_mut(at)?;
        let left = shared.value.clone();
        shared.value = match side {
            Side::Left | Side::LeftAlone => left.clone(),
            Side::Right => own.clone(),
            Side::Both => Expr::Function(call_of("coalesce", [left.clone(), own.clone()])),
        };
        if side != Side::LeftAlone {
            shared.others.push(right);
        }
        Some(binary(left, BinaryOperator::Eq, own))
    }

    /// The one table since `start` that has the column.
    fn owner(&self, name: &Ident, start: usize) -> Option<usize> {
        if self.parts.len() == start + 1 {
            return Some(start);
        }
        let mut found = None;
        for (index, part) in self.parts.iter().enumerate().skip(start) {
            let has = part.columns.as_ref()?.contains(&folded(name));
            if has && found.replace(index).is_some() {
                return None;
            }
        }
        found
    }

    /// The column `name`, under its name where it is of no table alone.
    fn item(&self, name: Ident) -> SelectItem {
        let mut shared = self.shared.iter();
        let expr = Expr::Identifier(name.clone());
        match shared.find(|it| folded(&it.name) == folded(&name)) {
            Some(it) if matches!(it.value, Expr::Function(_)) => {
                SelectItem::ExprWithAlias { expr, alias: name }
            }
            _ => SelectItem::UnnamedExpr(expr),
        }
    }

    /// All columns, each shared one once, where the first table has it.
    fn all(&self) -> impl Iterator<Item = SelectItem> {
        self.parts.iter().enumerate().map(|(index, part)| {
            let once = self.shared.iter().filter(|it| it.others.contains(&index));
            let once: Vec<ObjectName> = once
                .map(|it| ObjectName::from(vec![it.name.clone()]))
                .collect();
            let own = |it: &Shared| {
                Expr::CompoundIdentifier(vec![part.name.clone(), it.name.clone()]) == it.value
            };
            let merged = self
                .shared
                .iter()
                .filter(|it| it.first == index && !own(it));
            let merged = merged.map(|it| {
                Box::new(ReplaceSelectElement {
                    expr: it.value.clone(),
                    column_name: it.name.clone(),
                    as_keyword: true,
                })
            });
            let items: Vec<Box<ReplaceSelectElement>> = merged.collect();
            let options = WildcardAdditionalOptions {
                opt_exclude: (!once.is_empty()).then_some(ExcludeSelectItem::Multiple(once)),
                opt_replace: (!items.is_empty()).then_some(ReplaceSelectItem { items }),
                ..WildcardAdditionalOptions::default()
            };
            let name = ObjectName::from(vec![part.name.clone()]);
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            )
        })
    }
}

/// The side of a join that has a row for each of its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    /// The left one, whose columns are all there are.
    LeftAlone,
    Right,
    /// Either of them.
    Both,
}

impl Side {
    fn of(operator: &JoinOperator) -> Option<Side> {
        use JoinOperator::{
            Anti, CrossJoin, FullOuter, Inner, Join, Left, LeftAnti, LeftOuter, LeftSemi, Right,
            RightOuter, Semi,
        };
        Some(match operator {
            Join(_) | Inner(_) | CrossJoin(_) | Left(_) | LeftOuter(_) => Side::Left,
            Semi(_) | LeftSemi(_) | Anti(_) | LeftAnti(_) => Side::LeftAlone,
            Right(_) | RightOuter(_) => Side::Right,
            FullOuter(_) => Side::Both,
            _ => return None,
        })
    }
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

fn is_by_name(join: &Join) -> bool {
    let constraint = constraint_of(&mut join.join_operator.clone()).cloned();
    matches!(
        constraint,
        Some(JoinConstraint::Using(_) | JoinConstraint::Natural)
    )
}

/// Gives `select` its new tables and what they share.
fn merge(select: &mut Select, from: Vec<TableWithJoins>, joined: &Joined) {
    let shared: Vec<&Shared> = joined.shared.iter().collect();
    let items = std::mem::take(&mut select.projection).into_iter();
    let items = items.flat_map(|item| match item {
        SelectItem::Wildcard(_) => joined.all().collect(),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => vec![joined.item(name)],
        item => vec![item],
    });
    select.projection = items.collect();
    select.from = Vec::new();
    replace(select, &shared);
    select.from = from;
}

/// Puts what tables share in the place of its names, but for those in subqueries.
fn replace(of: &mut impl VisitMut, shared: &[&Shared]) {
    let mut replaced = Replaced { depth: 0, shared };
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = of.visit(&mut replaced);
}

struct Replaced<'s> {
    depth: usize,
    shared: &'s [&'s Shared],
}

impl VisitorMut for Replaced<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let (0, Expr::Identifier(name)) = (self.depth, &*expr) {
            let mut shared = self.shared.iter();
            if let Some(shared) = shared.find(|it| folded(&it.name) == folded(name)) {
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

fn columns_named(alias: &TableAlias) -> Option<Vec<String>> {
    let names = alias.columns.iter().map(|column| folded(&column.name));
    (!alias.columns.is_empty()).then(|| names.collect())
}

/// The columns that a query gives, where each has a name.
fn columns_given(body: &SetExpr) -> Option<Vec<String>> {
    match body {
        SetExpr::Select(select) => select.projection.iter().map(name_of).collect(),
        SetExpr::Query(query) => columns_given(&query.body),
        SetExpr::SetOperation { left, .. } => columns_given(left),
        _ => None,
    }
}

fn single(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

/// The name as it is compared.
fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::BinaryOp { left, op, right }
}
