//! Rows that an input could not read are counted by whatever reads it, as far as it has read.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_engine::Result;
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::as_of::Direction;
use tersecades_engine::operator::join::table::{JoinSpec, JoinTime};
use tersecades_engine::operator::join::window::WindowJoinSpec;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::process::WindowFunction;
use tersecades_engine::source::{Rejected, Source};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Span, tumble};

/// Bad rows before each good one, and at the end.
const BAD: u64 = 3;

/// The numbers from 0 as times, one in each batch, between bad rows.
struct Partly {
    next: i64,
    good: i64,
    rejected: Rejected,
}

impl Source for Partly {
    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("time", DataType::Int64, true)]))
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.rejected.count_rows += BAD;
        if self.next == self.good {
            return Ok(None);
        }
        let times: ArrayRef = Arc::new(Int64Array::from(vec![self.next]));
        self.next += 1;
        Ok(Some(RecordBatch::try_new(self.schema(), vec![times])?))
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

fn partly(good: i64) -> Stream {
    let source = Partly {
        next: 0,
        good,
        rejected: Rejected::default(),
    };
    Stream::from_source(Box::new(source)).event_time(col("time"), Duration::ZERO)
}

#[derive(Debug)]
struct Same;

impl WindowFunction for Same {
    fn schema(&self, input: &Schema) -> Result<SchemaRef> {
        Ok(Arc::new(input.clone()))
    }

    fn process(&self, _window: &Span, rows: &RecordBatch) -> Result<RecordBatch> {
        Ok(rows.clone())
    }
}

/// What reads streams, by name.
fn readers(good: i64) -> Vec<(&'static str, Stream)> {
    let (one, on) = (|| partly(good), &[("time", "time")][..]);
    let (kind, window) = (JoinKind::Inner, || tumble(Duration::from_millis(10)));
    let in_window = JoinSpec {
        kind,
        on: vec![("time".to_owned(), "time".to_owned())],
        time: JoinTime::Window(WindowJoinSpec { window: window() }),
        options: JoinOptions::default(),
    };
    let nearest = (Direction::Backward, None);
    vec![
        (
            "join",
            one().join(one(), kind, on, JoinOptions::default()).unwrap(),
        ),
        (
            "interval_join",
            one().interval_join(one(), on, (0, 0), kind).unwrap(),
        ),
        (
            "asof_join",
            one().asof_join(one(), on, nearest, kind).unwrap(),
        ),
        ("window_join", one().join_with(one(), in_window).unwrap()),
        ("merge", Stream::merge([one(), one()]).unwrap()),
        ("union", Stream::union([one(), one()]).unwrap()),
        ("process", one().process(window(), Same).unwrap()),
        ("in_order", one().in_order().unwrap()),
    ]
}

#[test]
fn bad_rows_are_counted_before_the_inputs_end() {
    for (name, stream) in readers(1_000) {
        let mut run = stream.limit(1, 0).run().unwrap();
        let rows: usize = run.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
        let bad = run.metrics().rejected_rows;
        assert!(rows == 1 && bad >= BAD, "{name}: {bad} bad of {rows}");
    }
}

#[test]
fn bad_rows_are_counted_where_no_row_is_good() {
    for (name, stream) in readers(0) {
        let mut run = stream.run().unwrap();
        assert!(run.next().is_none(), "{name}");
        assert!(run.metrics().rejected_rows >= BAD, "{name}");
    }
}

#[test]
fn a_union_counts_the_bad_rows_of_each_input_once() {
    let mut run = Stream::union([partly(2), partly(5)])
        .unwrap()
        .run()
        .unwrap();
    let rows: usize = run.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((rows, run.metrics().rejected_rows), (7, 9 * BAD));
}
