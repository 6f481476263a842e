//! A closed window as a record batch, sorted by key.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array, new_null_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayDataBuilder;
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::dictionary::Dictionary;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::Fold;
use tersecades_columnar::types::Value;

use crate::aggregate::collected::Finish;
use crate::aggregate::result::ResultColumn;
use crate::window::Span;

use super::keys::{KeyColumn, NULL_CODE};
use super::pane::Pane;
use super::plan::{AggregatePlan, Argument, Reading};
use super::position::Positions;

/// Groups whose folds are read at once.
const GROUPS_READ: usize = 128;

/// The windows that results are of.
#[derive(Debug, Clone, Copy)]
pub enum Windows<'a> {
    /// One that has no start and end.
    None,
    /// One.
    One(Span),
    /// One for each group, where it is known.
    Each(&'a [Option<Span>]),
}

/// The results of the groups `order` of a pane.
///
/// # Errors
/// `LimitExceeded` when an exact result does not fit its type; the column is named.
pub fn emit(
    plan: &AggregatePlan,
    windows: Windows<'_>,
    pane: &Pane,
    order: &[u32],
) -> Result<RecordBatch> {
    let codes = |index| plan.keys.codes(index, order, pane.groups.packed());
    emit_keys(plan, windows, (pane, order), codes)
}

/// As [`emit`], of a pane whose groups lie at the positions of their keys.
///
/// # Errors
/// As [`emit`].
pub fn emit_positions(
    plan: &AggregatePlan,
    windows: Windows<'_>,
    pane: &Pane,
    (order, positions): (&[u32], &Positions),
) -> Result<RecordBatch> {
    let codes = |index| positions.codes(index, order);
    emit_keys(plan, windows, (pane, order), codes)
}

/// [`emit`], with the codes of text columns.
fn emit_keys(
    plan: &AggregatePlan,
    windows: Windows<'_>,
    (pane, order): (&Pane, &[u32]),
    codes: impl Fn(usize) -> Vec<u32>,
) -> Result<RecordBatch> {
    let rows = order.len();
    let fields = plan.schema.fields();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
    let ends: [fn(Span) -> i128; 2] = [|span| span.start, |span| span.end];
    for (end, field) in ends.into_iter().zip(&fields[..plan.window_columns]) {
        let column = match windows {
            Windows::Each(spans) => {
                let times = order.iter().map(|group| spans[*group as usize].map(end));
                time_column(times, field.data_type(), rows)
            }
            Windows::One(span) => repeated_time(end(span), field.data_type(), rows),
            Windows::None => Ok(new_null_array(field.data_type(), rows)),
        };
        columns.push(column.map_err(|error| error.column(field.name().as_str()))?);
    }
    for (index, key) in plan.keys.columns.iter().enumerate() {
        columns.push(match plan.first {
            // Of few groups, texts take less room than those of all groups.
            Some(_) if key.is_text() => plain_texts(key, &codes(index))?,
            _ => key_column(plan, index, (pane, order), &codes)?,
        });
    }
    columns.extend(reading_columns(plan, pane, order)?);
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

/// Column `index` of the result, which is none of those of windows, for the groups `order`.
///
/// # Errors
/// As [`emit`].
pub(super) fn result_column(
    plan: &AggregatePlan,
    index: usize,
    pane: &Pane,
    order: &[u32],
) -> Result<ArrayRef> {
    let keys = plan.key_columns();
    if index >= keys.end {
        let mut column = read_groups(plan, &[index - keys.end], pane, order)?;
        return column.pop().ok_or_else(no_column);
    }
    let codes = |index| plan.keys.codes(index, order, pane.groups.packed());
    key_column(plan, index - keys.start, (pane, order), &codes)
}

fn key_column(
    plan: &AggregatePlan,
    index: usize,
    (pane, order): (&Pane, &[u32]),
    codes: &impl Fn(usize) -> Vec<u32>,
) -> Result<ArrayRef> {
    let column = &plan.keys.columns[index];
    if column.is_text() {
        return text_column(column, codes(index));
    }
    let values = plan.keys.values(index, order, pane.groups.packed());
    values.into_array(&column.data_type)
}

fn time_column(
    times: impl Iterator<Item = Option<i128>>,
    data_type: &DataType,
    rows: usize,
) -> Result<ArrayRef> {
    let mut column = ResultColumn::new(data_type, None, rows)?;
    for time in times {
        column.push(match time {
            Some(time) => Value::Integer(ticks(time)?.into()),
            None => Value::Null,
        });
    }
    column.finish(data_type)
}

/// One time for so many rows.
fn repeated_time(time: i128, data_type: &DataType, rows: usize) -> Result<ArrayRef> {
    let times = ArrayDataBuilder::new(data_type.clone())
        .len(rows)
        .add_buffer(Buffer::from_vec(vec![ticks(time)?; rows]));
    Ok(make_array(times.build()?))
}

fn ticks(time: i128) -> Result<i64> {
    i64::try_from(time).map_err(|_| {
        Error::limit("the boundary of a window is beyond 2^63 ticks")
            .hint("use a coarser unit of event time, or leave out rows at the ends of time")
    })
}

fn text_column(column: &KeyColumn, mut codes: Vec<u32>) -> Result<ArrayRef> {
    let nulls = take_nulls(&mut codes);
    let empty = Dictionary::new();
    let dictionary = column.dictionary().get().map_or(&empty, |known| known);
    dictionary.coded(codes, nulls, &column.data_type)
}

fn plain_texts(column: &KeyColumn, codes: &[u32]) -> Result<ArrayRef> {
    let empty = Dictionary::new();
    let dictionary = column.dictionary().get().map_or(&empty, |known| known);
    let known = |code: &u32| (u64::from(*code) != NULL_CODE).then_some(*code);
    dictionary.plain(codes.iter().map(known), &column.data_type)
}

/// Which of `codes` stand for null, where any does: they become 0, as every reader may look up.
fn take_nulls(codes: &mut [u32]) -> Option<NullBuffer> {
    let is_null = |code: u32| u64::from(code) == NULL_CODE;
    // Without an end at the first one, the pass is of vector code.
    if !codes.iter().fold(false, |any, code| any | is_null(*code)) {
        return None;
    }
    let nulls = codes.iter().map(|code| !is_null(*code)).collect();
    let absent = codes.iter_mut().filter(|code| is_null(**code));
    absent.for_each(|code| *code = 0);
    Some(nulls)
}

/// The columns of all readings; those that read one collection are worked out together.
fn reading_columns(plan: &AggregatePlan, pane: &Pane, order: &[u32]) -> Result<Vec<ArrayRef>> {
    let readings = &plan.readings;
    let mut columns: Vec<Option<ArrayRef>> = vec![None; readings.len()];
    for index in 0..readings.len() {
        if columns[index].is_some() {
            continue;
        }
        let collection = readings[index].collection;
        let alike =
            |other: &usize| collection.is_some() && readings[*other].collection == collection;
        let mut together = vec![index];
        together.extend((index + 1..readings.len()).filter(alike));
        let found = read_groups(plan, &together, pane, order)?;
        for (at, column) in together.into_iter().zip(found) {
            columns[at] = Some(column);
        }
    }
    let columns = columns.into_iter();
    columns.map(|column| column.ok_or_else(no_column)).collect()
}

fn no_column() -> Error {
    Error::internal("an aggregate gave no column")
}

/// The columns of the readings `together`, of which there is one or all read one collection.
fn read_groups(
    plan: &AggregatePlan,
    together: &[usize],
    pane: &Pane,
    order: &[u32],
) -> Result<Vec<ArrayRef>> {
    let first = together.first().copied().unwrap_or_default();
    let reading = &plan.readings[first];
    let argument = reading.argument.map(|argument| &plan.arguments[argument]);
    let columns = match (reading.collection, argument) {
        (Some(collection), Some(argument)) => {
            let finishes = together.iter().map(|index| Finish {
                order,
                reading: &plan.readings[*index],
                argument,
                threads: plan.threads,
            });
            let finishes: Vec<Finish<'_>> = finishes.collect();
            let collection = &*pane.collections[collection];
            reading.aggregate.finish_together(collection, &finishes)
        }
        _ => read_folds(reading, argument, pane, order).map(|column| vec![column]),
    };
    let name = plan.schema.field(plan.key_columns().end + first).name();
    columns.map_err(|error| error.column(name.as_str()))
}

fn read_folds(
    reading: &Reading,
    argument: Option<&Argument>,
    pane: &Pane,
    order: &[u32],
) -> Result<ArrayRef> {
    let texts = argument.and_then(|argument| argument.dictionary.get());
    let mut column = ResultColumn::new(&reading.data_type, texts, order.len())?;
    match (reading.argument, argument) {
        (Some(index), Some(argument)) => {
            let mut folds = [Fold::default(); GROUPS_READ];
            for ids in order.chunks(GROUPS_READ) {
                let folds = &mut folds[..ids.len()];
                pane.folds[index].read(ids, folds);
                for fold in folds {
                    column.push(reading.aggregate.finish(fold, &argument.data_type)?);
                }
            }
        }
        // Without an argument an aggregate counts rows, and the count is the result.
        _ => {
            let flip = column.values.physical.flip();
            let counts = order.iter().map(|id| pane.rows[*id as usize] ^ flip);
            column.values.keys.extend(counts);
        }
    }
    column.finish(&reading.data_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_null_texts_are_taken_out_and_no_others() {
        let null = NULL_CODE as u32;
        for (codes, expected) in [
            (vec![], None),
            (vec![0, null - 1, 7], None),
            (vec![null], Some(vec![false])),
            (vec![3, null, 0, null], Some(vec![true, false, true, false])),
        ] {
            let mut taken = codes.clone();
            let nulls = take_nulls(&mut taken).map(|nulls| nulls.iter().collect::<Vec<_>>());
            assert_eq!(nulls, expected, "{codes:?}");
            let kept = codes
                .iter()
                .map(|code| if *code == null { 0 } else { *code });
            assert!(kept.eq(taken));
        }
    }
}
