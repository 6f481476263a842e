//! Windows over windows, and queries over a retained range, answer like plain ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use tersecades_columnar::batch::BatchEncoder;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::runtime::{Keep, Running};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;

use crate::data_set::{AZURE, FLIGHTS, Loaded};
use crate::question::Way;
use crate::questions;
use crate::row::{Cell, Row, assert_rows_agree, rows_of};

const DAY: Duration = Duration::from_secs(86_400);
const WEEK_S: i64 = 7 * 86_400;
const BATCH_ROWS: usize = 4_096;

/// Flights of each day and origin; `weekly`: the busiest day and the sum of each week.
fn departures(loaded: &Loaded, batches: Vec<RecordBatch>, threads: usize, weekly: bool) -> Running {
    let time = Expression::MakeTimestamp(["year", "month", "day", "hour"].map(col).to_vec());
    let daily = Stream::from_batches(loaded.schema.clone(), batches)
        .event_time(time, DAY)
        .threads(threads)
        .window(tumble(DAY))
        .group_by(["origin"])
        .aggregate([count().alias("flights")]);
    match weekly {
        false => daily.run().unwrap(),
        true => daily
            .window(tumble(DAY * 7))
            .group_by(["origin"])
            .aggregate([
                count().alias("days"),
                call("max", col("flights")).alias("busiest"),
                call("sum", col("flights")).alias("flights"),
            ])
            .run()
            .unwrap(),
    }
}

/// The weeks behind (day, end of day, origin, flights).
fn weeks_of(days: &[Row]) -> Vec<Row> {
    let mut weeks = BTreeMap::new();
    for day in days {
        let [
            Cell::Integer(start),
            _,
            Cell::Text(origin),
            Cell::Integer(flights),
        ] = &day[..]
        else {
            panic!("unexpected row {day:?}")
        };
        let key = (start.div_euclid(WEEK_S) * WEEK_S, origin.clone());
        let (days, busiest, sum) = weeks.entry(key).or_insert((0, 0, 0));
        *days += 1;
        *busiest = i64::max(*busiest, *flights);
        *sum += flights;
    }
    let row = |((start, origin), (days, busiest, sum)): ((i64, String), (i64, i64, i64))| {
        let numbers = [days, busiest, sum].map(Cell::Integer);
        let mut row = vec![
            Cell::Integer(start),
            Cell::Integer(start + WEEK_S),
            Cell::Text(origin),
        ];
        row.extend(numbers);
        row
    };
    weeks.into_iter().map(row).collect()
}

fn rows(running: Running) -> Vec<Row> {
    rows_of(&running.map(Result::unwrap).collect::<Vec<_>>())
}

#[test]
fn weeks_over_days_equal_the_days_added_up_by_hand() {
    let Some(loaded) = FLIGHTS.load() else { return };
    let batches = loaded.cut(BATCH_ROWS, usize::MAX);
    let expected = weeks_of(&rows(departures(&loaded, batches.clone(), 1, false)));
    for threads in [1, 3] {
        let weeks = rows(departures(&loaded, batches.clone(), threads, true));
        assert_rows_agree(&format!("{threads} threads"), &weeks, &expected);
        for stop in [1, batches.len() / 3, batches.len() - 1] {
            let (before, after) = batches.split_at(stop);
            let mut first = departures(&loaded, before.to_vec(), threads, true);
            let mut results = Vec::new();
            for _ in 0..stop {
                assert!(first.step().unwrap());
                results.extend(std::iter::from_fn(|| first.take_result()));
            }
            let snapshot = first.snapshot().unwrap();
            let mut second = departures(&loaded, after.to_vec(), threads, true);
            second.restore(&snapshot).unwrap();
            results.extend(second.map(Result::unwrap));
            let what = format!("{threads} threads, stopped at {stop}");
            assert_rows_agree(&what, &rows_of(&results), &expected);
        }
    }
}

#[test]
fn a_retained_range_and_encoded_batches_answer_like_the_stream() {
    let Some(loaded) = AZURE.load() else { return };
    let questions = questions::azure();
    let way = Way::plain(&AZURE);
    let batches = loaded.cut(way.batch_rows, usize::MAX);
    let kept = Stream::from_batches(loaded.schema.clone(), batches.clone());
    let mut running = questions[0].start_on(kept.keep(Keep::Bytes(usize::MAX)), way);
    let retained = running.retained().unwrap().clone();
    running.by_ref().for_each(|result| drop(result.unwrap()));
    assert_eq!(retained.rows(), loaded.rows());
    let mut encoder = BatchEncoder::new(&loaded.schema).unwrap();
    let encoded: Vec<_> = batches
        .iter()
        .map(|batch| Arc::new(encoder.encode_new(batch).unwrap()))
        .collect();
    for question in &questions {
        let expected = question.answer(&loaded, way);
        for threads in [1, 3] {
            let way = Way { threads, ..way };
            let from_retained = Stream::from_retained(&retained);
            let answer = question.rows(question.start_on(from_retained, way));
            assert_rows_agree(&format!("retained {}", question.name), &answer, &expected);
            let from_encoded = Stream::from_encoded(encoder.schema().clone(), encoded.clone());
            let answer = question.rows(question.start_on(from_encoded, way));
            assert_rows_agree(&format!("encoded {}", question.name), &answer, &expected);
        }
    }
}
