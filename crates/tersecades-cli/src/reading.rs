//! Options of commands that read files.

use clap::{Args, ValueEnum};
use tersecades::engine::source::{CsvOptions, OnError, SourceOptions};
use tersecades::prelude::DataType;

use crate::argument;

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
    /// Field delimiter, one character or `tab` [default: guessed]
    #[arg(long, value_parser = delimiter)]
    delimiter: Option<u8>,

    /// The first row holds values, not names
    #[arg(long)]
    no_header: bool,

    /// Fields that mean null, comma-separated
    #[arg(long, value_delimiter = ',')]
    null_strings: Option<Vec<String>>,

    /// Types of columns, as a=int64,b=utf8 [default: inferred]
    #[arg(long, value_name = "NAME=TYPE", value_delimiter = ',',
          value_parser = argument::typed_column)]
    types: Vec<(String, DataType)>,

    /// strftime pattern of a time column, as NAME=PATTERN; may be repeated
    #[arg(long, value_name = "NAME=PATTERN", value_parser = argument::pair)]
    timestamp_format: Vec<(String, String)>,

    /// Rows that types are inferred from
    #[arg(long, value_name = "ROWS")]
    infer_rows: Option<usize>,

    /// What happens to rows that do not fit
    #[arg(long, value_enum, default_value_t)]
    on_error: OnErrorArgument,
}

impl ReadingArguments {
    /// The options of the source.
    pub(crate) fn to_options(&self) -> SourceOptions {
        let defaults = CsvOptions::default();
        SourceOptions {
            csv: CsvOptions {
                delimiter: self.delimiter,
                header: !self.no_header,
                null_strings: self.null_strings.clone().unwrap_or(defaults.null_strings),
                types: self.types.clone(),
                timestamp_formats: self.timestamp_format.clone(),
                infer_rows: self.infer_rows.unwrap_or(defaults.infer_rows),
                trim: None,
            },
            on_error: match self.on_error {
                OnErrorArgument::Fail => OnError::Fail,
                OnErrorArgument::Skip => OnError::Skip,
            },
            ..SourceOptions::default()
        }
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, [byte]) if byte.is_ascii() => Ok(*byte),
        _ => Err("give one ASCII character, or `tab`".to_owned()),
    }
}
