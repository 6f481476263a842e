//! What real files have that clean ones do not, and what the sources make of it.

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use tersecades_engine::source::{CsvOptions, SourceOptions, open};

use crate::data_set::{BEIJING, FLIGHTS, RIPE_ATLAS};
use crate::row::{Cell, assert_rows_agree, rows_of};

fn nulls(batches: &[RecordBatch], column: &str) -> usize {
    let nulls = batches.iter().map(|batch| {
        let nulls = batch.column_by_name(column).unwrap().logical_nulls();
        nulls.map_or(0, |nulls| nulls.null_count())
    });
    nulls.sum()
}

#[test]
fn a_probe_with_day_first_stamps_and_semicolons_equals_its_rows_in_the_merged_file() {
    let Some(loaded) = RIPE_ATLAS.load() else {
        return;
    };
    let epoch = ("epoch".to_owned(), "%d/%m/%Y %H:%M".to_owned());
    let csv = CsvOptions {
        timestamp_formats: vec![epoch],
        ..CsvOptions::default()
    };
    let options = SourceOptions {
        csv,
        ..SourceOptions::default()
    };
    let mut merged = rows_of(&loaded.batches);
    merged.retain(|row| row[0] == Cell::Integer(11_145));
    merged.iter_mut().for_each(|row| drop(row.remove(0)));
    let mut source = open(&loaded.folder.join("raw_per_probe/11145.csv"), &options).unwrap();
    let stamps = source.schema().field(0).data_type().clone();
    assert_eq!(stamps, DataType::Timestamp(TimeUnit::Microsecond, None));
    let batches: Vec<RecordBatch> = std::iter::from_fn(|| source.next().unwrap()).collect();
    assert_rows_agree("probe 11145", &rows_of(&batches), &merged);
}

#[test]
fn missing_delays_and_tail_numbers_are_null() {
    let Some(loaded) = FLIGHTS.load() else { return };
    let expected = [
        ("dep_time", 8_255),
        ("dep_delay", 8_255),
        ("arr_time", 8_713),
        ("arr_delay", 9_430),
        ("air_time", 9_430),
        ("tailnum", 2_512),
        ("carrier", 0),
    ];
    for (column, count) in expected {
        assert_eq!(nulls(&loaded.batches, column), count, "{column}");
    }
}

#[test]
fn a_blank_between_numbers_is_null() {
    let Some(loaded) = BEIJING.load() else { return };
    assert!(loaded.batches[0].column_by_name("SO2").unwrap().is_null(74));
    for (column, count) in [
        ("PM2.5", 4_568),
        // 4,989 NA and that blank.
        ("SO2", 4_990),
        ("wd", 1_210),
        ("station", 0),
    ] {
        assert_eq!(nulls(&loaded.batches, column), count, "{column}");
    }
}
