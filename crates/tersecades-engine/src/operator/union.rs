//! `union`: the rows of several streams with the same columns.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use crate::error_bound::{carried, of_any};
use crate::runtime::Running;
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::query::narrowed;
use crate::source::table::Table;
use crate::source::{Rejected, Source, SourceState};
use crate::stream::Stream;

use super::OperatorKind;

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "union",
    summary: "the rows of several streams with the same columns",
};

/// The rows of several streams, one stream after the other.
pub struct UnionTable {
    streams: Vec<Stream>,
    schema: SchemaRef,
}

impl UnionTable {
    /// The rows of `streams`.
    ///
    /// # Errors
    /// `InvalidArgument` without streams, `SchemaMismatch` when their columns differ.
    pub fn new(streams: impl IntoIterator<Item = Stream>) -> Result<Self> {
        let streams: Vec<Stream> = streams.into_iter().collect();
        let schemas: Vec<SchemaRef> = streams.iter().map(Stream::schema).collect::<Result<_>>()?;
        let Some((first, others)) = schemas.split_first() else {
            return Err(Error::invalid("a union of no streams"));
        };
        others
            .iter()
            .try_for_each(|other| check_same(first, other))?;
        let schema = of_any(first, others);
        Ok(UnionTable { streams, schema })
    }
}

/// Refuses columns that differ in number, name or type.
pub(super) fn check_same(expected: &Schema, got: &Schema) -> Result<()> {
    let columns = |schema: &Schema| -> Vec<(String, DataType)> {
        let fields = schema.fields().iter();
        fields
            .map(|f| (f.name().clone(), f.data_type().clone()))
            .collect()
    };
    let (expected, got) = (columns(expected), columns(got));
    if expected == got {
        return Ok(());
    }
    let shown = |columns: &[(String, DataType)]| {
        let parts = columns.iter().map(|(name, kind)| format!("{name} {kind}"));
        parts.collect::<Vec<_>>().join(", ")
    };
    Err(Error::schema(format!(
        "streams of a union have different columns: ({}) and ({})",
        shown(&expected),
        shown(&got)
    ))
    .hint("project each to the same names and types"))
}

impl Table for UnionTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn ends(&self) -> bool {
        self.streams.iter().all(Stream::ends)
    }

    fn may_reject(&self) -> bool {
        self.streams.iter().any(Stream::may_reject)
    }

    fn has_updates(&self) -> bool {
        self.streams.iter().any(Stream::has_updates)
    }

    fn begins_again(&self) -> bool {
        self.streams.iter().all(Stream::begins_again)
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_with(columns, &RunOptions::default())
    }

    fn open_with(&self, columns: Option<&[String]>, options: &RunOptions) -> Result<Origin> {
        let streams = self.streams.iter();
        let run = |stream| {
            narrowed(stream, &self.schema, columns)
                .inherit(options)
                .run()
        };
        let mut inputs: Vec<Running> = streams.map(run).collect::<Result<_>>()?;
        inputs.reverse();
        let schema = match inputs.last() {
            Some(first) => carried(&first.schema(), &self.schema),
            None => Arc::clone(&self.schema),
        };
        Ok(Origin::Source(Box::new(UnionSource {
            schema,
            count: inputs.len(),
            inputs,
            past: SourceState::default(),
            past_rejected_rows: 0,
            rejected: Rejected::default(),
        })))
    }
}

struct UnionSource {
    schema: SchemaRef,
    /// Streams not yet read to their end, the next one last.
    inputs: Vec<Running>,
    /// How many there were.
    count: usize,
    /// What streams that have ended counted.
    past: SourceState,
    /// What they could not read.
    past_rejected_rows: u64,
    rejected: Rejected,
}

impl Source for UnionSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(input) = self.inputs.last_mut() {
            let next = input.next_at_hand();
            let rejected_rows = input.rejected_rows();
            self.rejected.count_rows = self.past_rejected_rows + rejected_rows;
            if let Some(batch) = next? {
                return Ok(Some(batch));
            }
            self.past += SourceState {
                bytes: 0,
                ..input.state()
            };
            self.past_rejected_rows += rejected_rows;
            self.inputs.pop();
        }
        Ok(None)
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        let mut state = self.past;
        if let Some(input) = self.inputs.last() {
            state += input.state();
        }
        state
    }

    fn describe(&self) -> Vec<String> {
        let inputs = self.inputs.iter().rev();
        let inputs = inputs.flat_map(|input| input.describe());
        std::iter::once("union of".to_owned())
            .chain(inputs.map(|line| format!("  {line}")))
            .collect()
    }

    fn runs_queries(&self) -> bool {
        true
    }

    fn identity(&self) -> String {
        format!("union of {}", self.count)
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        out.u64(self.inputs.len() as u64);
        out.u64(self.past.late_rows);
        out.u64(self.past.untimed_rows);
        out.u64(self.past.skipped_rows);
        out.u64(self.past.future_rows);
        out.u64(self.past_rejected_rows);
        match self.inputs.last_mut() {
            Some(input) => input.snapshot_input(out),
            None => Ok(()),
        }
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let left = from.u64()? as usize;
        if left > self.inputs.len() {
            return Err(Error::corrupt("the snapshot is of a union of more streams"));
        }
        self.inputs.truncate(left);
        self.past.late_rows = from.u64()?;
        self.past.untimed_rows = from.u64()?;
        self.past.skipped_rows = from.u64()?;
        self.past.future_rows = from.u64()?;
        self.past_rejected_rows = from.u64()?;
        self.rejected.count_rows = self.past_rejected_rows;
        match self.inputs.last_mut() {
            Some(input) => input.restore_input(from),
            None => Ok(()),
        }
    }
}
