//! Rows in parentheses, compared value by value.
//!
//! ```text
//! (a, b) IN ((1, 2), (3, 4)) ─▶ a = 1 AND b = 2 OR a = 3 AND b = 4
//! (a, b) <> (1, 2)           ─▶ NOT (a = 1 AND b = 2)
//! (a, b) <= (1, 2)           ─▶ a < 1 OR a = 1 AND b <= 2
//! (a, b) BETWEEN r AND s     ─▶ (a, b) >= r AND (a, b) <= s
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, UnaryOperator, VisitMut, VisitorMut,
};
use tersecades_columnar::error::{Error, Result};

use super::check::placed;
use super::using::joined::binary;
use super::with::is_drawn;

/// Writes the comparisons of rows in `query` as those of their values.
///
/// # Errors
/// `InvalidArgument` for what is no row of as many values.
pub(crate) fn compare(query: &mut Query) -> Result<()> {
    match query.visit(&mut Comparisons) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Comparisons;

impl VisitorMut for Comparisons {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match compared(expr) {
            Ok(Some(compared)) => *expr = compared,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

fn compared(expr: &Expr) -> Result<Option<Expr>> {
    if let Some(ordered) = ordered(expr)? {
        return Ok(Some(ordered));
    }
    let (row, others, negated) = match expr {
        Expr::InList {
            expr,
            list,
            negated,
        } => (&**expr, list.as_slice(), *negated),
        Expr::BinaryOp {
            left,
            op: op @ (BinaryOperator::Eq | BinaryOperator::NotEq),
            right,
        } => {
            let right = std::slice::from_ref(&**right);
            (&**left, right, *op == BinaryOperator::NotEq)
        }
        _ => return Ok(None),
    };
    let Expr::Tuple(row) = row else {
        return Ok(None);
    };
    if others.len() > 1
        && let Some(drawn) = row.iter().find(|value| is_drawn(value))
    {
        let message = format!("a random value in a row before IN{}", placed(drawn));
        return Err(Error::unsupported(message).hint("draw it in a subquery: FROM (SELECT ...)"));
    }
    let equal: Result<Vec<Expr>> = others.iter().map(|other| equals(row, other)).collect();
    let found = joined(equal?, &BinaryOperator::Or);
    Ok(found.map(|found| match negated {
        true => not(Expr::Nested(Box::new(found))),
        false => Expr::Nested(Box::new(found)),
    }))
}

/// The order of two rows, which the first values decide that are not equal.
fn ordered(expr: &Expr) -> Result<Option<Expr>> {
    use BinaryOperator::{And, Gt, GtEq, Lt, LtEq};
    let (row, op, other) = match expr {
        Expr::BinaryOp {
            left,
            op: op @ (Lt | LtEq | Gt | GtEq),
            right,
        } => (&**left, op, &**right),
        Expr::Between {
            expr,
            negated,
            low,
            high,
        } if matches!(**expr, Expr::Tuple(_)) => {
            let end = |op, end: &Expr| ordered(&binary((**expr).clone(), op, end.clone()));
            let (Some(low), Some(high)) = (end(GtEq, low)?, end(LtEq, high)?) else {
                return Ok(None);
            };
            let between = Expr::Nested(Box::new(binary(low, And, high)));
            return Ok(Some(if *negated { not(between) } else { between }));
        }
        _ => return Ok(None),
    };
    let (Expr::Tuple(row), false) = (row, matches!(other, Expr::Subquery(_))) else {
        return Ok(None);
    };
    let strict = match op {
        Lt | LtEq => Lt,
        _ => Gt,
    };
    let mut pairs = row.iter().zip(values_of(other, row.len())?).rev();
    let (a, b) = pairs
        .next()
        .ok_or_else(|| Error::invalid("a row has values"))?;
    let last = binary(a.clone(), op.clone(), b.clone());
    let ordered = pairs.fold(last, |behind, (a, b)| {
        let equal = binary(a.clone(), BinaryOperator::Eq, b.clone());
        let decided = binary(a.clone(), strict.clone(), b.clone());
        let behind = binary(equal, And, Expr::Nested(Box::new(behind)));
        binary(decided, BinaryOperator::Or, behind)
    });
    Ok(Some(Expr::Nested(Box::new(ordered))))
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: Box::new(expr),
    }
}

/// The values of the row `other`, `count` in number.
fn values_of(other: &Expr, count: usize) -> Result<&[Expr]> {
    match other {
        Expr::Tuple(values) if values.len() == count => Ok(values),
        _ => {
            let message = format!("`{other}` is no row of {count} values");
            let error = Error::invalid(format!("{message}{}", placed(other)));
            Err(error.hint("write (a, b) IN ((1, 2), (3, 4))"))
        }
    }
}

/// Whether `row` is the row `other`.
fn equals(row: &[Expr], other: &Expr) -> Result<Expr> {
    let values = values_of(other, row.len())?;
    let pairs = row.iter().zip(values);
    let equal = pairs.map(|(a, b)| binary(a.clone(), BinaryOperator::Eq, b.clone()));
    let joined = joined(equal.collect(), &BinaryOperator::And);
    joined.ok_or_else(|| Error::invalid("a row has values"))
}

/// The terms joined by `op`, those of long lists in a tree that is not deep.
fn joined(mut terms: Vec<Expr>, op: &BinaryOperator) -> Option<Expr> {
    while terms.len() > 1 {
        let mut rest = terms.into_iter();
        let mut pairs = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => binary(left, op.clone(), right),
                None => left,
            });
        }
        terms = pairs;
    }
    terms.pop()
}
