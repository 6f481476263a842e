//! `a ** b` and `a ^ b`, which bind as those of DuckDB do.
//!
//! ```text
//! 2 * 3 ^ 2   ─▶  2 * (3 ^ 2)     before products
//! 2 ** 3 ^ 2  ─▶  (2 ^ 3) ^ 2     from the left
//! -2 ^ 2      ─▶  (-2) ^ 2        a sign is of the number behind it
//! 2 ^ 3::INT  ─▶  2 ^ (3::INT)    a cast of that before it
//! ```
//! The parser takes `^` behind sums. It does not read `^@` so, which stands for it meanwhile.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, CastKind, Expr, Query, UnaryOperator, VisitMut, VisitorMut,
};
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use tersecades_columnar::error::{Error, Result};

use super::place;

/// The tokens with each `**` and `^` as the operator that [`bind`] reads.
///
/// # Errors
/// `Unsupported` with the place for that operator itself.
pub(super) fn marked(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut marked: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for mut token in tokens {
        match (marked.last_mut(), &token.token) {
            (_, Token::CaretAt) => {
                let message = format!("`^@` is not supported{}", place(token.span.start));
                return Err(Error::unsupported(message).hint("write starts_with(a, b)"));
            }
            (Some(before), Token::Mul) if before.token == Token::Mul => {
                before.token = Token::CaretAt;
                before.span.end = token.span.end;
                continue;
            }
            (_, Token::Caret) => token.token = Token::CaretAt,
            _ => {}
        }
        marked.push(token);
    }
    Ok(marked)
}

/// Gives the powers of `query` their operands, each as `^`.
pub(crate) fn bind(query: &mut Query) {
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut Powers);
}

struct Powers;

impl VisitorMut for Powers {
    type Break = ();

    fn pre_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<()> {
        if is_power(value) {
            let mut operands = Vec::new();
            add_operands(value.clone(), &mut operands);
            let power = |left: Expr, right: Expr| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::BitwiseXor,
                right: Box::new(right),
            };
            if let Some(powers) = operands.into_iter().reduce(power) {
                *value = powers;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether `value` is a power as it is parsed, behind signs or before a cast.
fn is_power(value: &Expr) -> bool {
    match value {
        Expr::BinaryOp { op, .. } => *op == BinaryOperator::PGStartsWith,
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        }
        | Expr::Cast {
            kind: CastKind::DoubleColon,
            expr,
            ..
        } => is_power(expr),
        _ => false,
    }
}

/// The operands of a chain of powers, from the left: a sign is of the first of those it stands
/// before, a cast of the last of those it stands behind.
fn add_operands(mut value: Expr, operands: &mut Vec<Expr>) {
    if !is_power(&value) {
        operands.push(value);
        return;
    }
    let start = operands.len();
    match &mut value {
        Expr::BinaryOp { left, right, .. } => {
            add_operands((**left).clone(), operands);
            add_operands((**right).clone(), operands);
        }
        Expr::UnaryOp { expr, .. } => {
            add_operands((**expr).clone(), operands);
            if let Some(first) = operands.get_mut(start) {
                std::mem::swap(first, expr);
                *first = value;
            }
        }
        Expr::Cast { expr, .. } => {
            add_operands((**expr).clone(), operands);
            if let Some(last) = operands.last_mut() {
                std::mem::swap(last, expr);
                *last = value;
            }
        }
        _ => {}
    }
}
