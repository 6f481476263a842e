//! Text in rows, whatever its format: records to cells, whole rows to batches, bad rows apart.
//!
//! ```text
//! records of a TextFormat -> cells, whole row or nothing -> column builders -> batch
//!                                          | bad row: policy, line and original bytes
//! ```
//! A batch of a pipe ends early where nothing has come for a while. Where several threads may read,
//! stretches of a file are read ahead, each by one of them (ahead.rs).

mod ahead;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use self::ahead::Ahead;
use super::csv::column::ColumnBuilder;
use super::csv::field::Cell;
use super::{OnError, Rejected, RejectedRow, Source, SourceOptions};

/// Most text in a batch, which ends early beyond it; Arrow strings are limited to 2^31 bytes.
pub const BATCH_BYTES_LIMIT: usize = 256 << 20;

/// Most columns that are read of a text, as each takes memory before it has a value.
const COLUMNS_MAX: usize = 1 << 16;

/// Refuses to read so many `columns`.
///
/// # Errors
/// `LimitExceeded`, saying how to read fewer.
pub(super) fn check_width(columns: usize) -> Result<()> {
    match columns > COLUMNS_MAX {
        false => Ok(()),
        true => Err(Error::limit(format!(
            "the text has {columns} columns, over {COLUMNS_MAX}"
        ))
        .hint("check delimiter and line ends, or name the columns that are wanted")),
    }
}

/// A row that does not fit, before the policy decides.
#[derive(Debug)]
pub struct BadRow {
    /// The column that does not fit, where it is one.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub hint: &'static str,
}

/// A parsed row, or what is wrong with it.
pub type RowResult<T> = std::result::Result<T, BadRow>;

/// What reading a record came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A record.
    Record,
    /// Nothing yet: nothing has come for a while, between two records.
    Pause,
    /// The end of the text.
    End,
}

/// Time for which the first rows of a pipe are waited for, to find out what they are, before a
/// pause is taken for all that is to come now.
const SAMPLE_WAIT: Duration = Duration::from_secs(2);

/// How long first rows have been waited for.
pub(super) struct SampleClock(Instant);

impl SampleClock {
    /// Begins to wait.
    pub(super) fn start() -> Self {
        SampleClock(Instant::now())
    }

    /// Whether a pause is the end of the sample.
    pub(super) fn is_over(&self) -> bool {
        self.0.elapsed() >= SAMPLE_WAIT
    }
}

const UTF16_MARKS: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// First bytes that tell UTF-16 without a mark from text of single bytes.
const UTF16_BYTES: usize = 64;

/// Refuses text that starts with `start` where that is UTF-16: it has a mark, or a zero in every
/// other place, as ASCII in UTF-16 has.
///
/// # Errors
/// `Unsupported`, saying how to convert it.
pub(super) fn refuse_utf16(start: &[u8]) -> Result<()> {
    let is_marked = UTF16_MARKS.iter().any(|mark| start.starts_with(mark));
    let (pairs, _) = start[..start.len().min(UTF16_BYTES)].as_chunks::<2>();
    let zero_at = |at: usize| pairs.len() > 1 && pairs.iter().all(|pair| pair[at] == 0);
    let order = match (zero_at(0), zero_at(1)) {
        _ if is_marked => "",
        (true, false) => "BE",
        (false, true) => "LE",
        _ => return Ok(()),
    };
    Err(Error::unsupported("the text is UTF-16").hint(format!(
        "convert it, for example with: iconv -f UTF-16{order} -t UTF-8"
    )))
}

/// The text of one row.
pub trait TextRecord: Default + Send {
    /// Line of the file on which it starts, from 1.
    fn line(&self) -> u64;

    /// Its bytes as they stand in the file.
    fn original(&self) -> &[u8];

    /// Its share of [`BATCH_BYTES_LIMIT`].
    fn size_bytes(&self) -> usize;
}

/// How text falls into records and a record into cells.
pub trait TextFormat: Send {
    /// The text of one row.
    type Record: TextRecord;

    /// Reads the next record.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if reading fails.
    fn read(&mut self, record: &mut Self::Record) -> Result<Next>;

    /// Takes out the records that come next, at most `rows` of them, where it is seen without
    /// reading them where they end; who reads on finds those behind them.
    fn take_stretch(&mut self, rows: usize) -> Option<Self>
    where
        Self: Sized;

    /// Parses a whole row into `cells` and returns the texts they came from.
    ///
    /// # Errors
    /// What is wrong with the row.
    fn parse<'a>(
        &mut self,
        record: &'a Self::Record,
        cells: &mut Vec<Cell>,
    ) -> RowResult<Vec<Cow<'a, str>>>;
}

/// The columns of a batch while its rows arrive.
struct Columns {
    schema: SchemaRef,
    builders: Vec<ColumnBuilder>,
    cells: Vec<Cell>,
    rows: usize,
}

impl Columns {
    fn new(schema: &SchemaRef) -> Self {
        let fields = schema.fields().iter();
        let builders = fields.map(|field| ColumnBuilder::new(field.data_type().clone()));
        Columns {
            schema: Arc::clone(schema),
            builders: builders.collect(),
            cells: Vec::new(),
            rows: 0,
        }
    }

    /// Adds the row of `record`, or says what is wrong with it.
    fn push<F: TextFormat>(&mut self, format: &mut F, record: &F::Record) -> Result<RowResult<()>> {
        let texts = match format.parse(record, &mut self.cells) {
            Ok(texts) => texts,
            Err(bad) => return Ok(Err(bad)),
        };
        let cells = self.cells.iter().zip(&texts);
        for (column, (cell, text)) in self.builders.iter_mut().zip(cells) {
            column.push(*cell, text)?;
        }
        self.rows += 1;
        Ok(Ok(()))
    }

    /// The batch, where there are rows.
    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(None);
        }
        let arrays = self.builders.iter_mut().map(ColumnBuilder::finish);
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let sized = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        Ok(Some(RecordBatch::try_new_with_options(
            schema, arrays, &sized,
        )?))
    }
}

/// Rows of one text file or stream.
pub struct TextSource<F: TextFormat> {
    format: F,
    /// Rows that were read to infer the types and are still to be handed out.
    sample: VecDeque<F::Record>,
    file: Option<String>,
    options: SourceOptions,
    schema: SchemaRef,
    columns: Columns,
    rejected: Rejected,
    /// How many threads may read.
    threads: usize,
    ahead: Option<Ahead<F>>,
    done: bool,
}

impl<F: TextFormat + 'static> TextSource<F> {
    /// Rows of `schema`, first those of `sample`.
    pub(super) fn of_format(
        format: F,
        sample: VecDeque<F::Record>,
        schema: Schema,
        options: SourceOptions,
    ) -> Self {
        let schema = Arc::new(schema);
        TextSource {
            format,
            sample,
            file: None,
            options,
            columns: Columns::new(&schema),
            schema,
            rejected: Rejected::default(),
            threads: 1,
            ahead: None,
            done: false,
        }
    }

    /// The same rows of the file at `path`, whose name errors have; a regular one may be read by
    /// several threads.
    pub(super) fn of_file(mut self, path: &Path) -> Self {
        self.file = Some(path.display().to_string());
        if path.is_file() {
            self.threads = self.options.threads.unwrap_or(1);
        }
        self
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.threads > 1 && self.sample.is_empty() {
            let batch = self.read_ahead()?;
            if batch.is_some() {
                return Ok(batch);
            }
        }
        self.read_here()
    }

    /// The next batch of the stretches that threads read; `None` where the next record is of none.
    fn read_ahead(&mut self) -> Result<Option<RecordBatch>> {
        if self.ahead.is_none() {
            let stops = self.options.on_error == OnError::Fail;
            match Ahead::start(self.threads, &self.schema, stops) {
                Ok(ahead) => self.ahead = Some(ahead),
                Err(_) => self.threads = 1,
            }
        }
        loop {
            let Some(ahead) = &mut self.ahead else {
                return Ok(None);
            };
            while ahead.has_room() {
                match self.format.take_stretch(self.options.batch_rows) {
                    Some(stretch) => ahead.push(stretch),
                    None => break,
                }
            }
            let Some(stretch) = ahead.next()? else {
                return Ok(None);
            };
            for (line, original, bad) in stretch.bad {
                self.reject(line, original, bad)?;
            }
            if stretch.batch.is_some() {
                return Ok(stretch.batch);
            }
        }
    }

    fn read_here(&mut self) -> Result<Option<RecordBatch>> {
        let mut record = F::Record::default();
        let mut size_bytes = 0;
        let has_sample = !self.sample.is_empty();
        while self.columns.rows < self.options.batch_rows && size_bytes < BATCH_BYTES_LIMIT {
            match self.sample.pop_front() {
                Some(sampled) => record = sampled,
                // The rest is for others.
                None if has_sample && self.threads > 1 && self.columns.rows > 0 => break,
                None => match self.format.read(&mut record)? {
                    Next::Record => {}
                    Next::Pause if self.columns.rows == 0 => {
                        return Ok(Some(RecordBatch::new_empty(Arc::clone(&self.schema))));
                    }
                    Next::Pause | Next::End => break,
                },
            }
            match self.columns.push(&mut self.format, &record)? {
                Ok(()) => size_bytes += record.size_bytes(),
                Err(bad) => self.reject(record.line(), record.original().to_vec(), bad)?,
            }
        }
        self.columns.finish()
    }

    fn reject(&mut self, line: u64, original: Vec<u8>, bad: BadRow) -> Result<()> {
        let mut error = Error::schema(&bad.reason).row(line).hint(bad.hint);
        if let Some(column) = &bad.column {
            error = error.column(column);
        }
        let row = RejectedRow {
            file: self.file.clone(),
            line,
            column: bad.column,
            reason: bad.reason,
            original,
        };
        if let (OnError::DeadLetter, Some(letters)) =
            (self.options.on_error, &self.options.dead_letters)
        {
            letters.put(&row)?;
        }
        self.rejected.admit(row, self.options.policy(), error)
    }
}

impl<F: TextFormat + 'static> Source for TextSource<F> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.done {
            return Ok(None);
        }
        let outcome = self.read_batch();
        self.done = !matches!(outcome, Ok(Some(_)));
        if self.done {
            self.ahead = None;
        }
        outcome.map_err(|error| match &self.file {
            Some(file) => error.file(file),
            None => error,
        })
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}
