//! Casts under names of their own, for queries in which two columns differ by nothing else.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Expr, Query, Value, VisitMut, VisitorMut};

use super::window::call_of;
use crate::function::cast::CAST_TO;

/// Puts the mark of [`crate::function::cast`] around each cast of `query`.
pub(crate) fn name_casts(query: &mut Query) {
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut Casts);
}

struct Casts;

impl VisitorMut for Casts {
    type Break = ();

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<()> {
        if let Expr::Cast { data_type, .. } = value {
            let name = Value::SingleQuotedString(data_type.to_string());
            let arguments = [value.clone(), Expr::Value(name.into())];
            *value = Expr::Function(call_of(CAST_TO, arguments));
        }
        ControlFlow::Continue(())
    }
}
