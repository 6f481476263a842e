//! JSON as it is found: lines, arrays, sequences; nested objects flattened with dots.
//!
//! ```text
//! bytes -> unpack -> records (record.rs) -> survey of the first rows (plan.rs), then handed out
//!       -> one walk over the text, no tree (scan.rs) -> cells, whole row or nothing (row.rs)
//!       -> column builders, shared with CSV -> batch
//! ```
//! Absent keys are null. Arrays, and objects under a key that holds other values as well or none
//! but empty ones in the first rows, are kept as their JSON text. A key that the first rows and the
//! options do not name makes a row bad, so that no value is lost silently. Of
//! [`CsvOptions`](super::CsvOptions) the types, timestamp formats and `infer_rows` count.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{BufRead, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use arrow_schema::Schema;
use tersecades_columnar::error::Result;

use self::plan::Survey;
use self::record::{Framing, Record, RecordReader};
use self::row::RowPlan;
use super::csv::field::Cell;
use super::csv::{MARK_BYTES, read_start};
use super::packed::{self, unpack};
use super::text::{Next, RowResult, SampleClock, TextFormat, TextRecord, TextSource, check_width};
use super::{SourceKind, SourceOptions};

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
pub type JsonSource = TextSource<Json>;

/// Objects, one a row.
pub struct Json {
    records: RecordReader,
    plan: Arc<RowPlan>,
    /// Memory for the path to a value.
    path: String,
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
        Ok(Self::new(packed::open(path)?, framing, options)?.of_file(path))
    }

    fn new(
        mut input: Box<dyn BufRead + Send>,
        framing: Framing,
        options: &SourceOptions,
    ) -> Result<Self> {
        options.validate()?;
        let (start, _) = read_start(&mut input, MARK_BYTES)?;
        let input = Box::new(Cursor::new(start).chain(input));
        let mut records = RecordReader::new(input, framing);
        let sample = sample_rows(&mut records, options.csv.infer_rows)?;
        let survey = Survey::new(&sample);
        let whole = Schema::new(survey.columns(&options.csv)?);
        let positions = options.project(&whole)?;
        check_width(positions.len())?;
        let schema = whole.project(&positions)?;
        let plan = RowPlan::new(&whole, &positions, &options.csv)?;
        let format = Json {
            records,
            plan: Arc::new(plan),
            path: String::new(),
        };
        Ok(Self::of_format(format, sample, schema, options.clone()))
    }
}

impl TextRecord for Record {
    fn line(&self) -> u64 {
        self.line
    }

    fn original(&self) -> &[u8] {
        &self.text
    }

    fn size_bytes(&self) -> usize {
        self.text.len()
    }
}

impl TextFormat for Json {
    type Record = Record;

    fn read(&mut self, record: &mut Record) -> Result<Next> {
        self.records.read(record)
    }

    fn take_stretch(&mut self, rows: usize) -> Option<Self> {
        let records = self.records.take_lines(rows)?;
        Some(Json {
            records,
            plan: Arc::clone(&self.plan),
            path: String::new(),
        })
    }

    fn parse<'a>(
        &mut self,
        record: &'a Record,
        cells: &mut Vec<Cell>,
    ) -> RowResult<Vec<Cow<'a, str>>> {
        self.plan.parse(&record.text, &mut self.path, cells)
    }
}

/// The rows that types are inferred from.
fn sample_rows(records: &mut RecordReader, rows: usize) -> Result<VecDeque<Record>> {
    let (mut sample, mut size_bytes) = (VecDeque::new(), 0);
    let mut record = Record::default();
    let mut clock = SampleClock::start();
    while sample.len() < rows && size_bytes < INFER_BYTES_LIMIT {
        match records.read(&mut record)? {
            Next::Record => {}
            Next::Pause if sample.is_empty() || !clock.is_over() => continue,
            Next::Pause | Next::End => break,
        }
        size_bytes += record.text.len() + size_of::<Record>();
        sample.push_back(record.clone());
        if sample.len() == 1 {
            clock = SampleClock::start();
        }
    }
    Ok(sample)
}
