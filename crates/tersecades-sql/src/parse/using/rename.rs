//! `* RENAME (a AS b)` becomes the columns themselves, as does a `* REPLACE` beside shared columns.
//!
//! ```text
//! SELECT * EXCLUDE (c) REPLACE (d + 1 AS d) RENAME (a AS b) FROM t
//!   ─▶ SELECT a AS b, d + 1 AS d FROM t
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, JoinConstraint, ObjectName, Query, RenameSelectItem, Select,
    SelectItem, SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;

use super::super::check::placed;
use super::super::{folded, single};
use super::joined::{Side, common};
use super::letter_case::column_of;
use super::scope::Scope;
use super::{constraint_of, joins_by_name};
use crate::catalog::Catalog;

/// Writes each `*` with a `RENAME`, or a `REPLACE` beside shared columns, as its columns.
///
/// # Errors
/// `InvalidArgument` for columns that are not there, `Unsupported` where it is not known which are.
pub(crate) fn expand(query: &mut Query, catalog: &Catalog) -> Result<()> {
    let mut stars = Stars(Scope::new(catalog));
    match query.visit(&mut stars) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Stars<'c>(Scope<'c>);

impl VisitorMut for Stars<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.0.enter(query);
        self.0.visit();
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        self.0.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let mut items = Vec::with_capacity(select.projection.len());
        let is_shared = select.from.iter().any(joins_by_name);
        for item in &select.projection {
            let Some(options) = changing(item, is_shared) else {
                items.push(item.clone());
                continue;
            };
            match starred(&self.0, item, options, select) {
                Ok(columns) => items.extend(columns.into_iter().map(Column::item)),
                Err(error) if options.opt_rename.is_some() => return ControlFlow::Break(error),
                Err(_) => items.push(item.clone()),
            }
        }
        select.projection = items;
        ControlFlow::Continue(())
    }
}

/// The options of a `*` that renames columns, or changes some of those that joins share.
fn changing(item: &SelectItem, is_shared: bool) -> Option<&WildcardAdditionalOptions> {
    let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
        return None;
    };
    let of_all = matches!(item, SelectItem::Wildcard(_));
    let is_changed = options.opt_replace.is_some() && is_shared && of_all;
    (options.opt_rename.is_some() || is_changed).then_some(options)
}

/// A column that `*` stands for.
pub(super) struct Column {
    /// The table that has it, where that has a name.
    table: Option<Vec<Ident>>,
    /// Its name in the table.
    own: String,
    /// What it is called.
    pub(super) name: String,
    /// What it is.
    value: Option<Expr>,
}

impl Column {
    fn item(self) -> SelectItem {
        let quoted = |name: String| Ident::with_quote('"', name);
        let is_own = self.own == self.name && self.value.is_none();
        let value = self.value.unwrap_or_else(|| match self.table {
            None => Expr::Identifier(quoted(self.own)),
            Some(mut path) => {
                path.push(quoted(self.own));
                Expr::CompoundIdentifier(path)
            }
        });
        match is_own {
            true => SelectItem::UnnamedExpr(value),
            false => SelectItem::ExprWithAlias {
                expr: value,
                alias: quoted(self.name),
            },
        }
    }
}

/// The columns that `item`, a `*` with these options, stands for in `select`.
///
/// # Errors
/// `InvalidArgument` for columns that are not there, `Unsupported` where it is not known which are.
pub(super) fn starred(
    scope: &Scope<'_>,
    item: &SelectItem,
    options: &WildcardAdditionalOptions,
    select: &Select,
) -> Result<Vec<Column>> {
    let found = match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            single(name).and_then(|name| of_table(scope, &folded(name), select))
        }
        _ => all_columns(scope, select),
    };
    let found = found.filter(|_| options.opt_ilike.is_none());
    let mut columns = found.ok_or_else(|| {
        let message = format!("RENAME of columns that are not known{}", placed(item));
        Error::unsupported(message).hint("name the columns: SELECT a AS b, c")
    })?;
    let known: Vec<String> = columns.iter().map(|column| column.own.clone()).collect();
    let meant = |name: &Ident| column_of(name, known.iter().map(String::as_str));
    let renamed = match &options.opt_rename {
        Some(RenameSelectItem::Single(one)) => std::slice::from_ref(one),
        Some(RenameSelectItem::Multiple(all)) => all.as_slice(),
        None => &[],
    };
    for one in renamed {
        change(&mut columns, (&meant(&one.ident), item), |column| {
            column.name = folded(&one.alias);
        })?;
    }
    for element in options.opt_replace.iter().flat_map(|it| &it.items) {
        let value = &element.expr;
        change(
            &mut columns,
            (&meant(&element.column_name), item),
            |column| {
                column.value = Some(value.clone());
            },
        )?;
    }
    for name in excluded(options) {
        let name = single(name).map_or_else(|| name.to_string(), meant);
        change(&mut columns, (&name, item), |column| column.own.clear())?;
    }
    columns.retain(|column| !column.own.is_empty());
    Ok(columns)
}

/// Changes the columns with this name of their own, which must be there as they were.
fn change(
    columns: &mut [Column],
    (name, item): (&str, &SelectItem),
    mut of: impl FnMut(&mut Column),
) -> Result<()> {
    let known: Vec<String> = columns.iter().map(|column| column.own.clone()).collect();
    let mut is_there = false;
    for column in columns.iter_mut().filter(|column| column.own == name) {
        if column.value.is_some() || column.name != column.own {
            let message = format!("`*` changes the column `{name}` twice{}", placed(item));
            return Err(Error::invalid(message).hint(
                "name it once in EXCLUDE, REPLACE or RENAME, or write the column by itself",
            ));
        }
        of(column);
        is_there = true;
    }
    if is_there {
        return Ok(());
    }
    let error = Error::invalid(format!("`*` has no column `{name}`{}", placed(item)));
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(match nearest(name, &known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("its columns are: {}", known.join(", "))),
    })
}

/// The names that `EXCLUDE` leaves out.
fn excluded(options: &WildcardAdditionalOptions) -> &[ObjectName] {
    match &options.opt_exclude {
        None => &[],
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names,
    }
}

/// All columns of the tables of `select`, those that several have by the names of their tables.
fn all_columns(scope: &Scope<'_>, select: &Select) -> Option<Vec<Column>> {
    let mut columns = Vec::new();
    for tables in &select.from {
        columns.extend(joined_columns(scope, tables)?);
    }
    let names: Vec<String> = columns.iter().map(|column| column.own.clone()).collect();
    for column in &mut columns {
        let is_one = names.iter().filter(|name| **name == column.own).count() == 1;
        match is_one {
            true => column.table = None,
            false => column.table.as_ref().map(|_| ())?,
        }
    }
    Some(columns)
}

fn joined_columns(scope: &Scope<'_>, tables: &TableWithJoins) -> Option<Vec<Column>> {
    let mut columns = table_columns(scope, &tables.relation)?;
    for join in &tables.joins {
        if Side::of(&join.join_operator)? == Side::LeftAlone {
            continue;
        }
        let right = table_columns(scope, &join.relation)?;
        let own = |of: &[Column]| of.iter().map(|it| it.own.clone()).collect::<Vec<_>>();
        let names = own(&right);
        let shared: Vec<Ident> = match constraint_of(&mut join.join_operator.clone()) {
            Some(JoinConstraint::Using(names)) => {
                let names = names.iter().map(|name| single(name).cloned());
                names.collect::<Option<_>>()?
            }
            Some(JoinConstraint::Natural) => common(&own(&columns), &names),
            _ => Vec::new(),
        };
        let shared = shared.iter();
        let shared = shared.map(|name| column_of(name, names.iter().map(String::as_str)));
        let shared: Vec<String> = shared.collect();
        columns.extend(right.into_iter().filter(|it| !shared.contains(&it.own)));
    }
    Some(columns)
}

fn table_columns(scope: &Scope<'_>, factor: &TableFactor) -> Option<Vec<Column>> {
    if let TableFactor::NestedJoin {
        table_with_joins,
        alias: None,
    } = factor
    {
        return joined_columns(scope, table_with_joins);
    }
    let table = table_name(factor);
    let columns = scope.columns(factor)?.into_iter().map(|name| Column {
        table: table.clone(),
        own: name.clone(),
        name,
        value: None,
    });
    Some(columns.collect())
}

/// What columns of the table are told by, where it has a name.
pub(super) fn table_name(factor: &TableFactor) -> Option<Vec<Ident>> {
    let quoted = |name: &Ident| Ident::with_quote('"', folded(name));
    match factor {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(vec![quoted(&alias.name)]),
        TableFactor::Table { name, .. } => {
            let parts = name.0.iter();
            parts.map(|part| part.as_ident().map(quoted)).collect()
        }
        _ => None,
    }
}

/// The columns of the table of this name.
fn of_table(scope: &Scope<'_>, name: &str, select: &Select) -> Option<Vec<Column>> {
    let tables = select.from.iter().flat_map(|tables| {
        let joined = tables.joins.iter().map(|join| &join.relation);
        std::iter::once(&tables.relation).chain(joined)
    });
    let mut tables = tables.filter(|factor| {
        let own = table_name(factor);
        own.is_some_and(|own| own.last().is_some_and(|own| own.value == name))
    });
    table_columns(scope, tables.next()?)
}
