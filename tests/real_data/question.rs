//! A question, asked twice: with the stream builder, and in SQL written by hand.

use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::TimeUnit;
use tersecades_engine::expression::Expression;
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{hop, tumble};

use crate::data_set::{DataSet, Loaded};
use crate::row::{Cell, Row, row_order, rows_of};

/// An event time, in both languages.
#[derive(Clone)]
pub(crate) struct Time {
    pub(crate) expression: Expression,
    /// Unit of an integer expression.
    pub(crate) unit: TimeUnit,
    /// The same in SQL, as an integer number of ticks.
    pub(crate) sql: &'static str,
    pub(crate) ticks_per_second: u64,
}

/// A windowed group-by, in both languages.
pub(crate) struct Question {
    pub(crate) name: &'static str,
    pub(crate) time: Time,
    pub(crate) size_s: u64,
    pub(crate) slide_s: u64,
    filter: Option<(Expression, &'static str)>,
    keys: Vec<&'static str>,
    aggregates: Vec<(AggregateCall, &'static str)>,
}

/// How a question is run.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) threads: usize,
    pub(crate) batch_rows: usize,
    pub(crate) rows_limit: usize,
    pub(crate) lateness: Duration,
}

impl Way {
    /// One thread, large batches, all rows, nothing late.
    pub(crate) fn plain(set: &DataSet) -> Self {
        let lateness = set.lateness;
        Way {
            threads: 1,
            batch_rows: 65_536,
            rows_limit: usize::MAX,
            lateness,
        }
    }
}

impl Question {
    pub(crate) fn new(name: &'static str, time: Time, size_s: u64, slide_s: u64) -> Self {
        let (filter, keys, aggregates) = (None, Vec::new(), Vec::new());
        Question {
            name,
            time,
            size_s,
            slide_s,
            filter,
            keys,
            aggregates,
        }
    }

    pub(crate) fn filter(mut self, condition: Expression, sql: &'static str) -> Self {
        self.filter = Some((condition, sql));
        self
    }

    pub(crate) fn by(mut self, keys: &[&'static str]) -> Self {
        self.keys = keys.to_vec();
        self
    }

    pub(crate) fn ask(mut self, call: AggregateCall, sql: &'static str) -> Self {
        let output = format!("a{}", self.aggregates.len());
        self.aggregates.push((call.alias(output), sql));
        self
    }

    /// The question over `stream`, whose event time is set.
    fn on(&self, mut stream: Stream) -> Stream {
        if let Some((condition, _)) = &self.filter {
            stream = stream.filter(condition.clone());
        }
        let (size, slide) = (
            Duration::from_secs(self.size_s),
            Duration::from_secs(self.slide_s),
        );
        let window = if size == slide {
            tumble(size)
        } else {
            hop(size, slide)
        };
        let calls = self.aggregates.iter().map(|(call, _)| call.clone());
        stream
            .window(window)
            .group_by(self.keys.iter().copied())
            .aggregate(calls)
    }

    /// The question over `batches`, running.
    pub(crate) fn start(&self, loaded: &Loaded, batches: Vec<RecordBatch>, way: Way) -> Running {
        let stream = Stream::from_batches(loaded.schema.clone(), batches);
        self.start_on(stream, way)
    }

    /// The question over any stream of the set, running.
    pub(crate) fn start_on(&self, stream: Stream, way: Way) -> Running {
        let stream = stream
            .event_time(self.time.expression.clone(), way.lateness)
            .event_time_unit(self.time.unit)
            .threads(way.threads);
        self.on(stream).run().unwrap()
    }

    /// The rows of the answer, in the order they come out.
    pub(crate) fn answer(&self, loaded: &Loaded, way: Way) -> Vec<Row> {
        let batches = loaded.cut(way.batch_rows, way.rows_limit);
        let running = self.start(loaded, batches, way);
        self.rows(running)
    }

    /// What comes out of `running`, of which the order and the window ends are checked.
    pub(crate) fn rows(&self, running: Running) -> Vec<Row> {
        let answer: Vec<RecordBatch> = running.map(Result::unwrap).collect();
        self.checked_rows(&answer)
    }

    /// The rows of `answer`: window start, keys, aggregates.
    pub(crate) fn checked_rows(&self, answer: &[RecordBatch]) -> Vec<Row> {
        let shown: Vec<RecordBatch> = answer
            .iter()
            .map(|batch| {
                let kept: Vec<usize> = (0..batch.num_columns()).filter(|at| *at != 1).collect();
                batch.project(&kept).unwrap()
            })
            .collect();
        let size = (self.size_s * self.time.ticks_per_second) as i64;
        let bounds = answer.iter().map(|batch| batch.project(&[0, 1]).unwrap());
        for row in rows_of(&bounds.collect::<Vec<_>>()) {
            let [Cell::Integer(start), Cell::Integer(end)] = row[..] else {
                panic!("{}: window bounds {row:?}", self.name)
            };
            assert_eq!(end - start, size, "{}", self.name);
        }
        let rows = rows_of(&shown);
        let key = |row: &Row| row[..=self.keys.len()].to_vec();
        let sorted = rows.is_sorted_by(|a, b| row_order(&key(a), &key(b)).is_lt());
        assert!(sorted, "{}: not ordered by window, then key", self.name);
        rows
    }

    /// The question in SQL over the table `stream`, ordered as the engine's answer is.
    ///
    /// All times of the real data are positive, so `//` rounds towards the past.
    pub(crate) fn sql(&self) -> String {
        let ticks = self.time.ticks_per_second;
        let (size, slide) = (self.size_s * ticks, self.slide_s * ticks);
        let time = self.time.sql;
        let filter = self.filter.as_ref().map_or("true", |(_, sql)| sql);
        let keys: String = self.keys.iter().map(|key| format!(", \"{key}\"")).collect();
        let aggregates: String = self
            .aggregates
            .iter()
            .map(|(_, sql)| format!(", {sql}"))
            .collect();
        let order: String = self
            .keys
            .iter()
            .map(|key| format!(", \"{key}\" NULLS LAST"))
            .collect();
        format!(
            "SELECT ((t // {slide} - back) * {slide})::BIGINT AS window_start{keys}{aggregates}
             FROM (SELECT *, ({time})::BIGINT AS t FROM stream WHERE {filter}),
                  range({size} // {slide}) AS overlap(back)
             WHERE t IS NOT NULL
             GROUP BY window_start{keys} ORDER BY window_start{order}"
        )
    }
}
