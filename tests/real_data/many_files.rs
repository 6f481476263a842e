//! Many files as one table, JSON as it was published, and what is written in one format read back
//! in another.

use std::path::Path;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use tersecades_engine::sink::{self, SinkOptions};
use tersecades_engine::source::file_set::FilesTable;
use tersecades_engine::source::{Source, SourceOptions, open};

use crate::data_set::{BEIJING, GITHUB};
use crate::row::{Row, assert_rows_agree, rows_of};

fn read(source: &mut dyn Source) -> Vec<RecordBatch> {
    let batches = std::iter::from_fn(|| source.next().unwrap()).collect();
    assert_eq!(source.rejected().count_rows, 0);
    batches
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

#[test]
fn events_have_the_rows_and_gaps_that_their_profile_counts() {
    let Some(folder) = GITHUB.folder() else {
        return;
    };
    let table = FilesTable::new(folder.join("*.jsonl.gz"), &SourceOptions::default()).unwrap();
    assert_eq!(table.files().len(), 3);
    let mut source = table.source(None).unwrap();
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let schema = source.schema();
    assert_eq!(schema.field_with_name("dt").unwrap().data_type(), &utc);
    assert_eq!(
        schema.field_with_name("commits").unwrap().data_type(),
        &DataType::Int64
    );
    let batches = read(&mut source);
    assert_eq!(count(&batches), 75_412);
    // Counted by another library, from the files.
    let gaps = [
        ("id", 0),
        ("commits", 36_206),
        ("action", 52_707),
        ("age", 58_147),
    ];
    for (name, expected) in gaps {
        let nulls = batches.iter().map(|batch| {
            let nulls = batch.column_by_name(name).unwrap().logical_nulls();
            nulls.map_or(0, |nulls| nulls.null_count())
        });
        assert_eq!(nulls.sum::<usize>(), expected, "{name}");
    }
    let parts = (0..3).map(|file| count(&read(&mut table.file_source(file, None).unwrap())));
    assert_eq!(parts.sum::<usize>(), 75_412);
}

#[test]
fn a_glob_of_stations_is_the_stations_one_after_the_other() {
    let Some(loaded) = BEIJING.load() else { return };
    let pattern = loaded.folder.join("PRSA_*.csv.gz");
    let table = FilesTable::new(pattern, &BEIJING.options()).unwrap();
    let mut source = table.source(None).unwrap();
    let mut found = Vec::new();
    while let Some(batch) = source.next().unwrap() {
        assert_eq!(source.file().map(|file| file < 6), Some(true));
        found.extend(rows_of(std::slice::from_ref(&batch)));
    }
    assert_rows_agree("stations", &found, &rows_of(&loaded.batches));
}

fn write(path: &Path, batches: &[RecordBatch]) {
    let mut sink = sink::create(path, &batches[0].schema(), &SinkOptions::default()).unwrap();
    batches.iter().for_each(|batch| sink.write(batch).unwrap());
    sink.finish().unwrap();
}

#[test]
fn events_survive_every_format_that_is_written() {
    let Some(folder) = GITHUB.folder() else {
        return;
    };
    let first = folder.join("2015-02-22-21.jsonl.gz");
    let options = SourceOptions {
        columns: Some(
            ["dt", "repo", "type", "actor", "commits", "action"]
                .map(String::from)
                .to_vec(),
        ),
        ..SourceOptions::default()
    };
    let batches = read(&mut *open(&first, &options).unwrap());
    let expected: Vec<Row> = rows_of(&batches);
    let written = tempfile::tempdir().unwrap();
    for suffix in [
        "jsonl",
        "jsonl.gz",
        "ndjson.zst",
        "json",
        "json.gz",
        "csv.gz",
        "csv.zst",
        "parquet",
        "arrow",
    ] {
        let path = written.path().join(format!("events.{suffix}"));
        write(&path, &batches);
        let found = read(&mut *open(&path, &SourceOptions::default()).unwrap());
        assert_rows_agree(suffix, &rows_of(&found), &expected);
    }
}
