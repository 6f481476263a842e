//! Names without double quotes are in lower case; where no column is called so, they are the one
//! column that is but for the case of its letters.
//!
//! ```text
//! SELECT UserID FROM t WHERE t.price > 1  ─▶  SELECT "UserID" FROM t WHERE t."Price" > 1
//! ```
//! Names are those of the innermost query that has such a column; in conditions, which may read
//! those around, a column in lower case comes first wherever it is. What several columns may be, or
//! those of an unknown table, stays as it is; so do names that a query gives to its results, where
//! it may read them.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderBy, Query,
    RenameSelectItem, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
    TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use super::super::column_name::name_of;
use super::super::folded;
use super::constraint_of;
use super::joined::{Part, Side};
use super::rename::table_name;
use super::scope::Scope;
use crate::catalog::Catalog;
use crate::function::FUNCTIONS;

/// Writes names of columns in `query` in the case of their tables.
pub(crate) fn as_in_tables(query: &mut Query, catalog: &Catalog) {
    let mut names = Names {
        scope: Scope::of_names(catalog),
        around: Vec::new(),
        shown: None,
        in_condition: false,
        depth: 0,
    };
    names.query(query);
}

/// The column among `columns` that `name` means, which is called otherwise where there is none.
pub(crate) fn column_of<'c>(name: &Ident, columns: impl Iterator<Item = &'c str>) -> String {
    let columns = Part {
        name: Vec::new(),
        columns: Some(columns.map(str::to_owned).collect()),
    };
    let mut name = name.clone();
    spell(&mut name, None, std::iter::once(&[columns][..]));
    folded(&name)
}

struct Names<'c> {
    scope: Scope<'c>,
    /// What the queries around read, from the outermost to the innermost.
    around: Vec<Vec<Part>>,
    /// What the innermost of them shows, where names may be of that.
    shown: Option<Shown>,
    /// Whether names are those of a condition.
    in_condition: bool,
    /// How many queries deep in an expression a visit is: names in them have been looked at.
    depth: usize,
}

/// The columns of a result, among expressions that may read them.
struct Shown {
    columns: [Part; 1],
    /// Whether what stands in an expression reads tables alone.
    is_of_tables: fn(&Expr) -> bool,
    /// How many of such expressions are around.
    depth: usize,
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.depth == 0 {
            self.query(query);
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        if let Some(shown) = &mut self.shown {
            shown.depth += usize::from((shown.is_of_tables)(expr));
        }
        match expr {
            Expr::Identifier(name) => self.spell(name, None),
            Expr::CompoundIdentifier(names) => {
                if let [.., table, name] = names.as_mut_slice() {
                    self.spell(name, Some(table));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let (0, Some(shown)) = (self.depth, &mut self.shown) {
            shown.depth -= usize::from((shown.is_of_tables)(expr));
        }
        ControlFlow::Continue(())
    }
}

impl Names<'_> {
    fn spell(&self, name: &mut Ident, table: Option<&Ident>) {
        if !self.in_condition {
            let shown = self.nearest_first().count() - self.around.len();
            spell(name, table, self.nearest_first().take(shown + 1));
        }
        spell(name, table, self.nearest_first());
    }

    /// What a name may be of, from the innermost to the outermost.
    fn nearest_first(&self) -> impl Iterator<Item = &[Part]> {
        let shown = self.shown.iter().filter(|shown| shown.depth == 0);
        let shown = shown.map(|shown| shown.columns.as_slice());
        shown.chain(self.around.iter().rev().map(Vec::as_slice))
    }

    /// Spells the names in `of`, which are those of columns around.
    fn spell_all(&mut self, of: &mut impl VisitMut) {
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) = of.visit(self);
    }

    /// As [`Names::spell_all`], where names of `columns` come first in what is not of tables alone.
    fn spell_beside(
        &mut self,
        columns: Option<Vec<String>>,
        is_of_tables: fn(&Expr) -> bool,
        of: &mut impl VisitMut,
    ) {
        let name = Vec::new();
        self.shown = Some(Shown {
            columns: [Part { name, columns }],
            is_of_tables,
            depth: 0,
        });
        self.spell_all(of);
        self.shown = None;
    }

    fn query(&mut self, query: &mut Query) {
        let outer = (self.shown.take(), self.in_condition);
        self.in_condition = false;
        self.scope.begin();
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.query(&mut cte.query);
            self.scope.learn(cte);
        }
        self.body(&mut query.body, &mut query.order_by);
        self.scope.leave();
        (self.shown, self.in_condition) = outer;
    }

    fn body(&mut self, body: &mut SetExpr, order: &mut Option<OrderBy>) {
        match body {
            SetExpr::Select(select) => return self.select(select, order),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, &mut None);
                self.body(right, &mut None);
            }
            _ => self.spell_all(body),
        }
        if order.is_some() {
            self.spell_beside(self.scope.columns_of_body(body), reads_rows, order);
        }
    }

    fn select(&mut self, select: &mut Select, order: &mut Option<OrderBy>) {
        self.around.push(Vec::new());
        select
            .from
            .iter_mut()
            .for_each(|tables| self.tables(tables));
        for item in &mut select.projection {
            self.star(item);
            self.spell_all(item);
        }
        self.spell_all(&mut select.named_window);
        let shown: Vec<String> = select.projection.iter().filter_map(name_of).collect();
        let shown = Some(shown);
        self.spell_beside(shown.clone(), is_no_key, &mut select.distinct);
        self.spell_beside(shown.clone(), is_no_key, &mut select.group_by);
        self.spell_beside(shown.clone(), reads_rows, order);
        self.in_condition = true;
        self.spell_all(&mut select.selection);
        self.spell_beside(shown.clone(), reads_rows, &mut select.having);
        self.spell_beside(shown, reads_rows, &mut select.qualify);
        self.in_condition = false;
        self.around.pop();
    }

    /// Adds the tables to those that are read; conditions of joins know the tables before them.
    fn tables(&mut self, tables: &mut TableWithJoins) {
        self.table(&mut tables.relation);
        for join in &mut tables.joins {
            let before = self.around.last().map_or(0, Vec::len);
            self.table(&mut join.relation);
            self.condition(&mut join.join_operator);
            if Side::of(&join.join_operator) == Some(Side::LeftAlone)
                && let Some(parts) = self.around.last_mut()
            {
                parts.truncate(before);
            }
        }
    }

    fn table(&mut self, factor: &mut TableFactor) {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => return self.tables(table_with_joins),
            TableFactor::Derived {
                lateral, subquery, ..
            } => {
                // Tables beside a subquery are those of a `LATERAL` one alone.
                let beside = (!*lateral).then(|| self.around.pop()).flatten();
                self.query(subquery);
                self.around.extend(beside);
            }
            _ => {}
        }
        let name = table_name(factor).unwrap_or_default();
        let columns = self.scope.columns(factor);
        if let Some(parts) = self.around.last_mut() {
            parts.push(Part { name, columns });
        }
    }

    fn condition(&mut self, operator: &mut JoinOperator) {
        if let Some(JoinConstraint::Using(names)) = constraint_of(operator) {
            names.iter_mut().for_each(|name| self.own(name, None));
        }
        self.in_condition = true;
        self.spell_all(operator);
        self.in_condition = false;
    }

    /// Spells a name that is of no query around.
    fn own(&self, name: &mut ObjectName, table: Option<&Ident>) {
        if let [part] = name.0.as_mut_slice()
            && let Some(own) = part.as_ident()
        {
            let mut own = own.clone();
            self.own_name(&mut own, table);
            *name = ObjectName::from(vec![own]);
        }
    }

    fn own_name(&self, name: &mut Ident, table: Option<&Ident>) {
        spell(name, table, self.innermost());
        // The planner compares it as it stands.
        name.value = folded(name);
    }

    fn innermost(&self) -> impl Iterator<Item = &[Part]> {
        self.around.last().into_iter().map(Vec::as_slice)
    }

    /// Spells the names of the columns that `item` leaves out or changes, if it is a `*`.
    fn star(&self, item: &mut SelectItem) {
        let (table, options) = match item {
            SelectItem::Wildcard(options) => (None, options),
            SelectItem::QualifiedWildcard(kind, options) => match kind {
                SelectItemQualifiedWildcardKind::ObjectName(table) => {
                    (table.0.last().and_then(|part| part.as_ident()), options)
                }
                SelectItemQualifiedWildcardKind::Expr(_) => return,
            },
            _ => return,
        };
        self.options(options, table);
    }

    fn options(&self, options: &mut WildcardAdditionalOptions, table: Option<&Ident>) {
        if let Some(except) = options.opt_except.take() {
            let names = std::iter::once(except.first_element).chain(except.additional_elements);
            let names = names.map(|name| ObjectName::from(vec![name]));
            let excluded = match options.opt_exclude.take() {
                Some(ExcludeSelectItem::Single(name)) => vec![name],
                Some(ExcludeSelectItem::Multiple(excluded)) => excluded,
                None => Vec::new(),
            };
            let names = excluded.into_iter().chain(names).collect();
            options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
        }
        match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => self.own(name, table),
            Some(ExcludeSelectItem::Multiple(names)) => {
                names.iter_mut().for_each(|name| self.own(name, table));
            }
            None => {}
        }
        let replaced = options.opt_replace.iter_mut().flat_map(|it| &mut it.items);
        for element in replaced {
            self.own_name(&mut element.column_name, table);
        }
        let renamed = match &mut options.opt_rename {
            Some(RenameSelectItem::Single(one)) => std::slice::from_mut(one),
            Some(RenameSelectItem::Multiple(all)) => all.as_mut_slice(),
            None => &mut [],
        };
        for one in renamed {
            self.own_name(&mut one.ident, table);
        }
    }
}

/// Whether `key` is more than columns by which rows are grouped.
fn is_no_key(key: &Expr) -> bool {
    !matches!(
        key,
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Nested(_) | Expr::GroupingSets(_)
    )
}

/// Whether `expr` is a function of many rows.
fn reads_rows(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else {
        return false;
    };
    let name = function.name.to_string().to_lowercase();
    function.over.is_some() || FUNCTIONS.aggregates.contains_key(&name)
}

/// Writes `name`, a column of `table` if it says so, as the column that it means of those in
/// `nearest_first`.
fn spell<'p>(
    name: &mut Ident,
    table: Option<&Ident>,
    nearest_first: impl Iterator<Item = &'p [Part]>,
) {
    if name.quote_style.is_some() {
        return;
    }
    let lower = folded(name);
    let table = table.map(folded);
    let is_meant = |part: &&Part| match &table {
        Some(table) => part.name.last().is_some_and(|own| own.value == *table),
        None => true,
    };
    let mut spellings: Vec<&String> = Vec::new();
    for parts in nearest_first {
        let mut nearer = Vec::new();
        for part in parts.iter().filter(is_meant) {
            // One that is not known may have any columns.
            let Some(columns) = &part.columns else {
                return;
            };
            if columns.contains(&lower) {
                return;
            }
            let alike = columns.iter().filter(|it| it.to_lowercase() == lower);
            nearer.extend(alike);
        }
        if spellings.is_empty() {
            spellings = nearer;
        }
    }
    if let Some((one, others)) = spellings.split_first()
        && others.iter().all(|other| other == one)
    {
        name.value = (*one).clone();
        name.quote_style = Some('"');
    }
}
