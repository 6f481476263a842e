//! Windows as tables of Python: those that wait, and those whose rows came late.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, DurationMicrosecondArray, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use tersecades::Result;
use tersecades::engine::runtime::{LateWindow, OpenWindow};

use crate::table::ResultTable;

fn times(values: impl Iterator<Item = Option<i64>>, unit: TimeUnit) -> Result<ArrayRef> {
    let ticks: Int64Array = values.collect();
    Ok(cast(&ticks, &DataType::Timestamp(unit, None))?)
}

fn table(columns: Vec<(&str, ArrayRef)>) -> Result<ResultTable> {
    let rows = RecordBatch::try_from_iter(columns)?;
    let schema = rows.schema();
    Ok(ResultTable::of_batch(rows, &schema))
}

/// A row for each window that waits: its ends, how far the watermark is, and who holds it back.
pub(crate) fn open_windows(windows: &[OpenWindow], unit: TimeUnit) -> Result<ResultTable> {
    let all = || windows.iter();
    let behind = |window: &OpenWindow| {
        let micros = window.behind_by?.as_micros();
        Some(i64::try_from(micros).unwrap_or(i64::MAX))
    };
    let behind: DurationMicrosecondArray = all().map(behind).collect();
    let held_by = StringArray::from_iter_values(all().map(|window| &window.held_by));
    let reason = StringArray::from_iter_values(all().map(ToString::to_string));
    table(vec![
        ("window_start", times(all().map(|w| Some(w.start)), unit)?),
        ("window_end", times(all().map(|w| Some(w.end)), unit)?),
        ("watermark", times(all().map(|w| w.watermark), unit)?),
        ("held_by", Arc::new(held_by)),
        ("behind_by", Arc::new(behind)),
        ("reason", Arc::new(reason)),
    ])
}

/// A row for each window that rows came too late for.
pub(crate) fn late_windows(windows: &[LateWindow], unit: TimeUnit) -> Result<ResultTable> {
    let all = || windows.iter();
    let rows = UInt64Array::from_iter_values(all().map(|window| window.rows));
    table(vec![
        ("window_start", times(all().map(|w| Some(w.start)), unit)?),
        ("window_end", times(all().map(|w| Some(w.end)), unit)?),
        ("late_rows", Arc::new(rows)),
    ])
}
