//! The sign before what may be unsigned, with the mark of [`crate::function::signed`] behind it.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Expr, Query, UnaryOperator, VisitMut, VisitorMut};

use super::window::call_of;
use crate::function::signed::SIGNED;

/// Puts the mark behind each minus of `query`, but for those of constants.
pub(crate) fn mark_signs(query: &mut Query) {
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut Signs);
}

struct Signs;

impl VisitorMut for Signs {
    type Break = ();

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<()> {
        if let Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } = value
            && !matches!(**expr, Expr::Value(_) | Expr::Interval(_))
        {
            **expr = Expr::Function(call_of(SIGNED, [(**expr).clone()]));
        }
        ControlFlow::Continue(())
    }
}
