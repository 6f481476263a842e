//! Late rows are those of the definition, row by row, however the stream is cut.
//!
//! ```text
//! watermark before row i = largest time of rows before i - lateness
//! row i is late  <=>  windows hold it, and all of them end at or before that watermark
//! else it counts in exactly the windows that hold it and end after the watermark
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;

use crate::data_set::{DataSet, FLIGHTS, Loaded, RIPE_ATLAS};
use crate::determinism::jittered;
use crate::report;
use crate::row::{Cell, Row, assert_rows_agree, row_order, rows_of};

/// A stream whose late rows are counted.
struct Case {
    time: Expression,
    /// Event time of each row, computed here.
    seconds: fn(&RecordBatch) -> Vec<i64>,
    /// Columns that the question reads, in the order of the stream.
    columns: &'static [&'static str],
    /// One of them, to be aggregated.
    value: &'static str,
    /// Of the event time.
    ticks_per_second: i64,
}

/// Window size, slide and lateness, in seconds.
type Shape = (i64, i64, i64);

pub(crate) fn integers(batch: &RecordBatch, name: &str) -> Vec<i64> {
    let column = cast(batch.column_by_name(name).unwrap(), &DataType::Int64).unwrap();
    column.as_primitive::<Int64Type>().values().to_vec()
}

/// Event times of the probes, whose stamps are microseconds as CSV is read.
pub(crate) fn epoch_seconds(batch: &RecordBatch) -> Vec<i64> {
    integers(batch, "epoch")
        .into_iter()
        .map(|at| at.div_euclid(1_000_000))
        .collect()
}

/// Event times of the flights: all are in 2013, which is no leap year.
pub(crate) fn scheduled_seconds(batch: &RecordBatch) -> Vec<i64> {
    const FIRST_DAY: i64 = 15_706;
    const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let (months, days) = (integers(batch, "month"), integers(batch, "day"));
    let hours = integers(batch, "hour");
    (0..batch.num_rows())
        .map(|row| {
            let day = FIRST_DAY + DAYS_BEFORE[months[row] as usize - 1] + days[row] - 1;
            day * 86_400 + hours[row] * 3_600
        })
        .collect()
}

/// What the definition says of one row.
struct Fate {
    /// Starts of the windows that take the row.
    open: Vec<i64>,
    /// Whether windows hold it, and all have closed.
    late: bool,
}

/// What happens to each row, by the definition.
fn fates(times: &[i64], (size, slide, lateness): Shape) -> Vec<Fate> {
    let mut newest = i64::MIN;
    let fate = |at: &i64| {
        let watermark = newest.saturating_sub(lateness);
        newest = newest.max(*at);
        let near = at / slide;
        let starts = (near - size / slide - 1..=near + 1).map(|start| start * slide);
        let mut open: Vec<i64> = starts
            .filter(|start| (*start..*start + size).contains(at))
            .collect();
        let held = !open.is_empty();
        open.retain(|start| start + size > watermark);
        Fate {
            late: held && open.is_empty(),
            open,
        }
    };
    times.iter().map(fate).collect()
}

/// Rows in each window, by the definition, for one group.
fn window_rows(fates: &[Fate]) -> Vec<Row> {
    let mut counts = BTreeMap::new();
    let starts = fates.iter().flat_map(|fate| &fate.open);
    starts.for_each(|start| *counts.entry(*start).or_insert(0) += 1);
    counts
        .into_iter()
        .map(|(start, rows)| vec![Cell::Integer(start), Cell::Integer(rows)])
        .collect()
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(row_order);
    rows
}

/// What a run made of the rows.
struct Outcome {
    late_rows: u64,
    skipped_rows: u64,
    late: Vec<Row>,
    /// Window start in seconds, and rows of the window.
    windows: Vec<Row>,
}

fn run(case: &Case, loaded: &Loaded, shape: Shape, way: (usize, usize)) -> Outcome {
    let (size, slide, lateness) = shape;
    let seconds = |seconds: i64| Duration::from_secs(seconds.unsigned_abs());
    let (threads, batch_rows) = way;
    let batches = loaded.cut(batch_rows, usize::MAX);
    let mut running = Stream::from_batches(loaded.schema.clone(), batches)
        .event_time(case.time.clone(), seconds(lateness))
        .threads(threads)
        .keep_late()
        .window(hop(seconds(size), seconds(slide)))
        .aggregate([
            count().alias("n"),
            call("max", col(case.value)).alias("most"),
        ])
        .run()
        .unwrap();
    let results: Vec<RecordBatch> = running.by_ref().map(Result::unwrap).collect();
    let late = sorted(rows_of(&running.take_late()));
    let metrics = running.metrics();
    let mut windows = rows_of(&results);
    for row in &mut windows {
        row.truncate(3);
        row.remove(1);
        if let Cell::Integer(start) = &mut row[0] {
            *start = start.div_euclid(case.ticks_per_second);
        }
    }
    Outcome {
        late_rows: metrics.late_rows,
        skipped_rows: metrics.skipped_rows,
        late,
        windows,
    }
}

fn check(name: &str, case: &Case, loaded: &Loaded, shapes: &[Shape]) {
    let all: Vec<RecordBatch> = loaded.cut(65_536, usize::MAX);
    let times: Vec<i64> = all.iter().flat_map(case.seconds).collect();
    let read = |batch: &RecordBatch| {
        let schema = batch.schema();
        let positions = case
            .columns
            .iter()
            .map(|name| schema.index_of(name).unwrap());
        batch.project(&positions.collect::<Vec<_>>()).unwrap()
    };
    let rows = rows_of(&all.iter().map(read).collect::<Vec<_>>());
    for shape in shapes {
        let fates = fates(&times, *shape);
        let late = rows.iter().zip(&fates).filter(|(_, fate)| fate.late);
        let late: Vec<Row> = sorted(late.map(|(row, _)| row.clone()).collect());
        assert!(!late.is_empty(), "{name} {shape:?}: no row is late");
        let skipped = fates
            .iter()
            .filter(|fate| fate.open.is_empty() && !fate.late)
            .count();
        report(&format!(
            "{name} {shape:?}: {} of {} rows late",
            late.len(),
            rows.len()
        ));
        let windows = window_rows(&fates);
        for way in [(1, 65_536), (1, 1_000), (3, 1_000), (1, 64)] {
            let what = format!("{name} {shape:?} {way:?}");
            let outcome = run(case, loaded, *shape, way);
            let counted = (outcome.late_rows, outcome.skipped_rows);
            assert_eq!(
                counted,
                (late.len() as u64, skipped as u64),
                "{what}: (late, skipped)"
            );
            assert_rows_agree(&format!("{what}, late rows"), &outcome.late, &late);
            assert_rows_agree(&what, &outcome.windows, &windows);
        }
    }
}

fn first_rows(set: &DataSet, rows: usize) -> Option<Loaded> {
    let loaded = set.load()?;
    let batches = loaded.cut(65_536, rows);
    Some(Loaded {
        folder: loaded.folder.clone(),
        schema: loaded.schema.clone(),
        batches,
    })
}

#[test]
fn late_probes_are_those_of_the_definition() {
    let Some(loaded) = RIPE_ATLAS.load() else {
        return;
    };
    let case = Case {
        time: col("epoch"),
        seconds: epoch_seconds,
        columns: &["epoch", "rtt"],
        value: "rtt",
        ticks_per_second: 1_000_000,
    };
    // Probes report in time; an hour of jitter puts them out of order.
    let shuffled = jittered(&loaded, epoch_seconds, (20_000, 3_600), 5);
    let shapes = [
        (600, 600, 300),
        (1_800, 300, 120),
        (700, 600, 0),
        (300, 300, 3_000),
        (300, 900, 60),
    ];
    check(RIPE_ATLAS.name, &case, &shuffled, &shapes);
}

#[test]
fn late_flights_are_those_of_the_definition() {
    let Some(loaded) = first_rows(&FLIGHTS, 30_000) else {
        return;
    };
    let case = Case {
        time: Expression::MakeTimestamp(["year", "month", "day", "hour"].map(col).to_vec()),
        seconds: scheduled_seconds,
        columns: &["year", "month", "day", "arr_delay", "hour"],
        value: "arr_delay",
        ticks_per_second: 1,
    };
    let shapes = [
        (3_600, 3_600, 0),
        (3 * 3_600, 3_600, 3_600),
        (5 * 3_600, 7_200, 1_800),
        (3_600, 7_200, 0),
    ];
    check(FLIGHTS.name, &case, &loaded, &shapes);
}
