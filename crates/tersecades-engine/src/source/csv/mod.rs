//! CSV as it is found: other delimiters, gzip and zstd, null strings, ragged rows, odd times.
//!
//! ```text
//! bytes -> unpack -> drop byte order mark -> guess delimiter -> records (record.rs)
//!       -> header -> guess types from the first rows (plan.rs, inference.rs), then hand them out
//!       -> cells, whole row or nothing (field.rs) -> column builders (column.rs) -> batch
//! ```
//! A row is parsed completely before any column takes it, so a bad row leaves no trace in the
//! batch. Text columns always become `Dictionary(Int32, Utf8)`, one dictionary a batch; give a
//! column the type utf8 where nearly every value differs. Every column is nullable.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use tersecades_columnar::error::{Error, Result};

use self::field::Cell;
use self::plan::{
    ColumnPlan, field_list, infer_types, plan_column, plan_types, read_names, sample_rows,
};
use self::quote::QuoteWalk;
use self::record::{Record, RecordReader, read_error};
use self::sniff::sniff_delimiter;
use super::packed::{self, READ_BUFFER_BYTES};
use super::text::{
    BadRow, Next, RowResult, SampleClock, TextFormat, TextRecord, TextSource, check_width,
    refuse_utf16,
};
use super::trickle::is_pause;
use super::{SourceKind, SourceOptions};

pub mod column;
pub mod exact;
pub mod field;
pub mod inference;
mod plan;
pub(in crate::source) mod quote;
pub mod record;
mod sniff;
#[cfg(test)]
mod tests;
pub mod timestamp;

/// The line of this format in [`super::SOURCES`].
pub const KIND: SourceKind = SourceKind {
    name: "csv",
    suffixes: &[".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst"],
    summary: "delimited text, plain, gzip or zstd; delimiter and types are found out",
    open: |path, options| Ok(Box::new(CsvSource::open(path, options)?)),
    read: Some(|input, options| Ok(Box::new(CsvSource::new(input, options.clone())?))),
};

/// Rows that types are inferred from unless [`CsvOptions::infer_rows`] says otherwise.
pub const INFER_ROWS_DEFAULT: usize = 10_000;

/// Fields that mean null unless [`CsvOptions::null_strings`] says otherwise.
pub const NULL_STRINGS_DEFAULT: [&str; 7] = ["", "NA", "N/A", "null", "NULL", "NaN", "-"];

/// Bytes at the start of the file that the delimiter is guessed from.
const SNIFF_BYTES: u64 = 64 << 10;

/// Bytes at the start of the file that tell UTF-8 from UTF-16.
pub(in crate::source) const MARK_BYTES: u64 = 4;

const UTF8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// How to read CSV; of JSON, types, timestamp formats and `infer_rows`.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// Field delimiter; `None` guesses among `,` `;` tab and `|`.
    pub delimiter: Option<u8>,
    /// Whether the first row holds the names; else they are `column_1`, `column_2`, ….
    pub header: bool,
    /// Fields that mean null, [`NULL_STRINGS_DEFAULT`] by default. `NaN` among them stays a number
    /// in float columns, and a field in quotes stays text in text columns.
    pub null_strings: Vec<String>,
    /// Types of columns by name; the others are inferred.
    pub types: Vec<(String, DataType)>,
    /// strftime patterns of timestamp or date columns by name. Without a type, such a column is a
    /// timestamp in microseconds, in UTC if the pattern reads an offset.
    pub timestamp_formats: Vec<(String, String)>,
    /// Rows that types are inferred from.
    pub infer_rows: usize,
    /// Whether text loses the blanks around it; `None` does so if each name but the first of the
    /// first row starts with a blank or tab, as in `a; b; c`. Numbers and times always do.
    pub trim: Option<bool>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions {
            delimiter: None,
            header: true,
            null_strings: NULL_STRINGS_DEFAULT.map(String::from).to_vec(),
            types: Vec::new(),
            timestamp_formats: Vec::new(),
            infer_rows: INFER_ROWS_DEFAULT,
            trim: None,
        }
    }
}

/// Rows of one CSV file or stream.
pub type CsvSource = TextSource<Csv>;

/// Delimited text.
pub struct Csv {
    records: RecordReader,
    delimiter: u8,
    plans: Arc<[ColumnPlan]>,
    fields: usize,
}

impl CsvSource {
    /// Opens the file at `path`; gzip and zstd are recognised by content.
    ///
    /// # Errors
    /// As [`Self::from_reader`], and `Io` if the file cannot be opened.
    pub fn open(path: &Path, options: &SourceOptions) -> Result<Self> {
        let mut options = options.clone();
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().to_lowercase();
        let mut tabs = KIND.suffixes.iter().filter(|it| it.starts_with(".tsv"));
        if tabs.any(|suffix| name.ends_with(suffix)) {
            options.csv.delimiter = options.csv.delimiter.or(Some(b'\t'));
        }
        Ok(Self::new(packed::open(path)?, options)?.of_file(path))
    }

    /// Reads plain text from `input`; any bytes may come.
    ///
    /// A live stream starts fastest with the delimiter and every type given: guessing waits for
    /// 64 KiB, inferring for `infer_rows` rows, or for the end; of a [`Trickle`](super::Trickle),
    /// two seconds at most once there is a row.
    ///
    /// # Errors
    /// `Io` and `Corrupt` if reading fails, `Unsupported` for UTF-16, `SchemaMismatch` without a
    /// first row, `InvalidArgument` for options that name unknown columns or wrong patterns.
    pub fn from_reader(input: impl Read + Send + 'static, options: &SourceOptions) -> Result<Self> {
        let input = BufReader::with_capacity(READ_BUFFER_BYTES, input);
        Self::new(Box::new(input), options.clone())
    }

    fn new(mut input: Box<dyn BufRead + Send>, mut options: SourceOptions) -> Result<Self> {
        options.validate()?;
        check_delimiter(options.csv.delimiter)?;
        let start_bytes = match options.csv.delimiter {
            Some(_) => MARK_BYTES,
            None => SNIFF_BYTES,
        };
        let (start, is_whole) = read_start(&mut input, start_bytes)?;
        let delimiter = options
            .csv
            .delimiter
            .unwrap_or_else(|| sniff_delimiter(&start, is_whole));
        let mut records = RecordReader::new(Box::new(Cursor::new(start).chain(input)), delimiter);
        let mut sample = VecDeque::new();
        let names = read_names(&mut records, &mut sample, delimiter, &mut options.csv)?;
        let types = plan_types(&names, &options.csv)?;
        sample_rows(&mut records, &mut sample, &types, &options.csv)?;
        let types = infer_types(types, &sample, &options.csv);
        let whole: Schema = Schema::new(field_list(&names, &types));
        let positions = options.project(&whole)?;
        check_width(positions.len())?;
        let schema = whole.project(&positions)?;
        let plans = positions
            .into_iter()
            .map(|position| plan_column(position, whole.field(position), &options.csv))
            .collect::<Result<_>>()?;
        let format = Csv {
            records,
            delimiter,
            plans,
            fields: names.len(),
        };
        Ok(Self::of_format(format, sample, schema, options))
    }
}

impl TextRecord for Record {
    fn line(&self) -> u64 {
        self.line
    }

    fn original(&self) -> &[u8] {
        self.original()
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes()
    }
}

impl TextFormat for Csv {
    type Record = Record;

    fn read(&mut self, record: &mut Record) -> Result<Next> {
        self.records.read(record)
    }

    fn take_stretch(&mut self, rows: usize) -> Option<Self> {
        let records = self.records.take_lines(rows)?;
        Some(Csv {
            records,
            delimiter: self.delimiter,
            plans: Arc::clone(&self.plans),
            fields: self.fields,
        })
    }

    fn parse<'a>(
        &mut self,
        record: &'a Record,
        cells: &mut Vec<Cell>,
    ) -> RowResult<Vec<Cow<'a, str>>> {
        if let Some(quote) = record.bad_quote {
            return Err(BadRow {
                column: None,
                reason: quote.reason(),
                hint: quote.hint(),
            });
        }
        if record.field_count() != self.fields {
            return Err(BadRow {
                column: None,
                reason: format!(
                    "row has {} fields instead of {}",
                    record.field_count(),
                    self.fields
                ),
                hint: "check delimiter and quotes, or skip bad rows",
            });
        }
        cells.clear();
        let mut texts = Vec::with_capacity(self.plans.len());
        let mut quotes = QuoteWalk::new(record, self.delimiter);
        for plan in self.plans.iter() {
            let bytes = record.field(plan.position).unwrap_or_default();
            let (cell, text) = parse_field(plan, bytes, &mut quotes)?;
            cells.push(cell);
            texts.push(Cow::Borrowed(text));
        }
        Ok(texts)
    }
}

/// The first bytes, up to `most` of them and fewer of a pipe that pauses behind its first lines,
/// without a byte order mark; whether these are all.
///
/// # Errors
/// `Unsupported` for UTF-16, and what reading says.
pub(in crate::source) fn read_start(mut input: impl BufRead, most: u64) -> Result<(Vec<u8>, bool)> {
    let (mut start, mut clock) = (Vec::new(), None);
    let is_whole = loop {
        let left = most.saturating_sub(start.len() as u64);
        match input.by_ref().take(left).read_to_end(&mut start) {
            Ok(_) => break (start.len() as u64) < most,
            Err(error) if is_pause(&error) => {
                let lines = memchr::memchr_iter(b'\n', &start).count();
                let mut is_over = || clock.get_or_insert_with(SampleClock::start).is_over();
                if lines > 1 || lines == 1 && is_over() {
                    break false;
                }
            }
            Err(error) => return Err(read_error(error)),
        }
    };
    refuse_utf16(&start)?;
    if start.starts_with(UTF8_MARK) {
        start.drain(..UTF8_MARK.len());
    }
    Ok((start, is_whole))
}

fn check_delimiter(delimiter: Option<u8>) -> Result<()> {
    match delimiter {
        Some(b'"' | b'\n' | b'\r') => Err(Error::invalid(
            "quotes and line ends cannot separate CSV fields",
        )
        .hint("use one of , ; | or a tab")),
        _ => Ok(()),
    }
}

fn parse_field<'a>(
    plan: &ColumnPlan,
    bytes: &'a [u8],
    quotes: &mut QuoteWalk<'_>,
) -> RowResult<(Cell, &'a str)> {
    let bad = |reason, hint| BadRow {
        column: Some(plan.name.clone()),
        reason,
        hint,
    };
    let text = std::str::from_utf8(bytes).map_err(|_| {
        let shown = String::from_utf8_lossy(bytes);
        bad(
            format!("`{}` is not UTF-8", excerpt(&shown)),
            "convert the file to UTF-8",
        )
    })?;
    let text = if plan.trim { text.trim_ascii() } else { text };
    if plan.nulls.contains(text) {
        let is_text = plan.kind.keeps_quoted() && quotes.is_quoted(plan.position);
        return Ok((if is_text { Cell::Text } else { Cell::Null }, text));
    }
    match plan.kind.parse(text) {
        Ok(cell) => Ok((cell, text)),
        Err(misfit) => Err(bad(
            format!("`{}` {}", excerpt(text), misfit.reason),
            misfit.hint,
        )),
    }
}

/// Enough of `text` to recognise it by in a message.
pub(in crate::source) fn excerpt(text: &str) -> String {
    const SHOWN_CHARS: usize = 64;
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
