//! `project`: computes columns from columns.

use std::collections::HashSet;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;

use crate::expression::Expression;
use crate::expression::evaluate::BoundExpression;
use crate::frame::{Frame, Scope};

use super::{Operator, OperatorKind};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "project",
    summary: "replaces the columns; a renamed column costs nothing",
};

/// Computes the columns that are not bare columns.
pub struct Project {
    computed: Vec<BoundExpression>,
}

impl Project {
    /// Binds `columns` and makes them what `scope` shows.
    ///
    /// # Errors
    /// `InvalidArgument` when two columns have one name; what binding says.
    pub fn bind(columns: &[(String, Expression)], scope: &mut Scope) -> Result<Self> {
        let before = scope.clone();
        let (mut computed, mut kept) = (Vec::new(), Vec::new());
        let mut names = HashSet::new();
        for (name, expression) in columns {
            if !names.insert(name) {
                return Err(
                    Error::invalid(format!("two result columns are named `{name}`"))
                        .hint("give one of them another name"),
                );
            }
            let within = |error: Error| error.column(name.as_str());
            if let Some(column) = expression.as_column() {
                // Of any type: it is not computed.
                let (data_type, slot) = before.find(column).map_err(within)?;
                kept.push((name.clone(), slot, logical_type(data_type)));
                continue;
            }
            let bound = BoundExpression::bind(expression, &before).map_err(within)?;
            let data_type = bound.data_type().clone();
            let slot = match bound.column_slot() {
                Some(slot) => slot,
                None => {
                    computed.push(bound);
                    scope.add(&format!("\u{0}{name}"), data_type.clone())
                }
            };
            kept.push((name.clone(), slot, data_type));
        }
        scope.select(&kept);
        Ok(Project { computed })
    }
}

impl Operator for Project {
    fn describe(&self) -> String {
        let computed: Vec<String> = self
            .computed
            .iter()
            .map(BoundExpression::describe)
            .collect();
        format!("project, computing [{}]", computed.join(", "))
    }

    fn push(&mut self, frame: &mut Frame, work: &mut Work) -> Result<()> {
        for expression in &mut self.computed {
            let mut column = frame.take_derived();
            let evaluated = expression.evaluate(frame, &mut column, work);
            if evaluated.is_ok() {
                frame.put_derived(column);
            }
            evaluated?;
        }
        Ok(())
    }
}
