//! Options of commands that read files and encode what they read, and the reading itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use tersecades::Result;
use tersecades::columnar::goal::Tier;
use tersecades::engine::runtime::EncodeOptions;
use tersecades::engine::source::{self, CsvOptions, OnError, Source, SourceOptions};
use tersecades::prelude::{RecordBatch, SchemaRef};

use crate::argument::{self, ColumnTypes};
use crate::cost;
use crate::dead_letter::DeadLetterFile;
use crate::outcome::{Outcome, Stop};
use crate::progress_bar::Progress;

/// What happens to rows that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum OnErrorArgument {
    /// Stop at the first
    #[default]
    Fail,
    /// Leave them out and say how many
    Skip,
}

/// How to read CSV; other formats need none of it.
#[derive(Debug, Args)]
#[command(next_help_heading = "CSV options")]
pub(crate) struct ReadingArguments {
    /// One character or `tab` between fields [default: guessed]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<u8>,

    /// The first row holds values, not names
    #[arg(long)]
    no_header: bool,

    /// Fields that mean null [default: empty, NA, …]
    ///
    /// Separated by commas. Without it these are the empty field, NA, N/A, null, NULL, NaN and -.
    /// In columns of text a field in quotes is text whatever it says.
    #[arg(long, value_name = "TEXTS", value_delimiter = ',')]
    null_strings: Option<Vec<String>>,

    /// Types of columns, as a=int64,"b c"=utf8 [default: inferred]
    ///
    /// Short names, as timestamp[ms] and timestamp[us, UTC], or types as `inspect` prints them.
    /// Times without an offset go by the clocks of the zone that their column has.
    #[arg(long, value_name = "NAME=TYPE", value_parser = argument::column_types)]
    types: Vec<ColumnTypes>,

    /// strftime pattern of a time column; may be repeated
    #[arg(long, value_name = "NAME=PATTERN", value_parser = argument::pair)]
    timestamp_format: Vec<(String, String)>,

    /// Rows that types are inferred from
    #[arg(long, value_name = "ROWS", hide_short_help = true)]
    infer_rows: Option<usize>,

    /// Rows that do not fit: fail or skip [default: fail]
    ///
    /// `fail` stops at the first; `skip` leaves them out and says how many; --dead-letters keeps
    /// them.
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    on_error: OnErrorArgument,

    /// Writes rows that do not fit to a file, and leaves them out
    ///
    /// As rows of file, line, column, reason and original text, in the format of the suffix. Rows
    /// that are read twice are written twice. The file is there when the command ends by itself.
    #[arg(long, value_name = "FILE", conflicts_with = "on_error")]
    dead_letters: Option<PathBuf>,

    #[arg(skip)]
    dead_letter_file: DeadLetterFile,
}

impl ReadingArguments {
    /// What the work came to, and the file of rows that do not fit, if one is asked for.
    pub(crate) fn finish(&self, outcome: Outcome) -> Outcome {
        // It goes to a file, so that no reader of stdout is missed.
        let finished = self.dead_letter_file.finish().map_err(Stop::Failed);
        match outcome {
            Err(Stop::Failed(error)) => Err(Stop::Failed(error)),
            outcome => finished.and(outcome),
        }
    }

    /// Refuses to write rows that do not fit to the file of the others.
    ///
    /// # Errors
    /// `InvalidArgument` where both are one file.
    #[cfg(feature = "sql")]
    pub(crate) fn require_apart(&self, output: Option<&Path>) -> Result<()> {
        use tersecades::Error;
        use tersecades::store::whole_file::is_same;

        let (Some(letters), Some(output)) = (&self.dead_letters, output) else {
            return Ok(());
        };
        match is_same(letters, output) {
            false => Ok(()),
            true => Err(
                Error::invalid("the answer would be replaced by the rows that do not fit")
                    .file(output.display().to_string())
                    .hint("give -o and --dead-letters files of their own"),
            ),
        }
    }

    /// The options of the source.
    ///
    /// # Errors
    /// What creating the file of rows that do not fit says.
    pub(crate) fn to_options(&self) -> Result<SourceOptions> {
        let defaults = CsvOptions::default();
        let letters = self.dead_letters.as_deref();
        let letters = letters.map(|path| self.dead_letter_file.letters(path));
        Ok(SourceOptions {
            csv: CsvOptions {
                delimiter: self.delimiter,
                header: !self.no_header,
                null_strings: self.null_strings.clone().unwrap_or(defaults.null_strings),
                types: self
                    .types
                    .iter()
                    .flat_map(|types| types.0.clone())
                    .collect(),
                timestamp_formats: self.timestamp_format.clone(),
                infer_rows: self.infer_rows.unwrap_or(defaults.infer_rows),
                trim: None,
            },
            on_error: match self.on_error {
                _ if self.dead_letters.is_some() => OnError::DeadLetter,
                OnErrorArgument::Fail => OnError::Fail,
                OnErrorArgument::Skip => OnError::Skip,
            },
            dead_letters: letters.transpose()?,
            ..SourceOptions::default()
        })
    }
}

/// How columns are encoded.
#[derive(Debug, Args)]
#[command(next_help_heading = "Encoding options")]
pub(crate) struct EncodingArguments {
    /// Where encoded batches are kept: hot (memory, scanned often) or cold (small first)
    #[arg(long, default_value = "hot", value_parser = argument::tier)]
    tier: Tier,

    /// Encodes a column by this scheme instead of a choice; may be repeated
    #[arg(long, value_name = "NAME=SCHEME", value_parser = argument::pair)]
    encoding: Vec<(String, String)>,

    /// What codecs cost: default, measured (see `costs`) or a file [env: TERSECADES_COSTS]
    #[arg(long)]
    costs: Option<String>,
}

impl EncodingArguments {
    /// The options of the encoder.
    ///
    /// # Errors
    /// What reading a cost table says.
    pub(crate) fn to_options(&self) -> Result<EncodeOptions> {
        Ok(EncodeOptions {
            tier: self.tier,
            costs: Some(Arc::new(cost::table(self.costs.as_deref())?)),
            schemes: self.encoding.clone(),
            ..EncodeOptions::default()
        })
    }
}

/// The first rows of a file, batch by batch.
pub(crate) struct LimitedRows {
    source: Box<dyn Source>,
    progress: Progress,
    rows: u64,
    limit: u64,
}

impl LimitedRows {
    /// Opens a file of which at most `limit` rows are wanted.
    ///
    /// # Errors
    /// What opening says.
    pub(crate) fn open(
        path: &Path,
        reading: &ReadingArguments,
        limit: Option<u64>,
    ) -> Result<LimitedRows> {
        let source = source::open(path, &reading.to_options()?)?;
        let hint = source.rows_hint();
        let hint = hint.map(|rows| rows.min(limit.unwrap_or(u64::MAX)));
        Ok(LimitedRows {
            progress: Progress::start("encoding", hint.or(limit)),
            source,
            rows: 0,
            limit: limit.unwrap_or(u64::MAX),
        })
    }

    /// Columns of the file.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// What reading says.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.progress.show(self.rows);
        if self.rows >= self.limit {
            return Ok(None);
        }
        let Some(arrived) = self.source.next()? else {
            return Ok(None);
        };
        let wanted = usize::try_from(self.limit - self.rows).unwrap_or(usize::MAX);
        let arrived = arrived.slice(0, arrived.num_rows().min(wanted));
        self.rows += arrived.num_rows() as u64;
        Ok(Some(arrived))
    }

    /// Rows handed out so far.
    pub(crate) fn count(&self) -> u64 {
        self.rows
    }

    /// Rows that could not be read.
    pub(crate) fn rejected(&self) -> u64 {
        self.source.rejected().count_rows
    }
}

fn delimiter(text: &str) -> std::result::Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, [byte]) if byte.is_ascii() => Ok(*byte),
        _ => Err("give one ASCII character, or `tab`".to_owned()),
    }
}
