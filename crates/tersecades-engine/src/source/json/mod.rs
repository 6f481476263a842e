//! JSON as it is found: lines, arrays, sequences; nested objects flattened with dots.
//!
//! ```text
//! bytes -> unpack -> records (record.rs) -> survey of the first rows (plan.rs), then handed out
//!       -> one walk over the text, no tree (scan.rs) -> cells, whole row or nothing (row.rs)
//!       -> column builders, shared with CSV -> batch
//! ```
//! Absent keys are null. Arrays, and objects under a key that holds other values as well, are kept
//! as their JSON text. A key that the first rows and the options do not name makes a row bad, so
//! that no value is lost silently. Of [`CsvOptions`](super::CsvOptions) the types, timestamp
//! formats and `infer_rows` count.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use self::plan::Survey;
use self::record::{Framing, Record, RecordReader};
use self::row::RowPlan;
use super::csv::column::ColumnBuilder;
use super::csv::{BATCH_BYTES_LIMIT, BadRow, UTF8_MARK};
use super::packed::unpack;
use super::{Rejected, RejectedRow, Source, SourceKind, SourceOptions};

mod plan;
mod record;
mod row;
mod scan;
#[cfg(test)]
mod tests;

/// The line of JSON lines in [`super::SOURCES`].
pub const LINES_KIND: SourceKind = SourceKind {
    name: "jsonl",
    suffixes: &[
        ".jsonl",
        ".ndjson",
        ".jsonl.gz",
        ".ndjson.gz",
        ".jsonl.zst",
        ".ndjson.zst",
    ],
    summary: "JSON lines, plain, gzip or zstd; nested objects become columns with dots",
    open: |path, options| Ok(Box::new(JsonSource::open(path, Framing::Lines, options)?)),
    read: Some(|input, options| Ok(Box::new(JsonSource::new(input, Framing::Lines, options)?))),
};

/// The line of JSON arrays in [`super::SOURCES`].
pub const ARRAY_KIND: SourceKind = SourceKind {
    name: "json",
    suffixes: &[".json", ".json.gz", ".json.zst"],
    summary: "an array of JSON objects, or one object after the other",
    open: |path, options| {
        Ok(Box::new(JsonSource::open(
            path,
            Framing::Elements,
            options,
        )?))
    },
    read: Some(|input, options| {
        Ok(Box::new(JsonSource::new(
            input,
            Framing::Elements,
            options,
        )?))
    }),
};

/// Most memory for the rows that types are inferred from; fewer rows are used beyond it.
const INFER_BYTES_LIMIT: usize = 64 << 20;

/// Rows of one JSON file or stream.
pub struct JsonSource {
    records: RecordReader,
    /// Rows that were read to infer the types and are still to be handed out.
    sample: VecDeque<Record>,
    file: Option<String>,
    options: SourceOptions,
    schema: SchemaRef,
    plan: RowPlan,
    columns: Vec<ColumnBuilder>,
    rejected: Rejected,
    done: bool,
}

impl JsonSource {
    /// Reads JSON lines from `input`, plain or packed; any bytes may come.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if reading fails, `SchemaMismatch` without any column,
    /// `InvalidArgument` for wrong options.
    pub fn from_lines(input: impl Read + Send + 'static, options: &SourceOptions) -> Result<Self> {
        Self::new(unpack(input)?, Framing::Lines, options)
    }

    /// Reads an array or a sequence of objects from `input`, plain or packed; any bytes may come.
    ///
    /// # Errors
    /// As [`Self::from_lines`]; `Corrupt` also for an array that is cut.
    pub fn from_array(input: impl Read + Send + 'static, options: &SourceOptions) -> Result<Self> {
        Self::new(unpack(input)?, Framing::Elements, options)
    }

    fn open(path: &Path, framing: Framing, options: &SourceOptions) -> Result<Self> {
        let mut source = Self::new(unpack(File::open(path)?)?, framing, options)?;
        source.file = Some(path.display().to_string());
        Ok(source)
    }

    fn new(
        mut input: Box<dyn BufRead + Send>,
        framing: Framing,
        options: &SourceOptions,
    ) -> Result<Self> {
        options.validate()?;
        if input.fill_buf()?.starts_with(UTF8_MARK) {
            input.consume(UTF8_MARK.len());
        }
        let mut records = RecordReader::new(input, framing);
        let sample = sample_rows(&mut records, options.csv.infer_rows)?;
        let survey = Survey::new(&sample);
        let whole = Schema::new(survey.columns(&options.csv)?);
        let positions = options.project(&whole)?;
        let schema = Arc::new(whole.project(&positions)?);
        let plan = RowPlan::new(&whole, &positions, survey.objects(), &options.csv)?;
        let fields = schema.fields().iter();
        let columns = fields.map(|field| ColumnBuilder::new(field.data_type().clone()));
        Ok(JsonSource {
            records,
            sample,
            file: None,
            options: options.clone(),
            plan,
            columns: columns.collect(),
            schema,
            rejected: Rejected::default(),
            done: false,
        })
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>> {
        let (mut record, mut cells) = (Record::default(), Vec::new());
        let mut path = String::new();
        let (mut rows, mut size_bytes) = (0, 0);
        while rows < self.options.batch_rows && size_bytes < BATCH_BYTES_LIMIT {
            match self.sample.pop_front() {
                Some(sampled) => record = sampled,
                None if self.records.read(&mut record)? => {}
                None => break,
            }
            match self.plan.parse(&record.text, &mut path, &mut cells) {
                Ok(texts) => {
                    for ((column, cell), text) in self.columns.iter_mut().zip(&cells).zip(&texts) {
                        column.push(*cell, text)?;
                    }
                    rows += 1;
                    size_bytes += record.text.len();
                }
                Err(bad) => self.reject(&record, bad)?,
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        let arrays = self.columns.iter_mut().map(ColumnBuilder::finish);
        let arrays = arrays.collect::<Result<_>>()?;
        let sized = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(
            self.schema.clone(),
            arrays,
            &sized,
        )?))
    }

    fn reject(&mut self, record: &Record, bad: BadRow) -> Result<()> {
        let mut error = Error::schema(&bad.reason).row(record.line).hint(bad.hint);
        if let Some(column) = &bad.column {
            error = error.column(column);
        }
        let row = RejectedRow {
            file: None,
            line: record.line,
            column: bad.column,
            reason: bad.reason,
            original: record.text.clone(),
        };
        self.rejected.admit(row, self.options.on_error, error)
    }
}

/// The rows that types are inferred from.
fn sample_rows(records: &mut RecordReader, rows: usize) -> Result<VecDeque<Record>> {
    let (mut sample, mut size_bytes) = (VecDeque::new(), 0);
    let mut record = Record::default();
    while sample.len() < rows && size_bytes < INFER_BYTES_LIMIT && records.read(&mut record)? {
        size_bytes += record.text.len() + size_of::<Record>();
        sample.push_back(record.clone());
    }
    Ok(sample)
}

impl Source for JsonSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.done {
            return Ok(None);
        }
        let outcome = self.read_batch();
        self.done = !matches!(outcome, Ok(Some(_)));
        outcome.map_err(|error| match &self.file {
            Some(file) => error.file(file),
            None => error,
        })
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}
