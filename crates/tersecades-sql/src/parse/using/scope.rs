//! Which columns the tables of a query have, as far as the query and the catalog say.

use datafusion_sql::sqlparser::ast::{
    Cte, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
};

use tersecades_columnar::error::Error;

use super::super::column_name::name_of;
use super::super::{folded, single};
use super::rename::starred;
use crate::catalog::{Catalog, IN_ORDER};
use crate::function::series::series_named;

/// The tables that a query sees.
#[derive(Clone)]
pub(super) struct Scope<'c> {
    catalog: &'c Catalog,
    /// Whether columns without a name are left out; else it is not known which ones a query has.
    named_alone: bool,
    /// What `WITH` names in the queries around, from the outermost to the innermost.
    around: Vec<With>,
}

/// The queries of a `WITH`, which hide tables, and their columns where they are known.
#[derive(Default, Clone)]
struct With {
    queries: Vec<(String, Option<Vec<String>>)>,
    /// How many of them are seen: each by those behind it, and all by the query itself.
    seen: usize,
}

impl<'c> Scope<'c> {
    pub(super) fn new(catalog: &'c Catalog) -> Self {
        Scope {
            catalog,
            named_alone: false,
            around: Vec::new(),
        }
    }

    /// The same for those who ask for names alone.
    pub(super) fn of_names(catalog: &'c Catalog) -> Self {
        Scope {
            named_alone: true,
            ..Scope::new(catalog)
        }
    }

    /// Enters `query`, of whose `WITH` all is seen until it is visited.
    pub(super) fn enter(&mut self, query: &Query) {
        self.begin();
        let with = query.with.iter();
        with.flat_map(|with| &with.cte_tables)
            .for_each(|cte| self.learn(cte));
    }

    /// Enters a query of whose `WITH` nothing is seen until it is learnt.
    pub(super) fn begin(&mut self) {
        self.around.push(With::default());
    }

    /// Sees the query `cte` of the `WITH` of the query that was entered last.
    pub(super) fn learn(&mut self, cte: &Cte) {
        let Cte { alias, query, .. } = cte;
        let columns = columns_named(alias).or_else(|| self.columns_given(query));
        if let Some(with) = self.around.last_mut() {
            with.queries.push((folded(&alias.name), columns));
            with.seen += 1;
        }
    }

    /// Begins to visit what the query that was entered last consists of, its `WITH` first.
    pub(super) fn visit(&mut self) {
        if let Some(with) = self.around.last_mut() {
            with.seen = 0;
        }
    }

    /// Leaves the query that was entered last: where it is one of a `WITH`, those behind see it.
    pub(super) fn leave(&mut self) {
        self.around.pop();
        if let Some(with) = self.around.last_mut() {
            with.seen = with.queries.len().min(with.seen + 1);
        }
    }

    /// The columns of a table, where they are known.
    pub(super) fn columns(&self, factor: &TableFactor) -> Option<Vec<String>> {
        match factor {
            TableFactor::Table {
                alias, name, args, ..
            } => {
                let named = alias.as_ref().and_then(columns_named);
                named.or_else(|| match (args, alias) {
                    (None, _) => self.columns_of(name),
                    (Some(_), given) => {
                        let series = series_named(&single(name)?.value)?;
                        let given = given.as_ref().map(|alias| folded(&alias.name));
                        Some(vec![given.unwrap_or_else(|| series.to_owned())])
                    }
                })
            }
            TableFactor::Derived {
                alias, subquery, ..
            } => {
                let named = alias.as_ref().and_then(columns_named);
                named.or_else(|| self.columns_given(subquery))
            }
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => self.columns_joined(table_with_joins),
            _ => None,
        }
    }

    /// Why the columns of a table are not known, where there is no such table.
    pub(super) fn missing(&self, factor: &TableFactor) -> Option<Error> {
        let TableFactor::Table {
            name, args: None, ..
        } = factor
        else {
            return None;
        };
        let name = folded(single(name)?);
        let mut named = self.around.iter().flat_map(|with| &with.queries);
        match named.any(|(known, _)| *known == name) {
            true => None,
            false => self.catalog.find(&name).err(),
        }
    }

    fn columns_joined(&self, tables: &TableWithJoins) -> Option<Vec<String>> {
        let joined = tables.joins.iter().map(|join| &join.relation);
        let tables = std::iter::once(&tables.relation).chain(joined);
        let columns: Option<Vec<_>> = tables.map(|table| self.columns(table)).collect();
        Some(columns?.concat())
    }

    fn columns_of(&self, name: &ObjectName) -> Option<Vec<String>> {
        let name = match name.0.as_slice() {
            [schema, name] if schema.as_ident()?.value == IN_ORDER => folded(name.as_ident()?),
            _ => folded(single(name)?),
        };
        for with in self.around.iter().rev() {
            let mut seen = with.queries[..with.seen].iter().rev();
            if let Some((_, columns)) = seen.find(|(known, _)| *known == name) {
                return columns.clone();
            }
        }
        let relation = self.catalog.find(&name).ok()?;
        let fields = relation.schema.fields().iter();
        Some(fields.map(|field| field.name().clone()).collect())
    }

    /// The columns that a query gives, where each has a name.
    fn columns_given(&self, query: &Query) -> Option<Vec<String>> {
        if query.with.is_none() {
            return self.columns_of_body(&query.body);
        }
        let mut inner = self.clone();
        inner.enter(query);
        inner.columns_of_body(&query.body)
    }

    /// The columns that the body of a query gives, where each has a name.
    pub(super) fn columns_of_body(&self, body: &SetExpr) -> Option<Vec<String>> {
        match body {
            SetExpr::Select(select) => {
                let items = select.projection.iter();
                let columns: Option<Vec<_>> =
                    items.map(|item| self.columns_shown(item, select)).collect();
                Some(columns?.concat())
            }
            SetExpr::Query(query) => self.columns_given(query),
            SetExpr::SetOperation { left, .. } => self.columns_of_body(left),
            SetExpr::Values(values) => {
                let numbers = 1..=values.rows.first()?.len();
                Some(numbers.map(|number| format!("column{number}")).collect())
            }
            _ => None,
        }
    }

    fn columns_shown(&self, item: &SelectItem, select: &Select) -> Option<Vec<String>> {
        let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item
        else {
            let name = name_of(item).map(|name| vec![name]);
            return name.or_else(|| self.named_alone.then(Vec::new));
        };
        let columns = starred(self, item, options, select).ok()?;
        Some(columns.into_iter().map(|column| column.name).collect())
    }

    /// All names that `query` may say without those of the queries around, where they are known.
    pub(super) fn names_in(&self, query: &Query) -> Option<Vec<String>> {
        let (None, SetExpr::Select(select)) = (&query.with, query.body.as_ref()) else {
            return None;
        };
        let tables = select.from.iter();
        let columns: Option<Vec<_>> = tables.map(|tables| self.columns_joined(tables)).collect();
        let mut names = columns?.concat();
        names.extend(select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { .. } => name_of(item),
            _ => None,
        }));
        Some(names)
    }
}

fn columns_named(alias: &TableAlias) -> Option<Vec<String>> {
    let names = alias.columns.iter().map(|column| folded(&column.name));
    (!alias.columns.is_empty()).then(|| names.collect())
}
