//! Partitioned streams agree with the naive engine, whichever partitions end, fall silent and
//! speak again; and how rows are spread over partitions that are in order changes nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::types::Value;
use tersecades_engine::Result;
use tersecades_engine::event_time::TestClock;
use tersecades_engine::plan::{Query, Step};
use tersecades_engine::runtime::Keep;
use tersecades_engine::source::partitioned::PartitionedTable;
use tersecades_engine::source::table::{MemoryTable, Table};
use tersecades_engine::source::{PartitionState, Rejected, Source};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::Shape;
use tersecades_testkit::data::stream::TIME;
use tersecades_testkit::data::{Stream as Rows, to_batches};
use tersecades_testkit::oracle::order::order;
use tersecades_testkit::oracle::{
    Answer, Event, Partitioned, Row, answer, answer_partitioned, difference,
};
use tersecades_testkit::query::random_query;
use tersecades_testkit::random::Random;
use tersecades_testkit::trial::{self, Cases, Smaller, smaller};

const TIMEOUT: Duration = Duration::from_secs(5);

/// What a source does when it is asked for rows.
#[derive(Debug, Clone)]
enum Act {
    Rows(usize, Vec<Row>),
    /// The partition is asked in vain for as long as the idle timeout.
    Idle(usize),
    End(usize),
}

/// A query over partitions that do as told.
#[derive(Clone)]
struct Case {
    query: Query,
    schema: SchemaRef,
    partitions: usize,
    acts: Vec<Act>,
}

impl Case {
    /// Gives stretches of the rows to partitions at random; some of those end and fall silent.
    fn new(query: Query, stream: &Rows, random: &mut Random) -> Self {
        let partitions = 1 + random.below(5);
        let batch_rows = *random.pick(&[1, 3, 20, 100]);
        let mut flowing: Vec<usize> = (0..partitions).collect();
        let mut acts = Vec::new();
        for rows in stream.rows.chunks(batch_rows) {
            match random.below(12) {
                0 if flowing.len() > 1 => {
                    let ended = flowing.swap_remove(random.below(flowing.len()));
                    acts.push(Act::End(ended));
                }
                1 | 2 => acts.push(Act::Idle(*random.pick(&flowing))),
                _ => {}
            }
            acts.push(Act::Rows(*random.pick(&flowing), rows.to_vec()));
        }
        Case {
            query,
            schema: Arc::clone(&stream.schema),
            partitions,
            acts,
        }
    }

    /// The rows as they arrive, and what partitions do besides.
    fn arrive(&self) -> (Vec<Row>, Partitioned) {
        let mut rows = Vec::new();
        let mut partitioned = Partitioned {
            count: self.partitions,
            ..Partitioned::default()
        };
        for act in &self.acts {
            let before = rows.len();
            match act {
                Act::Rows(partition, batch) => {
                    rows.extend(batch.iter().cloned());
                    partitioned.of_rows.extend(batch.iter().map(|_| *partition));
                }
                Act::Idle(partition) => partitioned.events.push((before, *partition, Event::Idles)),
                Act::End(partition) => partitioned.events.push((before, *partition, Event::Ends)),
            }
        }
        (rows, partitioned)
    }

    fn stream(&self) -> Stream {
        let clock = TestClock::at(TIMEOUT * 100);
        let source = Script {
            schema: Arc::clone(&self.schema),
            acts: self.acts.clone().into(),
            states: vec![PartitionState::Flowing; self.partitions],
            last: 0,
            clock: clock.clone(),
            asked_in_vain: false,
            rejected: Rejected::default(),
        };
        let stream = Stream::from_source(Box::new(source)).query(self.query.clone());
        stream.clock(clock).idle_timeout(TIMEOUT)
    }

    /// The answer of the stream, and that over the range that it kept.
    fn run_twice(&self, threads: usize) -> Result<[(Answer, u64); 2]> {
        let rows = Query {
            event_time: self.query.event_time.clone(),
            steps: Vec::new(),
        };
        let rows = self.stream().query(rows).keep(Keep::Bytes(usize::MAX));
        let mut running = rows.run()?;
        while running.step()? {
            while running.take_result().is_some() {}
        }
        let kept = running.retained().map(Stream::from_retained).unwrap();
        let over_range = kept.query(self.query.clone()).threads(threads);
        Ok([
            answer_of(self.stream().threads(threads))?,
            answer_of(over_range)?,
        ])
    }
}

fn answer_of(stream: Stream) -> Result<(Answer, u64)> {
    let mut running = stream.run()?;
    let batches: Vec<RecordBatch> = running.by_ref().collect::<Result<_>>()?;
    let answer = Answer::from_batches(&running.schema(), &batches);
    Ok((answer, running.metrics().late_rows))
}

/// A source that does as told; time passes only while a partition falls silent.
struct Script {
    schema: SchemaRef,
    acts: VecDeque<Act>,
    states: Vec<PartitionState>,
    last: usize,
    clock: TestClock,
    asked_in_vain: bool,
    rejected: Rejected,
}

impl Script {
    fn rows(&self, rows: &[Row]) -> RecordBatch {
        to_batches(&self.schema, rows, rows.len()).remove(0)
    }
}

impl Source for Script {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(act) = self.acts.pop_front() else {
            return Ok(None);
        };
        let (partition, state, rows) = match &act {
            Act::Rows(partition, rows) => (*partition, PartitionState::Flowing, rows.as_slice()),
            Act::Idle(partition) => (*partition, PartitionState::Waiting, &[][..]),
            Act::End(partition) => (*partition, PartitionState::Ended, &[][..]),
        };
        (self.states[partition], self.last) = (state, partition);
        let rows = self.rows(rows);
        if matches!(act, Act::Idle(_)) {
            self.asked_in_vain = !self.asked_in_vain;
            match self.asked_in_vain {
                true => self.acts.push_front(act),
                false => self.clock.advance(TIMEOUT),
            }
        }
        Ok(Some(rows))
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn partitions(&self) -> usize {
        self.states.len()
    }

    fn partition(&self) -> usize {
        self.last
    }

    fn partition_state(&self, partition: usize) -> PartitionState {
        self.states[partition]
    }
}

struct PartitionedStreams;

impl Cases for PartitionedStreams {
    type Case = Case;
    /// Whether rows were late.
    type Seen = bool;

    fn make(&self, seed: u64) -> Case {
        let (query, stream) = random_query(seed);
        Case::new(query, &stream, &mut Random::new(seed ^ 0x9A27))
    }

    fn check(&self, case: &Case) -> std::result::Result<bool, String> {
        let (rows, partitioned) = case.arrive();
        let expected = answer_partitioned(&case.query, &case.schema, &rows, Some(&partitioned));
        for threads in [1, 3] {
            let (expected, answers) = match (&expected, case.run_twice(threads)) {
                (Ok(expected), Ok(answers)) => (expected, answers),
                (Err(_), Err(_)) => continue,
                (Ok(_), Err(error)) => return Err(error.to_string()),
                (Err(error), Ok(_)) => return Err(format!("the oracle refuses: {error}")),
            };
            for ((got, late), of) in answers.into_iter().zip(["the stream", "its range"]) {
                if let Some(difference) = difference(expected, &got) {
                    return Err(format!("{difference}\n{of}, {threads} threads"));
                }
                let expected = expected.late.len() as u64;
                if late != expected {
                    return Err(format!("{late} rows of {of} are late, not {expected}"));
                }
            }
        }
        Ok(expected.is_ok_and(|expected| !expected.late.is_empty()))
    }

    fn smaller<'a>(&'a self, case: &'a Case) -> Smaller<'a, Case> {
        let acts = smaller::rows(&case.acts).map(move |acts| Case {
            acts,
            ..case.clone()
        });
        let queries = smaller::queries(&case.query).map(move |query| Case {
            query,
            ..case.clone()
        });
        Box::new(queries.chain(acts))
    }

    fn show(&self, case: &Case) -> String {
        format!("{}\n{:#?}\n{:?}", case.query, case.query.steps, case.acts)
    }
}

#[test]
fn partitioned_streams_agree_with_the_oracle() {
    let seen = trial::run("partitions", 1_000, &PartitionedStreams);
    let late = seen.iter().filter(|late| **late).count();
    assert!(
        seen.len() < 100 || late * 20 > seen.len(),
        "{late} streams with late rows"
    );
}

/// Tables among which rows are spread at random; each keeps their order.
fn spread(stream: &Rows, (count, batch_rows): (usize, usize), random: &mut Random) -> Stream {
    let mut partitions = vec![Vec::new(); count];
    for row in &stream.rows {
        partitions[random.below(count)].push(row.clone());
    }
    let tables = partitions.into_iter().map(|rows: Vec<Row>| {
        let batches = to_batches(&stream.schema, &rows, batch_rows);
        let table = MemoryTable::new(Arc::clone(&stream.schema), batches);
        Arc::new(table) as Arc<dyn Table>
    });
    Stream::from_table(PartitionedTable::new(tables.collect()).unwrap())
}

/// Whether windows need times, and neither they nor an aggregate ask which of several rows came
/// first.
fn is_free_of_order(query: &Query) -> bool {
    let in_order =
        |function: &str| matches!(function, "first" | "last") || function.starts_with("arg_");
    let mut windowed = false;
    for step in &query.steps {
        if let Step::Aggregate {
            window, aggregates, ..
        } = step
        {
            windowed |= window.needs_time();
            let mut functions = aggregates.iter().map(|call| call.function.as_str());
            let counted = matches!(window.shape, Shape::Count { .. });
            if counted || functions.any(in_order) {
                return false;
            }
        }
    }
    windowed
}

/// A query without lateness over rows in order; the rows are spread in three ways.
struct InOrder;

impl Cases for InOrder {
    /// Nothing for queries whose answers depend on the order of rows.
    type Case = Option<(Query, Rows, Random)>;
    /// How many runs were compared.
    type Seen = usize;

    fn make(&self, seed: u64) -> Self::Case {
        let (mut query, mut stream) = random_query(seed);
        query.event_time.lateness = Duration::ZERO;
        let time = stream.schema.index_of(TIME).unwrap();
        stream.rows.retain(|row| row[time] != Value::Null);
        stream.rows.sort_by(|a, b| order(&a[time], &b[time]));
        is_free_of_order(&query).then(|| (query, stream, Random::new(seed)))
    }

    fn check(&self, case: &Self::Case) -> std::result::Result<usize, String> {
        let Some((query, stream, random)) = case else {
            return Ok(0);
        };
        let Ok(expected) = answer(query, &stream.schema, &stream.rows) else {
            return Ok(0);
        };
        let mut random = random.clone();
        for count in [1, 2, 7] {
            let spread = spread(stream, (count, 1 + random.below(50)), &mut random);
            let threads = 1 + random.below(3);
            let run = answer_of(spread.query(query.clone()).threads(threads));
            let (got, late) = run.map_err(|error| error.to_string())?;
            if let Some(difference) = difference(&expected, &got) {
                return Err(format!("{difference}\n{count} partitions"));
            }
            if late + expected.late.len() as u64 > 0 {
                return Err(format!("{late} rows are late"));
            }
        }
        Ok(3)
    }

    fn smaller<'a>(&'a self, case: &'a Self::Case) -> Smaller<'a, Self::Case> {
        let smaller = case.iter().flat_map(|(query, stream, random)| {
            let rows = smaller::streams(stream, query)
                .map(move |stream| Some((query.clone(), stream, random.clone())));
            let queries = smaller::queries(query)
                .filter(is_free_of_order)
                .map(move |query| Some((query, stream.clone(), random.clone())));
            queries.chain(rows)
        });
        Box::new(smaller)
    }

    fn show(&self, case: &Self::Case) -> String {
        format!("{case:#?}")
    }
}

#[test]
fn partitions_in_order_need_no_lateness_however_rows_are_spread() {
    let seen = trial::run("spread", 600, &InOrder);
    let compared: usize = seen.iter().sum();
    assert!(seen.len() < 100 || compared > seen.len(), "{compared}");
}
