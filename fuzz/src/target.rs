//! What each reader is tried with, and what must hold of what it accepts.

use std::io::Cursor;

use bytes::Bytes;
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::wire;
use tersecades_engine::source::arrow_ipc::ArrowSource;
use tersecades_engine::source::csv::CsvSource;
use tersecades_engine::source::json::JsonSource;
use tersecades_engine::source::parquet::ParquetSource;
use tersecades_engine::source::{OnError, Source, SourceOptions};
use tersecades_store::raw;

use crate::exercise::exercise;
use crate::{packed, seed, sql};

/// Rows of a batch: small, so that short inputs make several.
const BATCH_ROWS: usize = 64;

/// Most batches that one input may make; short inputs can stand for very many rows.
const BATCHES_MAX: usize = 64;

/// One reader, its test and valid inputs.
pub struct Target {
    /// The name, also that of the cargo-fuzz target.
    pub name: &'static str,
    /// Tries one input; panics where something is wrong.
    pub run: fn(&[u8]),
    /// Valid inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "decode_chunk",
        run: decode_chunk,
        seeds: seed::units,
    },
    Target {
        name: "read_store",
        run: read_store,
        seeds: seed::store_files,
    },
    Target {
        name: "read_csv",
        run: read_csv,
        seeds: seed::csv,
    },
    Target {
        name: "read_json",
        run: read_json,
        seeds: seed::json,
    },
    Target {
        name: "read_parquet",
        run: read_parquet,
        seeds: seed::parquet,
    },
    Target {
        name: "read_ipc",
        run: read_ipc,
        seeds: seed::ipc,
    },
    Target {
        name: "read_packed",
        run: packed::read_packed,
        seeds: packed::containers,
    },
    Target {
        name: "read_phrases",
        run: packed::read_phrases,
        seeds: packed::partitions,
    },
    Target {
        name: "run_sql",
        run: sql::run,
        seeds: sql::seeds,
    },
];

/// Encoded chunks and batches: as they are, and with checksums made right.
///
/// # Panics
/// Where a primitive panics on an accepted chunk, or two of them disagree.
pub fn decode_chunk(input: &[u8]) {
    decode_units(input);
    let mut sealed = input.to_vec();
    if wire::reseal(&mut sealed).is_ok() {
        decode_units(&sealed);
    }
}

fn decode_units(input: &[u8]) {
    if let Ok((chunk, length)) = wire::read_chunk(input, None) {
        assert!(length <= input.len());
        exercise(&chunk);
    }
    if let Ok(batch) = wire::read_batch(input) {
        batch.columns().iter().for_each(exercise);
    }
}

/// Files of a store: a log segment, a manifest and a run.
///
/// # Panics
/// Where reading does.
pub fn read_store(input: &[u8]) {
    // What is found matters less than that it is found without a panic.
    let _ = raw::read_log(seed::STORE_FILE, input);
    let _ = raw::read_manifest(seed::STORE_FILE, input);
    let _ = raw::read_run(1, input);
}

/// CSV, with the bad rows refused, skipped or kept.
///
/// # Panics
/// Where the reader or the encoder of what it read does.
pub fn read_csv(input: &[u8]) {
    for on_error in [OnError::Fail, OnError::Skip, OnError::DeadLetter] {
        let options = SourceOptions {
            on_error,
            ..options()
        };
        drain(CsvSource::from_reader(
            Cursor::new(input.to_vec()),
            &options,
        ));
    }
}

/// JSON as lines and as an array, plain and packed, with the bad rows refused, skipped or kept.
///
/// # Panics
/// As [`read_csv`].
pub fn read_json(input: &[u8]) {
    for on_error in [OnError::Fail, OnError::Skip, OnError::DeadLetter] {
        let options = SourceOptions {
            on_error,
            ..options()
        };
        let input = || Cursor::new(input.to_vec());
        drain(JsonSource::from_lines(input(), &options));
        drain(JsonSource::from_array(input(), &options));
    }
}

/// Parquet files.
///
/// # Panics
/// As [`read_csv`].
pub fn read_parquet(input: &[u8]) {
    drain(ParquetSource::from_bytes(
        Bytes::copy_from_slice(input),
        &options(),
    ));
}

/// Arrow IPC files and streams.
///
/// # Panics
/// As [`read_csv`].
pub fn read_ipc(input: &[u8]) {
    drain(ArrowSource::from_bytes(
        Bytes::copy_from_slice(input),
        &options(),
    ));
}

fn options() -> SourceOptions {
    SourceOptions {
        batch_rows: BATCH_ROWS,
        ..SourceOptions::default()
    }
}

/// Reads to the end, encodes every batch and turns it back.
fn drain(source: Result<impl Source>) {
    let Ok(mut source) = source else {
        return;
    };
    let schema = source.schema();
    let mut encoder = BatchEncoder::new(&schema);
    for _ in 0..BATCHES_MAX {
        let Ok(Some(batch)) = source.next() else {
            return;
        };
        assert!(batch.num_rows() <= BATCH_ROWS);
        assert_eq!(batch.schema().fields(), schema.fields());
        let Ok(encoder) = &mut encoder else {
            continue;
        };
        if let Ok(encoded) = encoder.encode_new(&batch) {
            let all = Selection::all(encoded.rows());
            let back = encoded.to_arrow(&all, &mut Work::default());
            assert_eq!(back.map(|back| back.num_rows()), Ok(batch.num_rows()));
        }
    }
}
