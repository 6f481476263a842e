//! `|`, `&`, `<<` and `>>`, which bind alike and from the left, as in PostgreSQL.
//!
//! ```text
//! a | b & c  ─▶  (a | b) & c
//! ```
//! The parser gives each a rank of its own.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{BinaryOperator, Expr, Query, VisitMut, VisitorMut};

/// Gives such operators of `query` their operands.
pub(crate) fn bind(query: &mut Query) {
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut Bits);
}

struct Bits;

impl VisitorMut for Bits {
    type Break = ();

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<()> {
        turn(value);
        ControlFlow::Continue(())
    }
}

fn is_bits(op: &BinaryOperator) -> bool {
    use BinaryOperator::{BitwiseAnd, BitwiseOr, PGBitwiseShiftLeft, PGBitwiseShiftRight};
    matches!(
        op,
        BitwiseAnd | BitwiseOr | PGBitwiseShiftLeft | PGBitwiseShiftRight
    )
}

/// `a | (b & c)`, as it was parsed, as `(a | b) & c`; what is within parentheses stays.
fn turn(value: &mut Expr) {
    let Expr::BinaryOp { left, op, right } = value else {
        return;
    };
    let Expr::BinaryOp {
        left: middle,
        op: behind,
        right: last,
    } = right.as_mut()
    else {
        return;
    };
    if !is_bits(op) || !is_bits(behind) {
        return;
    }
    let mut before = Expr::BinaryOp {
        left: left.clone(),
        op: op.clone(),
        right: middle.clone(),
    };
    turn(&mut before);
    *value = Expr::BinaryOp {
        left: Box::new(before),
        op: behind.clone(),
        right: last.clone(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Asked, Command, parse};
    use datafusion_sql::sqlparser::ast::SelectItem;

    #[test]
    fn operators_on_bits_bind_from_the_left() {
        for (text, bound) in [
            ("1 | 2 & 4", "((1|2)&4)"),
            ("1 << 2 | 1 << 3", "(((1<<2)|1)<<3)"),
            ("1 & 2 | 3 & 4 >> 5", "((((1&2)|3)&4)>>5)"),
            ("1 | (2 & 4)", "(1|(2&4))"),
            ("1 | 2 + 3 & 4", "((1|(2+3))&4)"),
        ] {
            let text = format!("SELECT {text}");
            let Some(Command::Query(Asked { mut query, .. })) = parse(&text).unwrap().pop() else {
                panic!("{text} is a query");
            };
            bind(&mut query);
            let SelectItem::UnnamedExpr(found) = &query.body.as_select().unwrap().projection[0]
            else {
                panic!("{text} has a value");
            };
            assert_eq!(shown(found), bound, "{text}");
        }
    }

    fn shown(value: &Expr) -> String {
        match value {
            Expr::BinaryOp { left, op, right } => {
                format!("({}{op}{})", shown(left), shown(right))
            }
            Expr::Nested(inner) => shown(inner),
            other => other.to_string(),
        }
    }
}
