//! Rows by event time, and what goes by their order, agree with their definitions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use tersecades_columnar::types::Value;
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_testkit::data::{
    Stream as Rows, TIME_SHAPES, TimeStream, random_stream, to_batches,
};
use tersecades_testkit::oracle::join::on_time;
use tersecades_testkit::oracle::rows::{changes, lag};
use tersecades_testkit::oracle::{Answer, Row, difference};
use tersecades_testkit::random::Random;
use tersecades_testkit::trial::{self, Cases, Smaller, smaller};

const LATENESS: i64 = 20;

/// What goes by the order of rows.
#[derive(Debug, Clone, Copy)]
enum Behind {
    Nothing,
    Lag,
    Changes,
}

#[derive(Debug, Clone)]
struct Case {
    stream: Rows,
    behind: Behind,
    batch_rows: usize,
    stop: usize,
}

impl Case {
    fn times(&self) -> Vec<Option<i64>> {
        let time = |row: &Row| match row[0] {
            Value::Integer(time) => Some(time as i64),
            _ => None,
        };
        self.stream.rows.iter().map(time).collect()
    }

    /// The rows, and how many are late.
    fn expected(&self) -> (Vec<Row>, u64) {
        let times = self.times();
        let mut on_time = on_time(&times, LATENESS);
        let timed = times.iter().flatten().count();
        let late = (timed - on_time.len()) as u64;
        on_time.sort_by_key(|row| (times[*row], *row));
        let rows = on_time.iter().map(|row| self.stream.rows[*row].clone());
        let rows: Vec<Row> = rows.collect();
        let rows = match self.behind {
            Behind::Nothing => rows,
            Behind::Lag => lag(&rows, 1, 2, &[2]),
            Behind::Changes => changes(&rows, &[1], &[2], Some(0)),
        };
        (rows, late)
    }

    fn start(&self) -> Running {
        let batches = to_batches(&self.stream.schema, &self.stream.rows, self.batch_rows);
        let ordered = Stream::from_batches(Arc::clone(&self.stream.schema), batches)
            .event_time(col("time"), Duration::from_millis(LATENESS as u64))
            .in_order()
            .unwrap();
        let keys = ["c_boolean"];
        let stream = match self.behind {
            Behind::Nothing => ordered,
            Behind::Lag => ordered.lag("c_int8", 2, keys, "earlier"),
            Behind::Changes => ordered.changes(["c_int8"], keys),
        };
        stream.run().unwrap()
    }
}

struct Ordered;

impl Cases for Ordered {
    type Case = Case;
    /// Whether rows were late.
    type Seen = bool;

    fn make(&self, seed: u64) -> Case {
        let mut random = Random::new(seed);
        let time = TimeStream {
            shape: *random.pick(TIME_SHAPES),
            step: 7,
            window: 60,
            lateness: LATENESS,
            origin: 0,
        };
        let rows = *random.pick(&[0, 1, 30, 100, 300]);
        let mut stream = random_stream(&DataType::Int64, time, rows, &mut random);
        for index in (0..stream.schema.fields().len()).rev() {
            let name = stream.schema.field(index).name();
            if !["time", "c_boolean", "c_int8"].contains(&name.as_str()) {
                stream = smaller::without_column(&stream, index);
            }
        }
        // Columns stand as time, integer, boolean.
        let swapped = stream.schema.project(&[0, 2, 1]).unwrap();
        stream.schema = Arc::new(swapped);
        stream.rows.iter_mut().for_each(|row| row.swap(1, 2));
        Case {
            stream,
            behind: *random.pick(&[Behind::Nothing, Behind::Lag, Behind::Changes]),
            batch_rows: *random.pick(&[1, 7, 40, 1_000]),
            stop: random.below(8),
        }
    }

    fn check(&self, case: &Case) -> Result<bool, String> {
        let (rows, late) = case.expected();
        let mut first = case.start();
        let mut batches: Vec<RecordBatch> = Vec::new();
        for _ in 0..case.stop {
            first.step().unwrap();
            batches.extend(std::iter::from_fn(|| first.take_result()));
        }
        let mut run = case.start();
        run.resume(&first.snapshot().unwrap()).unwrap();
        batches.extend(run.by_ref().map(Result::unwrap));
        let got = Answer::from_batches(&run.schema(), &batches);
        let expected = Answer {
            columns: got.columns.clone(),
            rows,
            ..Answer::default()
        };
        if let Some(difference) = difference(&expected, &got) {
            return Err(difference);
        }
        match run.metrics().late_rows == late {
            true => Ok(late > 0),
            false => Err(format!(
                "{} rows are late instead of {late}",
                run.metrics().late_rows
            )),
        }
    }

    fn smaller<'a>(&'a self, case: &'a Case) -> Smaller<'a, Case> {
        Box::new(smaller::rows(&case.stream.rows).map(move |rows| {
            let mut fewer = case.clone();
            fewer.stream.rows = rows;
            fewer
        }))
    }

    fn show(&self, case: &Case) -> String {
        format!("{case:#?}")
    }
}

#[test]
fn rows_come_out_by_event_time() {
    let seen = trial::run("in order", 1_000, &Ordered);
    assert!(seen.len() < 100 || seen.iter().any(|late| *late));
}
