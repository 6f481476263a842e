//! What can be told of a query before it runs.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::error::Result;

use crate::plan::Query;

use super::stage::{StagePlan, plan_stages};

/// The columns that `arriving` has inside the engine.
///
/// # Errors
/// `Unsupported`, naming the column, for types that cannot be encoded.
pub(super) fn logical_schema(arriving: &SchemaRef) -> Result<SchemaRef> {
    let encoder = BatchEncoder::new(arriving)?;
    Ok(Arc::clone(encoder.schema()))
}

/// Columns of `arriving` that `query` reads; `None` when it needs all.
///
/// # Errors
/// What binding says.
pub fn columns_read(query: &Query, arriving: &SchemaRef) -> Result<Option<Vec<String>>> {
    let stages = plan_stages(query, logical_schema(arriving)?)?;
    Ok(stages.first().and_then(StagePlan::columns_read))
}

/// Columns that come out of `query` over rows of `arriving`.
///
/// # Errors
/// What binding says.
pub fn output_schema(query: &Query, arriving: &SchemaRef) -> Result<SchemaRef> {
    let stages = plan_stages(query, logical_schema(arriving)?)?;
    let last = stages.last().map(|stage| &stage.output);
    Ok(Arc::clone(last.unwrap_or(arriving)))
}

/// Operators of `query` over rows of `arriving`, in order, one line each.
///
/// # Errors
/// What binding says.
pub fn describe(query: &Query, arriving: &SchemaRef) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for stage in plan_stages(query, logical_schema(arriving)?)? {
        lines.extend(stage.instantiate(false)?.describe());
    }
    Ok(lines)
}
