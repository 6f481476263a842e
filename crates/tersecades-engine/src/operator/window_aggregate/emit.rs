//! A closed window as a record batch, sorted by key.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use crate::aggregate::collected::Finish;
use crate::aggregate::result::ResultColumn;

use super::pane::Pane;
use super::plan::AggregatePlan;
use super::sort::Sorter;

/// The result of the window `[start, start + size)`.
///
/// # Errors
/// `LimitExceeded` when an exact result does not fit its type; the window and column are named.
pub fn emit(
    plan: &AggregatePlan,
    start: i64,
    pane: &Pane,
    sorter: &mut Sorter,
) -> Result<RecordBatch> {
    let order = sorter.sort(&plan.keys, pane);
    let rows = order.len();
    let end = start.saturating_add(plan.window.size);
    let fields = plan.schema.fields();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
    columns.push(constant_time(start, rows, fields[0].data_type())?);
    columns.push(constant_time(end, rows, fields[1].data_type())?);
    for (index, column) in plan.keys.columns.iter().enumerate() {
        let values = plan.keys.values(index, order, pane.groups.keys());
        columns.push(values.to_array(&column.data_type)?);
    }
    let first = 2 + plan.keys.columns.len();
    for (index, field) in (0..plan.readings.len()).zip(fields.iter().skip(first)) {
        let column = reading_column(plan, index, pane, order);
        columns.push(column.map_err(|error| error.column(field.name().as_str()))?);
    }
    let schema = Schema::new(
        fields
            .iter()
            .zip(&columns)
            .map(|(field, column)| {
                Field::new(
                    field.name(),
                    column.data_type().clone(),
                    field.is_nullable(),
                )
            })
            .collect::<Vec<_>>(),
    );
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::new(schema),
        columns,
        &options,
    )?)
}

fn constant_time(time: i64, rows: usize, data_type: &DataType) -> Result<ArrayRef> {
    let mut values = Values::default();
    let physical = Physical::of(data_type)?;
    values.reset(physical);
    values
        .keys
        .resize(rows, physical.key_of(i128::from(time)).unwrap_or_default());
    values.to_array(data_type)
}

fn reading_column(
    plan: &AggregatePlan,
    index: usize,
    pane: &Pane,
    order: &[u32],
) -> Result<ArrayRef> {
    let reading = &plan.readings[index];
    let argument = reading.argument.map(|argument| &plan.arguments[argument]);
    if let (Some(collection), Some(argument)) = (reading.collection, argument) {
        let finish = Finish {
            order,
            reading,
            argument,
        };
        let collection = &*pane.collections[collection];
        return reading.aggregate.finish_collected(collection, &finish);
    }
    let texts = argument.and_then(|argument| argument.dictionary.get());
    let mut column = ResultColumn::new(&reading.data_type, texts)?;
    let ids = order.iter().map(|id| *id as usize);
    match (reading.argument, argument) {
        (Some(index), Some(argument)) => {
            for id in ids {
                let fold = pane.folds[index].get(id);
                column.push(reading.aggregate.finish(&fold, &argument.data_type)?);
            }
        }
        // Without an argument an aggregate counts rows, and the count is the result.
        _ => {
            let flip = column.values.physical.flip();
            column
                .values
                .keys
                .extend(ids.map(|id| pane.rows[id] ^ flip));
        }
    }
    column.finish(&reading.data_type)
}
