//! `in_order`: the rows of a stream by event time, held back until no earlier one can come.
//!
//! What goes by the order of rows (`lag`, `changes`, `reduce`, `first` of a group-by of the whole
//! stream) goes by event time behind it. A row comes out when the watermark has passed its time;
//! rows of one time stay as they came; a row that comes when later ones are out is late.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{SchemaRef, TimeUnit};
use tersecades_columnar::error::Result;

use crate::plan::EventTime;
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;
use crate::runtime::stage::check_final;
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::query::narrowed;
use crate::source::table::Table;
use crate::source::{Rejected, Source, SourceState};
use crate::stream::Stream;

use super::OperatorKind;
use super::join::kind::check_memory;
use super::join::timed::{TimedInput, TimedRows, unit_of};
use super::join::waiting::{read_place, write_place};
use super::row::kept::KeptRows;
use super::row::shape::{OUTPUT_ROWS, batch_of};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "in_order",
    summary: "the rows of a stream by event time, as far as its lateness puts them in order",
};

/// The rows of a stream by event time.
pub struct OrderedTable {
    stream: Stream,
    schema: SchemaRef,
    unit: TimeUnit,
}

impl OrderedTable {
    /// The rows of `stream`.
    ///
    /// # Errors
    /// What binding says; for streams whose results lack their event time.
    pub fn new(stream: Stream) -> Result<Self> {
        check_final(stream.has_updates())?;
        Ok(OrderedTable {
            schema: stream.schema()?,
            unit: unit_of(&stream)?,
            stream,
        })
    }

    /// Event time of the rows, of which none is late.
    pub fn event_time(&self) -> EventTime {
        EventTime {
            lateness: Duration::ZERO,
            ..self.stream.output_time()
        }
    }
}

impl Table for OrderedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn may_reject(&self) -> bool {
        self.stream.may_reject()
    }

    fn begins_again(&self) -> bool {
        self.stream.begins_again()
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_with(columns, &RunOptions::default())
    }

    fn open_with(&self, columns: Option<&[String]>, options: &RunOptions) -> Result<Origin> {
        let wanted = columns.map(|columns| [columns, &self.stream.time_columns()].concat());
        let cut = narrowed(&self.stream, &self.schema, wanted.as_deref());
        let running = cut.inherit(options).run()?;
        let input = TimedInput::new(running, &self.stream, self.unit)?;
        Ok(Origin::Source(Box::new(OrderedSource {
            rows: KeptRows::new(&input.schema())?,
            input,
            waiting: BTreeSet::new(),
            late_rows: 0,
            limit: options.memory_bytes_limit,
            rejected: Rejected::default(),
        })))
    }
}

struct OrderedSource {
    input: TimedInput,
    rows: KeptRows,
    /// Rows that are held back, by time and number.
    waiting: BTreeSet<(i64, u64)>,
    late_rows: u64,
    limit: Option<usize>,
    rejected: Rejected,
}

impl OrderedSource {
    fn byte_size(&self) -> usize {
        self.rows.byte_size() + self.waiting.len() * size_of::<(i64, u64)>()
    }

    fn take(&mut self, batch: TimedRows) -> Result<()> {
        let first = self.rows.push(batch.rows)?;
        for (index, (time, watermark)) in batch.times.iter().zip(&batch.watermarks).enumerate() {
            let row = first + index as u64;
            if time < watermark {
                self.late_rows += 1;
                self.rows.release(row);
            } else {
                self.waiting.insert((*time, row));
            }
        }
        Ok(())
    }

    /// The next rows before which none can come any more.
    fn emit(&mut self) -> Result<Option<RecordBatch>> {
        let watermark = self.input.watermark();
        let mut rows = Vec::new();
        while let Some((time, row)) = self.waiting.first().copied() {
            let certain = time < watermark || self.input.is_ended();
            if !certain || rows.len() >= OUTPUT_ROWS {
                break;
            }
            self.waiting.pop_first();
            rows.push(row);
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let columns = self.rows.pick(&rows)?;
        rows.iter().for_each(|row| self.rows.release(*row));
        batch_of(&self.input.schema(), columns, rows.len()).map(Some)
    }
}

impl OrderedSource {
    /// The next rows, without counting those that the inputs left out.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(rows) = self.emit()? {
                return Ok(Some(rows));
            }
            if self.input.is_ended() {
                return Ok(None);
            }
            if let Some(batch) = self.input.next_timed()? {
                self.take(batch)?;
            }
            check_memory(self.byte_size(), self.limit)?;
            if self.input.is_waiting() {
                return Ok(Some(RecordBatch::new_empty(self.schema())));
            }
        }
    }
}

impl Source for OrderedSource {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.next_rows();
        self.rejected.count_rows = self.input.running().rejected_rows();
        next
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        let mut state = self.input.state();
        state.bytes += self.byte_size();
        state.late_rows += self.late_rows;
        state
    }

    fn describe(&self) -> Vec<String> {
        let inside = self.input.running().describe().into_iter();
        std::iter::once("rows by event time of".to_owned())
            .chain(inside.map(|line| format!("  {line}")))
            .collect()
    }

    fn runs_queries(&self) -> bool {
        true
    }

    fn identity(&self) -> String {
        "in order".to_owned()
    }

    fn rows_read(&self) -> Option<u64> {
        self.input.running().rows_read()
    }

    fn pass_over(&mut self, is_given_again: bool) -> Result<()> {
        self.input.pass_over(is_given_again)
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.input.snapshot(out)?;
        self.rows.snapshot_numbered(out)?;
        out.list(self.waiting.iter(), write_place);
        out.u64(self.late_rows);
        Ok(())
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.input.restore(from)?;
        self.rows.restore_numbered(from)?;
        self.waiting = from.list(read_place)?;
        self.late_rows = from.u64()?;
        Ok(())
    }
}
