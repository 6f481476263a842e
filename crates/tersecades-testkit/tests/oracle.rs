//! The oracle against answers worked out by hand, and against the queries made for it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first surprise"
)]

use std::time::Duration;

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use tersecades_columnar::types::Value;
use tersecades_engine::ErrorKind;
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::plan::{AggregateCall, EventTime, Query, Step};
use tersecades_engine::window::{Window, hop, tumble};
use tersecades_testkit::data::{from_batch, to_batches};
use tersecades_testkit::oracle::{Answer, answer, assert_same, difference};
use tersecades_testkit::query::random_query;

const SECOND: Duration = Duration::from_secs(1);

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("t", DataType::Int64, true),
        Field::new("v", DataType::Float64, true),
    ])
}

/// Counts and adds `v` in windows over `(t, v)` rows.
fn ask(window: Window, lateness: u32, rows: &[(Option<i64>, f64)]) -> Answer {
    let call = |function: &str, argument: Option<Expression>| AggregateCall {
        function: function.to_owned(),
        argument,
        output: function.to_owned(),
        ..AggregateCall::default()
    };
    let aggregates = vec![call("count", None), call("sum", Some(col("v")))];
    let query = Query {
        event_time: EventTime {
            expression: col("t"),
            unit: TimeUnit::Second,
            lateness: SECOND * lateness,
        },
        steps: vec![Step::Aggregate {
            window,
            keys: vec![],
            aggregates,
        }],
    };
    let value = |t: &Option<i64>| t.map_or(Value::Null, Value::from);
    let rows: Vec<Vec<Value>> = rows
        .iter()
        .map(|(t, v)| vec![value(t), Value::from(*v)])
        .collect();
    answer(&query, &schema(), &rows).unwrap()
}

/// `(start, end, count)` of every result row.
fn counts(answer: &Answer) -> Vec<(i128, i128, i128)> {
    let integer = |value: &Value| match value {
        Value::Integer(integer) => *integer,
        other => panic!("{other:?} is no integer"),
    };
    let rows = answer.rows.iter();
    rows.map(|row| (integer(&row[0]), integer(&row[1]), integer(&row[2])))
        .collect()
}

#[test]
fn a_row_is_late_when_its_window_ends_at_the_watermark() {
    // 10 closes [0, 10); 9 is then late, 5 arrived in time.
    let rows = [(Some(5), 1.0), (Some(10), 1.0), (Some(9), 1.0)];
    let strict = ask(tumble(SECOND * 10), 0, &rows);
    assert_eq!(counts(&strict), [(0, 10, 1), (10, 20, 1)]);
    assert_eq!(strict.late, [2]);
    let patient = ask(tumble(SECOND * 10), 1, &rows);
    assert_eq!(counts(&patient), [(0, 10, 2), (10, 20, 1)]);
    assert!(patient.late.is_empty());
}

#[test]
fn a_partially_late_row_counts_where_windows_are_open() {
    // Row 7 is in [-5, 5)? no: in [0, 10) and [5, 15); 12 has closed [0, 10).
    let answer = ask(
        hop(SECOND * 10, SECOND * 5),
        2,
        &[(Some(12), 1.0), (Some(7), 2.0)],
    );
    assert_eq!(counts(&answer), [(5, 15, 2), (10, 20, 1)]);
    assert!(answer.late.is_empty());
    assert_eq!(answer.rows[0][3], Value::Float(3.0));
}

#[test]
fn negative_times_gaps_and_missing_times() {
    let rows = [
        (Some(-1), 1.0),
        (Some(-10), 1.0),
        (None, 1.0),
        (Some(3), 1.0),
    ];
    let answer = ask(tumble(SECOND * 10), 60, &rows);
    assert_eq!(counts(&answer), [(-10, 0, 2), (0, 10, 1)]);
    assert_eq!(answer.untimed_rows, 1);
    let gaps = ask(hop(SECOND * 2, SECOND * 10), 60, &rows);
    assert_eq!(counts(&gaps), [(-10, -8, 1)]);
    assert_eq!(gaps.skipped_rows, 2);
    let shifted = ask(tumble(SECOND * 10).offset(SECOND * 3), 60, &rows);
    assert_eq!(counts(&shifted), [(-17, -7, 1), (-7, 3, 1), (3, 13, 1)]);
}

#[test]
fn differences_are_found_and_rounding_is_not() {
    let rows = [(Some(1), 0.1), (Some(2), 0.2), (Some(3), -0.3)];
    let expected = ask(tumble(SECOND * 10), 0, &rows);
    let mut got = expected.clone();
    got.rows[0][3] = Value::Float(1e-12);
    assert_same(&expected, &got);
    got.rows[0][3] = Value::Float(1e-6);
    assert!(
        difference(&expected, &got)
            .unwrap()
            .contains("column `sum`")
    );
    got.rows.clear();
    assert!(
        difference(&expected, &got)
            .unwrap()
            .contains("expected 1 rows, got 0")
    );
}

#[test]
fn unknown_is_not_true_and_division_by_zero_is_null() {
    let query = |condition: Expression| Query {
        event_time: EventTime {
            expression: col("t"),
            unit: TimeUnit::Second,
            lateness: Duration::ZERO,
        },
        steps: vec![Step::Filter(condition)],
    };
    let rows = [
        vec![Value::from(1i64), Value::Null],
        vec![Value::from(2i64), Value::from(2.0)],
    ];
    let kept = |condition| {
        answer(&query(condition), &schema(), &rows)
            .unwrap()
            .rows
            .len()
    };
    assert_eq!(kept(col("v").eq(2.0)), 1);
    assert_eq!(kept(!col("v").eq(2.0)), 0);
    assert_eq!(kept(col("v").eq(2.0).or(col("t").eq(1))), 2);
    assert_eq!(kept((col("t") / 0).is_null()), 2);
    assert_eq!(kept((lit(-7) / 2).eq(-3)), 2);
    assert_eq!(kept((lit(-7) % 2).eq(-1)), 2);
    assert_eq!(kept(col("v").lt(f64::NAN)), 1);
}

#[test]
fn every_seeded_query_has_an_answer() {
    let (mut with_rows, mut late, mut skipped, mut untimed) = (0, 0, 0, 0);
    let mut beyond = 0;
    for seed in 0..500 {
        let (query, stream) = random_query(seed);
        let answer = answer(&query, &stream.schema, &stream.rows);
        let answer = match answer {
            Ok(answer) => answer,
            // Windows over times next to the end of 64 bits may reach beyond it.
            Err(error) if error.kind() == ErrorKind::LimitExceeded => {
                beyond += 1;
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}\n{query:?}"),
        };
        with_rows += usize::from(!answer.rows.is_empty());
        late += usize::from(!answer.late.is_empty());
        skipped += usize::from(answer.skipped_rows > 0);
        untimed += usize::from(answer.untimed_rows > 0);
    }
    let seen = (with_rows, late, skipped, untimed);
    assert!(
        with_rows > 150 && late > 20 && skipped > 20 && untimed > 20,
        "{seen:?}"
    );
    assert!(beyond < 50, "{beyond} of 500 have no answer");
}

#[test]
fn streams_survive_arrow_in_batches_of_any_size() {
    let (_, stream) = (0..)
        .map(random_query)
        .find(|(_, s)| s.rows.len() == 300)
        .unwrap();
    for batch_rows in [1, 7, 300, 1000] {
        let batches = to_batches(&stream.schema, &stream.rows, batch_rows);
        let back: Vec<Vec<Value>> = batches.iter().flat_map(from_batch).collect();
        assert_eq!(format!("{back:?}"), format!("{:?}", stream.rows));
    }
}
