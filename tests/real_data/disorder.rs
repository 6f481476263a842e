//! Disorder as it was recorded: with a lateness that covers it, or a partition for each part that
//! is in order, the windows are those of the sorted stream.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::source::table::{FileTable, MemoryTable, Table};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Emit, hop};

use crate::data_set::{BEIJING, DataSet, FLIGHTS, GEOLIFE, Loaded, RIPE_ATLAS};
use crate::determinism::jittered;
use crate::late::{epoch_seconds, integers, scheduled_seconds};
use crate::report;
use crate::row::{Cell, Row, assert_rows_agree, rows_of};

const HOUR: Duration = Duration::from_secs(3_600);

/// Windows of six hours every two, and how many rows were late.
fn windows(stream: Stream, time: &Expression, value: &str, lateness: Duration) -> (Vec<Row>, u64) {
    let mut run = stream
        .event_time(time.clone(), lateness)
        .window(hop(HOUR * 6, HOUR * 2))
        .aggregate([count().alias("n"), call("max", col(value)).alias("most")])
        .run()
        .unwrap();
    let batches: Vec<RecordBatch> = run.by_ref().map(Result::unwrap).collect();
    (rows_of(&batches), run.metrics().late_rows)
}

fn stream_of(loaded: &Loaded) -> Stream {
    Stream::from_batches(loaded.schema.clone(), loaded.batches.clone())
}

/// The windows of the rows in order of their times.
fn sorted_windows(
    loaded: &Loaded,
    seconds: fn(&RecordBatch) -> Vec<i64>,
    time: &Expression,
    value: &str,
) -> Vec<Row> {
    let sorted = jittered(loaded, seconds, (usize::MAX, 1), 0);
    let (expected, late) = windows(stream_of(&sorted), time, value, Duration::ZERO);
    assert_eq!(late, 0, "a sorted stream");
    expected
}

fn check(
    set: &DataSet,
    seconds: fn(&RecordBatch) -> Vec<i64>,
    time: &Expression,
    value: &str,
    lateness: Duration,
) {
    let Some(loaded) = set.load() else { return };
    let expected = sorted_windows(&loaded, seconds, time, value);
    for threads in [1, 3] {
        let stream = stream_of(&loaded).threads(threads);
        let (got, late) = windows(stream, time, value, lateness);
        assert_eq!(late, 0, "{}", set.name);
        assert_rows_agree(set.name, &got, &expected);
    }
    let (_, late) = windows(stream_of(&loaded), time, value, Duration::ZERO);
    let (name, rows) = (set.name, loaded.rows());
    report(&format!(
        "{name}: without lateness {late} of {rows} rows are late"
    ));
}

fn scheduled() -> Expression {
    Expression::MakeTimestamp(["year", "month", "day", "hour"].map(col).to_vec())
}

/// Event times of positions, in seconds.
fn position_seconds(batch: &RecordBatch) -> Vec<i64> {
    integers(batch, "timestamp")
}

#[test]
fn flights_as_recorded_have_the_windows_of_the_sorted_year() {
    check(
        &FLIGHTS,
        scheduled_seconds,
        &scheduled(),
        "arr_delay",
        FLIGHTS.lateness,
    );
}

#[test]
fn probes_as_recorded_have_the_windows_of_the_sorted_stream() {
    check(
        &RIPE_ATLAS,
        epoch_seconds,
        &col("epoch"),
        "rtt",
        Duration::ZERO,
    );
}

/// The rows of each user, who recorded in order.
fn users(loaded: &Loaded) -> Vec<Arc<dyn Table>> {
    let mut users: Vec<(i64, Vec<RecordBatch>)> = Vec::new();
    for batch in &loaded.batches {
        let ids = integers(batch, "user");
        let mut first = 0;
        for run in ids.chunk_by(|a, b| a == b) {
            let rows = batch.slice(first, run.len());
            first += run.len();
            match users.last_mut().filter(|(user, _)| *user == run[0]) {
                Some((_, batches)) => batches.push(rows),
                None => users.push((run[0], vec![rows])),
            }
        }
    }
    let table =
        |(_, batches)| Arc::new(MemoryTable::new(loaded.schema.clone(), batches)) as Arc<dyn Table>;
    users.into_iter().map(table).collect()
}

#[test]
fn positions_need_no_lateness_with_a_partition_for_each_user() {
    let Some(loaded) = GEOLIFE.load() else { return };
    let time = col("timestamp");
    let expected = sorted_windows(&loaded, position_seconds, &time, "altitude_ft");
    let tables = users(&loaded);
    report(&format!("{}: {} partitions", GEOLIFE.name, tables.len()));
    let stream = Stream::from_partitions(tables).unwrap();
    let (got, late) = windows(stream.threads(2), &time, "altitude_ft", Duration::ZERO);
    assert_eq!(late, 0);
    assert_rows_agree(GEOLIFE.name, &got, &expected);
    check(
        &GEOLIFE,
        position_seconds,
        &time,
        "altitude_ft",
        GEOLIFE.lateness,
    );
}

#[test]
fn stations_need_no_lateness_with_a_partition_for_each_file() {
    let Some(loaded) = BEIJING.load() else { return };
    let time = scheduled();
    let (expected, late) = windows(stream_of(&loaded), &time, "TEMP", BEIJING.lateness);
    assert_eq!(late, 0);
    let files = BEIJING.files.iter().map(|file| {
        let path = loaded.folder.join(file);
        Arc::new(FileTable::new(path, &BEIJING.options()).unwrap()) as Arc<dyn Table>
    });
    let stream = Stream::from_partitions(files.collect()).unwrap();
    let (got, late) = windows(stream, &time, "TEMP", Duration::ZERO);
    assert_eq!(late, 0);
    assert_rows_agree(BEIJING.name, &got, &expected);
}

/// The last result of every window, of results that replace each other.
fn last_results(rows: Vec<Row>) -> Vec<Row> {
    let mut last: Vec<Row> = Vec::new();
    for mut row in rows {
        assert!(matches!(row.pop(), Some(Cell::Text(_))), "how it changes");
        match last.binary_search_by(|known| known[0].order(&row[0])) {
            Ok(index) => last[index] = row,
            Err(index) => last.insert(index, row),
        }
    }
    last
}

#[test]
fn late_flights_update_what_came_out_until_it_is_right() {
    let Some(loaded) = FLIGHTS.load() else { return };
    let time = scheduled();
    let expected = sorted_windows(&loaded, scheduled_seconds, &time, "arr_delay");
    for emit in [Emit::Final, Emit::Every(HOUR * 24 * 30)] {
        let stream = stream_of(&loaded)
            .emit(emit)
            .allowed_lateness(FLIGHTS.lateness);
        let (got, late) = windows(stream, &time, "arr_delay", Duration::ZERO);
        assert_eq!(late, 0);
        let results = got.len();
        assert!(results > expected.len(), "windows come again");
        report(&format!(
            "{emit:?}: {results} results of {} windows",
            expected.len()
        ));
        assert_rows_agree(FLIGHTS.name, &last_results(got), &expected);
    }
}
