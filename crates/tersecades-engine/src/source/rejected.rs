//! Rows that cannot be read: what happens to them, how many there are, and their originals.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray, UInt64Array};
use tersecades_columnar::error::{Error, Result};

/// Bad rows whose original text is kept under [`OnError::Skip`], for the message at the end.
pub const SKIPPED_ROWS_KEPT: usize = 10;

/// Bad rows that [`OnError::DeadLetter`] keeps before it fails with `LimitExceeded`.
pub const DEAD_LETTER_ROWS_LIMIT: usize = 100_000;

/// What a text source does with a row that does not fit the schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnError {
    /// Stop with an error that names file, row, column and text.
    #[default]
    Fail,
    /// Leave the row out and count it; the first [`SKIPPED_ROWS_KEPT`] originals are kept.
    Skip,
    /// Leave the row out and hand every original to [`DeadLetters`], where there are any, or else
    /// keep it, up to [`DEAD_LETTER_ROWS_LIMIT`].
    DeadLetter,
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedRow {
    /// The file, where it has a name.
    pub file: Option<String>,
    /// Line of the file on which the row starts, from 1.
    pub line: u64,
    /// Column that did not parse; `None` when the row as a whole is malformed.
    pub column: Option<String>,
    /// What is wrong with it.
    pub reason: String,
    /// The bytes of the row as they stand in the file, without the line end.
    pub original: Vec<u8>,
}

/// The rows left out: how many, and the originals that were kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rejected {
    /// Number of rows left out, kept or not.
    pub count_rows: u64,
    /// Originals, in file order.
    pub kept: Vec<RejectedRow>,
}

impl Rejected {
    /// Applies `policy` to one bad row.
    ///
    /// # Errors
    /// That of the row under [`OnError::Fail`]; `LimitExceeded` when the dead letters are full.
    pub fn admit(&mut self, row: RejectedRow, policy: OnError, error: Error) -> Result<()> {
        let kept_limit = match policy {
            OnError::Fail => return Err(error),
            OnError::Skip => SKIPPED_ROWS_KEPT,
            OnError::DeadLetter => DEAD_LETTER_ROWS_LIMIT,
        };
        if policy == OnError::DeadLetter && self.kept.len() >= kept_limit {
            return Err(
                Error::limit(format!("more than {kept_limit} dead-letter rows"))
                    .row(row.line)
                    .hint("check delimiter, header and types, or skip bad rows instead"),
            );
        }
        self.count_rows += 1;
        if self.kept.len() < kept_limit {
            self.kept.push(row);
        }
        Ok(())
    }

    /// Adds what one file has left out, of which `counted` rows and originals are added already.
    pub(super) fn absorb(
        &mut self,
        found: &Rejected,
        counted: &mut (u64, usize),
        policy: OnError,
        file: &str,
    ) -> Result<()> {
        let (rows, kept) = std::mem::replace(counted, (found.count_rows, found.kept.len()));
        self.count_rows += found.count_rows - rows;
        for row in found.kept.iter().skip(kept) {
            match policy {
                OnError::DeadLetter if self.kept.len() >= DEAD_LETTER_ROWS_LIMIT => {
                    let message = format!("more than {DEAD_LETTER_ROWS_LIMIT} dead-letter rows");
                    return Err(Error::limit(message)
                        .file(file)
                        .row(row.line)
                        .hint("check delimiter, header and types, or skip bad rows instead"));
                }
                OnError::Skip if self.kept.len() >= SKIPPED_ROWS_KEPT => break,
                _ => self.kept.push(RejectedRow {
                    file: Some(file.to_owned()),
                    ..row.clone()
                }),
            }
        }
        Ok(())
    }
}

type Receiver = dyn FnMut(&RejectedRow) -> Result<()> + Send;

/// Takes rows that cannot be read as they are met, from all sources that were given it.
///
/// # Examples
/// ```
/// use std::sync::{Arc, Mutex};
/// use tersecades_engine::source::{CsvOptions, DeadLetters, OnError, Source, SourceOptions, read};
/// use tersecades_engine::source::RejectedRow;
///
/// let bad: Arc<Mutex<Vec<RejectedRow>>> = Arc::default();
/// let to = Arc::clone(&bad);
/// let options = SourceOptions {
///     format: Some("csv".to_owned()),
///     on_error: OnError::DeadLetter,
///     dead_letters: Some(DeadLetters::new(move |row| {
///         to.lock().unwrap().push(row.clone());
///         Ok(())
///     })),
///     csv: CsvOptions {
///         types: vec![("n".to_owned(), arrow_schema::DataType::Int64)],
///         ..CsvOptions::default()
///     },
///     ..SourceOptions::default()
/// };
/// let mut source = read(&b"n\n1\nx\n3\n"[..], &options)?;
/// assert_eq!(source.next()?.unwrap().num_rows(), 2);
/// assert_eq!(bad.lock().unwrap()[0].original, b"x");
/// # Ok::<(), tersecades_columnar::error::Error>(())
/// ```
#[derive(Clone)]
pub struct DeadLetters(Arc<Mutex<Receiver>>);

impl DeadLetters {
    /// Hands each row to `receiver`, whose errors end the reading.
    pub fn new(receiver: impl FnMut(&RejectedRow) -> Result<()> + Send + 'static) -> Self {
        DeadLetters(Arc::new(Mutex::new(receiver)))
    }

    /// Hands a row on.
    ///
    /// # Errors
    /// What the receiver says.
    pub fn put(&self, row: &RejectedRow) -> Result<()> {
        let mut receiver = self.0.lock().unwrap_or_else(|held| held.into_inner());
        (*receiver)(row)
    }
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("DeadLetters")
    }
}

/// Rows that were left out, as rows: file, line, column, reason, and the original bytes.
///
/// # Errors
/// What Arrow says.
pub fn rejected_batch(rows: &[RejectedRow]) -> Result<RecordBatch> {
    let originals = rows.iter().map(|row| Some(&row.original[..]));
    batch_with(rows, Arc::new(originals.collect::<BinaryArray>()))
}

/// The same with originals as text, in which what is no UTF-8 stands as U+FFFD.
///
/// # Errors
/// What Arrow says.
pub fn rejected_text(rows: &[RejectedRow]) -> Result<RecordBatch> {
    let originals = rows.iter();
    let originals = originals.map(|row| Some(String::from_utf8_lossy(&row.original)));
    batch_with(rows, Arc::new(originals.collect::<StringArray>()))
}

fn batch_with(rows: &[RejectedRow], originals: ArrayRef) -> Result<RecordBatch> {
    let texts = |of: fn(&RejectedRow) -> Option<&str>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let lines = UInt64Array::from_iter_values(rows.iter().map(|row| row.line));
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("file", texts(|row| row.file.as_deref()), true),
        ("line", Arc::new(lines) as ArrayRef, false),
        ("column", texts(|row| row.column.as_deref()), true),
        ("reason", texts(|row| Some(&row.reason)), false),
        ("original", originals, false),
    ])?)
}
