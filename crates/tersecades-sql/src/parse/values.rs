//! Floats beside decimals in a column of `VALUES`.
//!
//! ```text
//! VALUES (price * 2), (1e-20) ─▶ VALUES (CAST(price * 2 AS DOUBLE)), (1e-20)
//! ```
//! DataFusion makes decimals of the floats, which hold few of their digits.

use std::ops::ControlFlow;

use arrow_schema::DataType;
use datafusion_common::DFSchema;
use datafusion_expr::ExprSchemable;
use datafusion_sql::planner::{PlannerContext, SqlToRel};
use datafusion_sql::sqlparser::ast::{Expr, Query, SetExpr, Values, VisitMut, VisitorMut};

use super::digit::as_double;
use crate::catalog::Catalog;

/// Makes floats of the decimals in columns of `VALUES` that have floats too.
pub(crate) fn keep_floats(query: &mut Query, planner: &SqlToRel<'_, Catalog>) {
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut Columns(planner));
}

struct Columns<'p, 'c>(&'p SqlToRel<'c, Catalog>);

impl VisitorMut for Columns<'_, '_> {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.body(&mut query.body);
        ControlFlow::Continue(())
    }
}

impl Columns<'_, '_> {
    fn body(&self, body: &mut SetExpr) {
        match body {
            SetExpr::Values(rows) => self.columns(rows),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            _ => {}
        }
    }

    fn columns(&self, rows: &mut Values) {
        let width = rows.rows.first().map_or(0, |row| row.len());
        for column in 0..width {
            let cells = rows.rows.iter_mut().filter_map(|row| row.get_mut(column));
            let cells: Vec<&mut Expr> = cells.collect();
            // Numbers as they are written are no decimals.
            if cells.iter().all(|cell| matches!(cell, Expr::Value(_))) {
                continue;
            }
            let types = cells.iter().map(|cell| self.type_of(cell));
            let types: Vec<Option<DataType>> = types.collect();
            if types.iter().flatten().any(DataType::is_floating) {
                for (cell, data_type) in cells.into_iter().zip(types) {
                    if data_type.is_some_and(|data_type| data_type.is_decimal()) {
                        *cell = as_double(cell.clone());
                    }
                }
            }
        }
    }

    fn type_of(&self, cell: &Expr) -> Option<DataType> {
        let nothing = DFSchema::empty();
        let mut context = PlannerContext::new();
        let planned = self.0.sql_to_expr(cell.clone(), &nothing, &mut context);
        planned.ok()?.get_type(&nothing).ok()
    }
}
