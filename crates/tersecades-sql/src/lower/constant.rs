//! Rows that the query itself holds, and subqueries that are one value.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, new_empty_array};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::{EmptyRelation, Expr, LogicalPlan, Subquery, Values};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;
use tersecades_engine::expression::col;
use tersecades_engine::stream::Stream;

use super::Lowering;
use super::rows::{Column, Reach, Rows, nullable, unique_names};
use crate::error::of_datafusion;
use crate::scalar::PlannedFunction;

/// No row, or one row without columns.
///
/// # Errors
/// What making the batch says.
pub(super) fn empty(relation: &EmptyRelation) -> Result<Rows> {
    if !relation.produce_one_row {
        let columns = relation.schema.fields().iter();
        let columns = columns.map(|field| new_empty_array(&logical_type(field.data_type())));
        return rows_of(&relation.schema, columns.collect());
    }
    let one: ArrayRef = Arc::new(Int64Array::from(vec![0]));
    let batch = RecordBatch::try_from_iter([("row", one)])?;
    let stream = Stream::from_batches(batch.schema(), vec![batch]);
    Ok(Rows {
        stream,
        columns: Vec::new(),
        time: None,
        reach: Reach::Table,
        pending: Vec::new(),
    })
}

/// The rows of `VALUES`.
///
/// # Errors
/// What computing them says.
pub(super) fn values(values: &Values) -> Result<Rows> {
    let mut columns: Vec<Vec<ScalarValue>> = vec![Vec::new(); values.schema.fields().len()];
    let nothing = DFSchema::empty();
    for row in &values.values {
        for ((expr, column), field) in row.iter().zip(&mut columns).zip(values.schema.fields()) {
            let value = PlannedFunction::new(expr, &nothing, &[])?.constant()?;
            let value = value.cast_to(&logical_type(field.data_type()));
            column.push(value.map_err(|error| of_datafusion(&error))?);
        }
    }
    let arrays: Result<Vec<ArrayRef>> = columns
        .into_iter()
        .map(|column| ScalarValue::iter_to_array(column).map_err(|error| of_datafusion(&error)))
        .collect();
    rows_of(&values.schema, arrays?)
}

fn rows_of(schema: &DFSchema, arrays: Vec<ArrayRef>) -> Result<Rows> {
    let names = unique_names(schema);
    let types = arrays.iter().map(|array| array.data_type().clone());
    let fields = nullable(names.iter().cloned().zip(types));
    let batch = RecordBatch::try_new(Arc::clone(&fields), arrays)?;
    let columns = names.into_iter().map(|name| Column::Value(col(name)));
    Ok(Rows {
        stream: Stream::from_batches(fields, vec![batch]),
        columns: columns.collect(),
        time: None,
        reach: Reach::Table,
        pending: Vec::new(),
    })
}

impl Lowering<'_> {
    /// The node with the values of its uncorrelated scalar subqueries in their place; `None` when
    /// it has none.
    ///
    /// # Errors
    /// What running them says; `InvalidArgument` when one gives several rows.
    pub(super) fn without_subqueries(&self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let is_subquery = |expr: &Expr| Ok(matches!(expr, Expr::ScalarSubquery(_)));
        let mut found = false;
        let looked = plan.apply_expressions(|expr| {
            found |= expr.exists(is_subquery)?;
            Ok(datafusion_common::tree_node::TreeNodeRecursion::Continue)
        });
        looked.map_err(|error| of_datafusion(&error))?;
        if !found {
            return Ok(None);
        }
        let value = |expr: Expr| match expr {
            Expr::ScalarSubquery(subquery) => {
                let value = self.value_of(&subquery);
                let value = value.map_err(|error| {
                    datafusion_common::DataFusionError::External(Box::new(error))
                })?;
                Ok(Transformed::yes(Expr::Literal(value, None)))
            }
            other => Ok(Transformed::no(other)),
        };
        let replaced = plan
            .clone()
            .map_expressions(|expr| expr.transform_up(value));
        replaced
            .map(|plan| Some(plan.data))
            .map_err(|error| of_datafusion(&error))
    }

    fn value_of(&self, subquery: &Subquery) -> Result<ScalarValue> {
        let Some(field) = subquery.subquery.schema().fields().first() else {
            return Err(Error::invalid("a subquery in this place needs a column"));
        };
        let data_type = logical_type(field.data_type());
        // They are for the query that the value is for.
        let updates = self.updates.take();
        let stream = self.query(&subquery.subquery);
        self.updates.set(updates);
        let mut found = None;
        for batch in stream?.run()? {
            let batch = batch?;
            if batch.num_rows() == 0 {
                continue;
            }
            if found.is_some() || batch.num_rows() > 1 {
                return Err(
                    Error::invalid("a subquery that stands for a value gave several rows")
                        .hint("add LIMIT 1, or aggregate: (SELECT max(x) FROM ...)"),
                );
            }
            let value = ScalarValue::try_from_array(batch.column(0), 0);
            let value = value.and_then(|value| value.cast_to(&data_type));
            found = Some(value.map_err(|error| of_datafusion(&error))?);
        }
        match found {
            Some(value) => Ok(value),
            None => ScalarValue::try_from(&data_type).map_err(|error| of_datafusion(&error)),
        }
    }
}
