//! `(a, b) IN (SELECT x, y ...)`, as a look for such a row.
//!
//! ```text
//! (a, b) IN (SELECT x, y ...)      ─▶  EXISTS (SELECT 1 FROM (SELECT x, y ...) AS r(v, w)
//!                                              WHERE v = a AND w = b)
//! (a, b) NOT IN (SELECT x, y ...)  ─▶  NOT EXISTS (... WHERE (v = a AND w = b) IS NOT FALSE)
//! ```
//! A row is unknown to be in others where nulls decide: no row passes for being in them then, nor
//! for not being in them. [`super::check`] lets such lists stand where unknown counts as false.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, SelectItem, SetExpr, TableAlias, TableAliasColumnDef,
    TableFactor, UnaryOperator, Visit, VisitMut, VisitorMut,
};
use datafusion_sql::sqlparser::dialect::GenericDialect;
use datafusion_sql::sqlparser::parser::Parser;
use tersecades_columnar::error::{Error, Result};

use super::check::{Outermost, placed, refuse, within};
use super::column_name::number_unseen;
use super::using::joined::binary;
use super::with::is_drawn;
use crate::function::FUNCTIONS;

/// Names that no query has, of the rows and their values.
pub(crate) const ROWS: &str = "rows of in";
const VALUE: &str = "value of in";

/// Writes each such list of `query` as a look for a row.
///
/// # Errors
/// `InvalidArgument` for rows of another number of values, `Unsupported` for random ones.
pub(crate) fn look_up(query: &mut Query) -> Result<()> {
    match query.visit(&mut Lists) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Refuses such lists where they would stand for true, false and unknown.
pub(super) fn refuse_within(of: &impl Visit) -> ControlFlow<Error> {
    let refuse_list = |value: &Expr| match list_of(value) {
        Some(((row, _), _)) => {
            let what = "(a, b) IN (SELECT ...) in this place";
            refuse(
                what,
                &row[0],
                "write it as a condition of WHERE, joined by AND",
            )
        }
        None => ControlFlow::Continue(()),
    };
    of.visit(&mut Outermost::new(refuse_list))
}

struct Lists;

impl VisitorMut for Lists {
    type Break = Error;

    fn pre_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<Error> {
        let found = match value {
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => list_of(within(expr)).map(|(list, negated)| (list, !negated)),
            _ => list_of(value),
        };
        let looked = found.map(|((row, rows), negated)| looked_up(row, rows, negated));
        match looked {
            Some(Ok(looked)) => *value = looked,
            Some(Err(error)) => return ControlFlow::Break(error),
            None => {}
        }
        ControlFlow::Continue(())
    }
}

/// The row and the rows of a list, and whether it is `NOT IN`.
fn list_of(value: &Expr) -> Option<((&[Expr], &Query), bool)> {
    match value {
        Expr::InSubquery {
            expr,
            subquery,
            negated,
        } => match within(expr) {
            Expr::Tuple(row) if !row.is_empty() => Some(((row, subquery), *negated)),
            _ => None,
        },
        _ => None,
    }
}

fn looked_up(row: &[Expr], rows: &Query, negated: bool) -> Result<Expr> {
    if let Some(drawn) = row.iter().find(|value| is_drawn(value)) {
        let message = format!("a random value in a row before IN{}", placed(drawn));
        return Err(Error::unsupported(message).hint("draw it in a subquery: FROM (SELECT ...)"));
    }
    for value in row {
        if let ControlFlow::Break(error) = value.visit(&mut Outermost::new(refuse_aggregate)) {
            return Err(error);
        }
    }
    if let Some(width) = width(&rows.body).filter(|width| *width != row.len()) {
        let message = format!(
            "a row of {} values is looked for in rows of {width}",
            row.len()
        );
        let message = format!("{message}{}", placed(&row[0]));
        return Err(Error::invalid(message).hint("write (a, b) IN (SELECT x, y FROM ...)"));
    }
    let name = |at: usize| Ident::with_quote('"', format!("{VALUE} {at}"));
    let pairs = row.iter().enumerate().map(|(at, value)| {
        let there = vec![Ident::with_quote('"', ROWS), name(at)];
        binary(
            Expr::CompoundIdentifier(there),
            BinaryOperator::Eq,
            value.clone(),
        )
    });
    let equal = pairs.reduce(|all, pair| binary(all, BinaryOperator::And, pair));
    let equal = equal.ok_or_else(|| Error::invalid("a row has values"))?;
    let condition = match negated {
        true => Expr::IsNotFalse(Box::new(Expr::Nested(Box::new(equal)))),
        false => equal,
    };
    let columns = (0..row.len()).map(|at| TableAliasColumnDef {
        name: name(at),
        data_type: None,
    });
    let alias = TableAlias {
        explicit: true,
        name: Ident::with_quote('"', ROWS),
        columns: columns.collect(),
        at: None,
    };
    Ok(Expr::Exists {
        subquery: Box::new(template(rows, alias, condition)?),
        negated,
    })
}

/// `SELECT 1` for each of the rows that has the condition.
fn template(rows: &Query, named: TableAlias, condition: Expr) -> Result<Query> {
    let parsed = Parser::new(&GenericDialect {}).try_with_sql("SELECT 1 FROM (SELECT 1)");
    let parsed = parsed.and_then(|mut parser| parser.parse_query());
    let broken = || Error::internal("a template is no query");
    let mut query = parsed.map_err(|_| broken())?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(broken());
    };
    let table = select.from.first_mut().map(|from| &mut from.relation);
    let Some(TableFactor::Derived {
        subquery, alias, ..
    }) = table
    else {
        return Err(broken());
    };
    **subquery = rows.clone();
    number_unseen(&mut subquery.body);
    *alias = Some(named);
    select.selection = Some(condition);
    Ok(*query)
}

/// Refuses aggregates, which are known behind the grouping alone.
fn refuse_aggregate(value: &Expr) -> ControlFlow<Error> {
    match value {
        Expr::Function(call) if is_aggregate(&call.name.to_string()) => refuse(
            "an aggregate in a row before IN (SELECT ...)",
            value,
            "name it in a subquery: FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS g",
        ),
        _ => ControlFlow::Continue(()),
    }
}

fn is_aggregate(name: &str) -> bool {
    FUNCTIONS.aggregates.contains_key(&name.to_lowercase())
}

/// How many values the rows of a query have, where it says them all.
fn width(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| {
                matches!(
                    item,
                    SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
                )
            };
            let all = select.projection.iter().all(is_one);
            all.then_some(select.projection.len())
        }
        SetExpr::Query(query) => width(&query.body),
        SetExpr::SetOperation { left, .. } => width(left),
        SetExpr::Values(values) => values.rows.first().map(|row| row.len()),
        _ => None,
    }
}
