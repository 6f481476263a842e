//! `PIVOT` becomes groups with an aggregate for each of its values.
//!
//! ```text
//! FROM t PIVOT (sum(x) FOR k IN ('a', 'b' AS c)), where t has the columns d, k and x
//!   ─▶ FROM (SELECT d, sum(x) FILTER (WHERE k = 'a') AS a, sum(x) FILTER (WHERE k = 'b') AS c
//!            FROM t GROUP BY d)
//! ```
//! Rows are grouped by the columns that it does not read.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, ExprWithAlias, Function, GroupByExpr, Ident, PivotValueSource, Query,
    SelectItem, SetExpr, Spanned, TableFactor, TableWithJoins, UnaryOperator, Value, Visit,
    VisitMut, Visitor, VisitorMut,
};
use datafusion_sql::sqlparser::dialect::GenericDialect;
use datafusion_sql::sqlparser::parser::Parser;
use tersecades_columnar::error::{Error, Result};

use super::super::check::placed;
use super::super::folded;
use super::joined::binary;
use super::letter_case::column_of;
use super::scope::Scope;
use crate::catalog::Catalog;
use crate::function::FUNCTIONS;
use crate::lower::rows::free_name;

/// Writes each `PIVOT` of `query` as a subquery with groups.
///
/// # Errors
/// `Unsupported` for values that are not written out, or tables whose columns are not known.
pub(crate) fn expand(query: &mut Query, catalog: &Catalog) -> Result<()> {
    let mut pivots = Pivots(Scope::new(catalog));
    match query.visit(&mut pivots) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Pivots<'c>(Scope<'c>);

impl VisitorMut for Pivots<'_> {
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

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match self.grouped(factor) {
            Ok(Some(grouped)) => *factor = grouped,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl Pivots<'_> {
    /// The groups that stand for `factor`, if it is a `PIVOT`.
    fn grouped(&self, factor: &TableFactor) -> Result<Option<TableFactor>> {
        let TableFactor::Pivot {
            table,
            aggregate_functions: aggregates,
            value_column: keys,
            value_source: source,
            default_on_null,
            alias,
        } = factor
        else {
            return Ok(None);
        };
        if let Some(default) = default_on_null {
            return Err(refused("DEFAULT ON NULL", default, "write coalesce(a, 0)"));
        }
        let key = key_of(keys)?;
        let values = values_of(source, keys)?;
        let columns = self.0.columns(table).ok_or_else(|| {
            let hint = "name its columns: FROM (SELECT a, b, c FROM t) PIVOT (...)";
            let missing = self.0.missing(table);
            missing.unwrap_or_else(|| {
                refused("PIVOT of a table whose columns are not known", key, hint)
            })
        })?;
        let functions = aggregates.iter().map(aggregate_of);
        let functions: Vec<&Function> = functions.collect::<Result<_>>()?;
        let read = read_by(aggregates, key, &columns);
        let rest: Vec<&String> = columns.iter().filter(|it| !read.contains(*it)).collect();
        let mut items = Vec::with_capacity(rest.len() + values.len() * functions.len());
        for value in values {
            for (function, aggregate) in functions.iter().zip(aggregates) {
                let several = aggregates.len() > 1;
                let wanted = name_of(value, aggregate, several);
                items.push((of_rows(function, key, &value.expr), wanted));
            }
        }
        let subquery = query_of((**table).clone(), &rest, items)?;
        Ok(Some(TableFactor::Derived {
            lateral: false,
            subquery,
            alias: alias.clone(),
            sample: None,
        }))
    }
}

fn refused(what: &str, of: &impl Spanned, hint: &str) -> Error {
    Error::unsupported(format!("{what} is not supported{}", placed(of))).hint(hint)
}

/// The column whose values become columns.
fn key_of(keys: &[Expr]) -> Result<&Expr> {
    match keys {
        [key @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))] => Ok(key),
        [other] => {
            let hint = "compute it in a subquery: FROM (SELECT a + 1 AS k, ...) PIVOT (...)";
            Err(refused("PIVOT for an expression", other, hint))
        }
        _ => {
            let message = "PIVOT for several columns is not supported";
            let hint = "make one of them in a subquery: FROM (SELECT a || '_' || b AS k, ...)";
            Err(Error::unsupported(message).hint(hint))
        }
    }
}

/// The values that become columns, which are constants, each once.
fn values_of<'s>(source: &'s PivotValueSource, keys: &[Expr]) -> Result<&'s [ExprWithAlias]> {
    let hint = "write out the values: IN ('a', 'b' AS c)";
    let PivotValueSource::List(values) = source else {
        let place = keys.first().map(placed).unwrap_or_default();
        let message = format!("PIVOT for values that are not written out is not supported{place}");
        return Err(Error::unsupported(message).hint(hint));
    };
    for (index, value) in values.iter().enumerate() {
        if text_of(&value.expr).is_none() {
            return Err(refused("PIVOT for what is no constant", &value.expr, hint));
        }
        if values.iter().take(index).any(|known| known == value) {
            let place = placed(&value.expr);
            let message = format!(
                "`{}` is twice among the values of a PIVOT{place}",
                value.expr
            );
            return Err(Error::invalid(message).hint("write it once, or each under its own name"));
        }
    }
    Ok(values)
}

/// The constant `value` as text; `None` where it is none.
fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            number @ Value::Number(..) => Some(number.to_string()),
            Value::Boolean(truth) => Some(truth.to_string()),
            Value::Null => Some("NULL".to_owned()),
            _ => None,
        },
        Expr::TypedString(typed) => typed.value.value.clone().into_string(),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match expr.as_ref() {
            Expr::Value(number) if matches!(number.value, Value::Number(..)) => {
                Some(format!("-{number}"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The call of an aggregate.
fn aggregate_of(aggregate: &ExprWithAlias) -> Result<&Function> {
    match &aggregate.expr {
        Expr::Function(function)
            if function.over.is_none()
                && FUNCTIONS
                    .aggregates
                    .contains_key(&function.name.to_string().to_lowercase()) =>
        {
            Ok(function)
        }
        other => {
            let hint = "PIVOT takes aggregates: sum(x), count(*), string_agg(s)";
            Err(refused(&format!("PIVOT of `{other}`"), other, hint))
        }
    }
}

/// Those of `columns` that the aggregates and the key read.
fn read_by(aggregates: &[ExprWithAlias], key: &Expr, columns: &[String]) -> Vec<String> {
    let mut names = Names(Vec::new());
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = key.visit(&mut names);
    for aggregate in aggregates {
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) = aggregate.expr.visit(&mut names);
    }
    let names = names.0.iter();
    let meant = |name: &Ident| column_of(name, columns.iter().map(String::as_str));
    names.map(meant).collect()
}

/// Names of columns.
struct Names(Vec<Ident>);

impl Visitor for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.0.push(name.clone()),
            Expr::CompoundIdentifier(names) => self.0.extend(names.last().cloned()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// What the column of `value` is called: by both where `aggregate` is one of several or has a name.
fn name_of(value: &ExprWithAlias, aggregate: &ExprWithAlias, is_of_several: bool) -> String {
    let own = match &value.alias {
        Some(alias) => folded(alias),
        None => text_of(&value.expr).unwrap_or_default(),
    };
    match &aggregate.alias {
        Some(alias) => format!("{own}_{}", folded(alias)),
        None if is_of_several => format!("{own}_{}", aggregate.expr),
        None => own,
    }
}

/// The aggregate of the rows whose `key` is `value`.
fn of_rows(function: &Function, key: &Expr, value: &Expr) -> Expr {
    let is_it = match value {
        Expr::Value(null) if null.value == Value::Null => Expr::IsNull(Box::new(key.clone())),
        value => binary(key.clone(), BinaryOperator::Eq, value.clone()),
    };
    let condition = match &function.filter {
        Some(filter) => {
            let filter = Expr::Nested(filter.clone());
            binary(filter, BinaryOperator::And, is_it)
        }
        None => is_it,
    };
    Expr::Function(Function {
        filter: Some(Box::new(condition)),
        ..function.clone()
    })
}

/// The query that groups `table` by `keys`, with `items` and what they are to be called.
fn query_of(
    table: TableFactor,
    keys: &[&String],
    items: Vec<(Expr, String)>,
) -> Result<Box<Query>> {
    let failed = || Error::internal("the query of a PIVOT could not be written");
    let parser = Parser::new(&GenericDialect {}).try_with_sql("SELECT 1");
    let parsed = parser.and_then(|mut parser| parser.parse_query());
    let mut query = parsed.map_err(|_| failed())?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(failed());
    };
    let quoted = |name: &str| Ident::with_quote('"', name);
    let keys: Vec<Ident> = keys.iter().map(|key| quoted(key)).collect();
    let columns = keys.iter().cloned().map(Expr::Identifier);
    select.group_by = GroupByExpr::Expressions(columns.clone().collect(), Vec::new());
    select.projection = columns.map(SelectItem::UnnamedExpr).collect();
    let mut taken: Vec<String> = keys.into_iter().map(|key| key.value).collect();
    for (expr, wanted) in items {
        let name = free_name(&wanted, |name| taken.iter().any(|known| known == name));
        let alias = quoted(&name);
        taken.push(name);
        select
            .projection
            .push(SelectItem::ExprWithAlias { expr, alias });
    }
    select.from = vec![TableWithJoins {
        relation: table,
        joins: Vec::new(),
    }];
    Ok(query)
}
