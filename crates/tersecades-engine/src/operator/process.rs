//! `process`: hands all rows of each closed window to a function of the user.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use crate::error_bound::computed_from;
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;
use crate::runtime::stage::check_final;
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::table::Table;
use crate::source::{Rejected, Source, SourceState};
use crate::stream::Stream;
use crate::window::{Boundaries, Span, Window};

use super::OperatorKind;
use super::join::kind::check_memory;
use super::join::timed::{TimedInput, TimedRows, unit_of, zone_of};
use super::join::window::{aligned, constant_time, windows_of, with_window};
use super::row::kept::KeptRows;
use super::row::shape::{batch_of, logical_schema, read_batches, write_batches};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "process",
    summary: "hands all rows of each closed window, as one record batch, to a function of the user",
};

/// A function of the rows of a window.
pub trait WindowFunction: Debug + Send + Sync {
    /// The columns that it gives for rows of `input`.
    ///
    /// # Errors
    /// `SchemaMismatch` for rows that it cannot work on.
    fn schema(&self, input: &Schema) -> Result<SchemaRef>;

    /// What it gives for the rows of one window, which come in order of arrival.
    ///
    /// # Errors
    /// Whatever the user says.
    fn process(&self, window: &Span, rows: &RecordBatch) -> Result<RecordBatch>;
}

/// The results of a function of windows.
pub struct ProcessTable {
    stream: Stream,
    window: Window,
    function: Arc<dyn WindowFunction>,
    unit: TimeUnit,
    given: SchemaRef,
    schema: SchemaRef,
}

impl ProcessTable {
    /// `function` of each `window` of `stream`.
    ///
    /// # Errors
    /// What binding says; `Unsupported` for windows that differ between keys or may come out more
    /// than once.
    pub fn new(stream: Stream, window: Window, function: Arc<dyn WindowFunction>) -> Result<Self> {
        check_final(stream.has_updates())?;
        let unit = unit_of(&stream)?;
        aligned(&window, unit)?;
        let input = stream.schema()?;
        let given = logical_schema(&*function.schema(&input)?);
        let time = DataType::Timestamp(unit, zone_of(&stream)?);
        Ok(ProcessTable {
            schema: with_window(&computed_from(&given, &input), time)?,
            given,
            stream,
            window,
            function,
            unit,
        })
    }
}

impl Table for ProcessTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn begins_again(&self) -> bool {
        self.stream.begins_again()
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_with(columns, &RunOptions::default())
    }

    fn open_with(&self, _columns: Option<&[String]>, options: &RunOptions) -> Result<Origin> {
        let running = self.stream.clone().inherit(options).run()?;
        let input = TimedInput::new(running, &self.stream, self.unit)?;
        Ok(Origin::Source(Box::new(ProcessSource {
            rows: KeptRows::new(&input.schema())?,
            windows: aligned(&self.window, self.unit)?,
            label: format!("process {} with {:?}", self.window, self.function),
            function: Arc::clone(&self.function),
            given: Arc::clone(&self.given),
            schema: Arc::clone(&self.schema),
            input,
            open: BTreeMap::new(),
            ready: VecDeque::new(),
            late_rows: 0,
            skipped_rows: 0,
            limit: options.memory_bytes_limit,
            rejected: Rejected::default(),
        })))
    }
}

/// A window that has not closed.
struct Open {
    span: Span,
    /// Its rows, in order of arrival.
    rows: Vec<u64>,
    /// Those that are in no later window.
    leaving: Vec<u64>,
}

impl Open {
    fn new(span: Span) -> Self {
        Open {
            span,
            rows: Vec::new(),
            leaving: Vec::new(),
        }
    }
}

struct ProcessSource {
    input: TimedInput,
    rows: KeptRows,
    windows: Arc<dyn Boundaries>,
    function: Arc<dyn WindowFunction>,
    given: SchemaRef,
    schema: SchemaRef,
    label: String,
    /// By their ends.
    open: BTreeMap<i128, Open>,
    ready: VecDeque<RecordBatch>,
    late_rows: u64,
    /// Rows in no window at all.
    skipped_rows: u64,
    limit: Option<usize>,
    rejected: Rejected,
}

impl ProcessSource {
    fn byte_size(&self) -> usize {
        let open = self.open.values();
        let rows: usize = open.map(|open| open.rows.len() + open.leaving.len()).sum();
        self.rows.byte_size() + rows * size_of::<u64>()
    }

    fn place(&mut self, batch: TimedRows) -> Result<()> {
        let first = self.rows.push(batch.rows)?;
        for (index, (time, watermark)) in batch.times.iter().zip(&batch.watermarks).enumerate() {
            let row = first + index as u64;
            let (spans, held) = windows_of(&*self.windows, *time, *watermark);
            if spans.is_empty() {
                match held {
                    true => self.late_rows += 1,
                    false => self.skipped_rows += 1,
                }
                self.rows.release(row);
            }
            let last = spans.last().map(|span| span.end);
            for span in spans {
                let open = self.open.entry(span.end);
                let open = open.or_insert_with(|| Open::new(span));
                open.rows.push(row);
                if last == Some(span.end) {
                    open.leaving.push(row);
                }
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let watermark = i128::from(self.input.watermark());
        while let Some(entry) = self.open.first_entry() {
            if *entry.key() > watermark && !self.input.is_ended() {
                break;
            }
            let open = entry.remove();
            self.process(&open)?;
            let leaving = open.leaving.iter();
            leaving.for_each(|row| self.rows.release(*row));
        }
        Ok(())
    }

    /// Makes ready what the function gives for a window.
    fn process(&mut self, Open { span, rows, .. }: &Open) -> Result<()> {
        let columns = self.rows.pick(rows)?;
        let window = batch_of(&self.input.schema(), columns, rows.len())?;
        let given = self.function.process(span, &window)?;
        if logical_schema(&given.schema()).fields() != self.given.fields() {
            let (got, said) = (given.schema(), &self.given);
            let message = format!("{:?} gave {got:?} instead of {said:?}", self.function);
            return Err(Error::schema(message));
        }
        let count = given.num_rows();
        if count == 0 {
            return Ok(());
        }
        let time = self.schema.field(0).data_type();
        let mut columns = vec![
            constant_time(span.first(), count, time)?,
            constant_time(span.last().saturating_add(1), count, time)?,
        ];
        columns.extend(given.columns().iter().cloned());
        self.ready
            .push_back(batch_of(&self.schema, columns, count)?);
        Ok(())
    }
}

impl ProcessSource {
    /// The next rows, without counting those that the inputs left out.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(rows) = self.ready.pop_front() {
                return Ok(Some(rows));
            }
            if self.input.is_ended() {
                return Ok(None);
            }
            if let Some(batch) = self.input.next_timed()? {
                self.place(batch)?;
            }
            self.close()?;
            check_memory(self.byte_size(), self.limit)?;
            if self.input.is_waiting() {
                return Ok(Some(RecordBatch::new_empty(self.schema())));
            }
        }
    }
}

impl Source for ProcessSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
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
        state.skipped_rows += self.skipped_rows;
        state
    }

    fn describe(&self) -> Vec<String> {
        let inside = self.input.running().describe();
        std::iter::once(self.label.clone())
            .chain(inside.into_iter().map(|line| format!("  {line}")))
            .collect()
    }

    fn runs_queries(&self) -> bool {
        true
    }

    fn identity(&self) -> String {
        self.label.clone()
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
        out.list(self.open.values(), |out, open| {
            out.i128(open.span.start);
            out.i128(open.span.end);
            for rows in [&open.rows, &open.leaving] {
                out.list(rows.iter(), |out, row| out.u64(*row));
            }
        });
        write_batches(&self.ready, out)?;
        out.u64(self.late_rows);
        out.u64(self.skipped_rows);
        Ok(())
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.input.restore(from)?;
        self.rows.restore_numbered(from)?;
        self.open = from.list(|from| {
            let (start, end) = (from.i128()?, from.i128()?);
            let open = Open {
                span: Span { start, end },
                rows: from.list(StateReader::u64)?,
                leaving: from.list(StateReader::u64)?,
            };
            Ok((end, open))
        })?;
        self.ready = read_batches(&self.schema, from)?;
        self.late_rows = from.u64()?;
        self.skipped_rows = from.u64()?;
        Ok(())
    }
}
