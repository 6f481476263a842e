//! `pack` and `cat`: files that stay readable in the middle while they are compressed.
//!
//! ```text
//! pack FILE ─▶ FILE.tcz, which gunzip or lz4 read too        cat FILE.tcz --range A:B ─▶ stdout
//! ```

pub(crate) mod cat;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use clap::builder::PossibleValuesParser;
use tersecades::Error;
use tersecades::store::partition::{
    LAYOUTS, PackOptions, Summary, find_layout, pack_file, pack_reader,
};

use crate::argument;
use crate::console;
use crate::figure;
use crate::outcome::Outcome;
use crate::progress_bar::Progress;

/// Compress a file so that any part of it can be read without the rest
///
/// The result is also what stock tools read from start to end: `gunzip` for the layout zlib,
/// `lz4 -d` for lz4, and `zstd -d` for zstd with --no-dictionary.
#[derive(Debug, Args)]
pub(crate) struct PackArguments {
    /// The file; `-` is standard input
    file: PathBuf,

    /// The packed file; by default FILE.tcz
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// How partitions are stored; `lists layouts` says what each is good for
    #[arg(long, default_value = "zlib", value_parser = layouts())]
    layout: String,

    /// Bytes that are compressed on their own, 256 to 4MiB; smaller reads faster and packs worse;
    /// by default 16KiB, zstd 4KiB
    #[arg(long, value_name = "SIZE", value_parser = argument::bytes)]
    partition: Option<usize>,

    /// From fast to small: 0 to 9 for zlib (default 6), 1 to 22 for zstd (default 3)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i32>,

    /// Train no dictionary for zstd, so that `zstd -d` reads the file
    #[arg(long)]
    no_dictionary: bool,

    /// Threads that compress; by default one per core
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

fn layouts() -> PossibleValuesParser {
    PossibleValuesParser::new(LAYOUTS.iter().map(|layout| layout.name()))
}

/// Packs the file.
pub(crate) fn run(arguments: &PackArguments) -> Outcome {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let options = PackOptions {
        partition: arguments.partition,
        level: arguments.level,
        train: !arguments.no_dictionary,
        threads: arguments.threads.unwrap_or_else(cores),
        ..PackOptions::of(find_layout(&arguments.layout)?)
    };
    let from = &arguments.file;
    let stdin = from.as_os_str() == "-";
    let to = match &arguments.output {
        Some(output) if output.as_os_str() == "-" => {
            let error = Error::invalid("a packed file does not go to standard output");
            let hint = "it is renamed when it is whole: give -o FILE.tcz, or -o ./- for that name";
            return Err(error.hint(hint).into());
        }
        Some(output) => output.clone(),
        None if stdin => {
            let error = Error::invalid("standard input has no name to pack it under");
            return Err(error.hint("name the packed file with -o FILE.tcz").into());
        }
        None => beside(from),
    };
    let summary = if stdin {
        let progress = Progress::start_bytes("packing", 0);
        pack_reader(&mut io::stdin().lock(), &to, options, |done| {
            progress.show(done)
        })?
    } else {
        let length = from.metadata().map_or(0, |found| found.len());
        let progress = Progress::start_bytes("packing", length);
        pack_file(from, &to, options, |done| progress.show(done))?
    };
    report(&to, &summary);
    Ok(())
}

/// `FILE.tcz`.
fn beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".tcz");
    PathBuf::from(name)
}

fn report(path: &Path, summary: &Summary) {
    console::say(format_args!(
        "{}: {} bytes of {} ({}), {} partitions",
        path.display(),
        figure::grouped(summary.file_len),
        figure::grouped(summary.raw_len),
        figure::percent(summary.file_len, summary.raw_len),
        figure::grouped(summary.partitions as u64)
    ));
}
