//! `cat`: a packed file, or a part of it, to standard output.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use tersecades::Error;
use tersecades::store::partition::{self, GzipFile, PackedFile};

use crate::argument;
use crate::console;
use crate::outcome::Outcome;

/// Print a packed file, or a gzip file of others, or a range of its bytes
#[derive(Debug, Args)]
pub(crate) struct CatArguments {
    /// The packed file, or a gzip file
    file: PathBuf,

    /// Index of a gzip file: read if it is there, else made, which takes decoding the file once;
    /// without it that is done each time
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,

    /// Only bytes from START up to, not including, END, as `1000:2000`, `4KiB:8KiB`, `1GiB:` or
    /// `:100`; only the partitions that hold them are read
    #[arg(long, value_name = "START:END", value_parser = argument::byte_range)]
    range: Option<Range<u64>>,
}

/// Prints the bytes.
pub(crate) fn run(arguments: &CatArguments) -> Outcome {
    let packed = open(&arguments.file, arguments.index.as_deref())?;
    let range = arguments.range.clone().unwrap_or(0..packed.len());
    if range.start > packed.len() {
        let message = format!("byte {} is behind the end", range.start);
        let error = Error::invalid(message).file(arguments.file.display().to_string());
        return Err(error
            .hint(format!("{} bytes are packed", packed.len()))
            .into());
    }
    let end = range.end.min(packed.len());
    let mut at = range.start;
    while at < end {
        let stop = end.min(at.saturating_add(PIECE));
        console::print_bytes(&packed.read_range(at..stop)?)?;
        at = stop;
    }
    Ok(())
}

/// Something that is readable in the middle.
enum Opened {
    Packed(PackedFile),
    Gzip(GzipFile),
}

impl Opened {
    fn len(&self) -> u64 {
        match self {
            Opened::Packed(packed) => packed.len(),
            Opened::Gzip(gzip) => gzip.len(),
        }
    }

    fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        match self {
            Opened::Packed(packed) => packed.read_range(range),
            Opened::Gzip(gzip) => gzip.read_range(range),
        }
    }
}

/// A container of ours, or a gzip file that is none.
fn open(file: &Path, index: Option<&Path>) -> Result<Opened, Error> {
    match !partition::is_packed(file)? && partition::is_gzip(file)? {
        true => partition::open_gzip(file, index).map(Opened::Gzip),
        false => partition::open(file).map(Opened::Packed),
    }
}

/// Bytes that are decoded at a time.
const PIECE: u64 = 1 << 20;
