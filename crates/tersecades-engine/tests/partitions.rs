//! Partitioned streams agree with the naive engine, and how rows are spread over partitions that
//! are in order changes nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::types::Value;
use tersecades_engine::plan::{Query, Step};
use tersecades_engine::source::partitioned::PartitionedTable;
use tersecades_engine::source::table::{MemoryTable, Table};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::Shape;
use tersecades_engine::{ErrorKind, Result};
use tersecades_testkit::data::stream::TIME;
use tersecades_testkit::data::{Stream as Rows, to_batches};
use tersecades_testkit::oracle::order::order;
use tersecades_testkit::oracle::{
    Answer, Partitioned, Row, answer, answer_partitioned, difference,
};
use tersecades_testkit::query::random_query;
use tersecades_testkit::random::Random;

/// Queries of one run; `TERSECADES_ORACLE_SEEDS` asks for more.
const SEEDS: u64 = 200;

fn seeds() -> u64 {
    let seeds = std::env::var("TERSECADES_ORACLE_SEEDS").ok();
    seeds.and_then(|n| n.parse().ok()).unwrap_or(SEEDS)
}

/// Rows in partitions, each in batches.
struct Spread {
    partitions: Vec<Vec<Vec<Row>>>,
}

impl Spread {
    /// Spreads rows over `count` partitions at random; each keeps their order.
    fn new(rows: &[Row], (count, batch_rows): (usize, usize), random: &mut Random) -> Self {
        let mut partitions = vec![Vec::new(); count];
        for row in rows {
            let partition = random.below(count);
            partitions[partition].push(row.clone());
        }
        let cut = |rows: Vec<Row>| rows.chunks(batch_rows).map(<[Row]>::to_vec).collect();
        Spread {
            partitions: partitions.into_iter().map(cut).collect(),
        }
    }

    fn table(&self, schema: &SchemaRef) -> PartitionedTable {
        let tables = self.partitions.iter().map(|batches| {
            let batches = batches.iter();
            let batches = batches.flat_map(|rows| to_batches(schema, rows, rows.len()));
            let batches: Vec<RecordBatch> = batches.collect();
            Arc::new(MemoryTable::new(Arc::clone(schema), batches)) as Arc<dyn Table>
        });
        PartitionedTable::new(tables.collect()).unwrap()
    }

    /// The rows as they arrive: a batch of each partition in turn.
    fn arrive(&self) -> (Vec<Row>, Partitioned) {
        let count = self.partitions.len();
        let mut waiting: Vec<VecDeque<&Vec<Row>>> =
            self.partitions.iter().map(|p| p.iter().collect()).collect();
        let mut ended = vec![false; count];
        let mut arrived = (Vec::new(), Partitioned::default());
        arrived.1.count = count;
        while !ended.iter().all(|ended| *ended) {
            for partition in 0..count {
                match waiting[partition].pop_front() {
                    Some(batch) => {
                        arrived.0.extend(batch.iter().cloned());
                        let rows = batch.iter().map(|_| partition);
                        arrived.1.of_rows.extend(rows);
                    }
                    None if !ended[partition] => {
                        ended[partition] = true;
                        arrived.1.ends.push((arrived.0.len(), partition));
                    }
                    None => {}
                }
            }
        }
        arrived
    }
}

fn run(query: &Query, table: PartitionedTable, threads: usize) -> Result<(Answer, u64)> {
    let stream = Stream::from_table(table).query(query.clone());
    let mut running = stream.threads(threads).run()?;
    let batches: Vec<RecordBatch> = running.by_ref().collect::<Result<_>>()?;
    let answer = Answer::from_batches(&running.schema(), &batches);
    Ok((answer, running.metrics().late_rows))
}

/// Whether the rows themselves go to sessions, which need one order that partitions do not have.
fn has_sessions(query: &Query) -> bool {
    let first = query.steps.iter().find_map(|step| match step {
        Step::Aggregate { window, .. } => Some(window.shape),
        _ => None,
    });
    matches!(first, Some(Shape::Session { .. }))
}

#[test]
fn sessions_over_partitions_are_refused() {
    let seeds = (0..200).map(|seed| (seed, random_query(seed)));
    let mut refused = 0;
    for (seed, (query, stream)) in seeds.filter(|(_, (query, _))| has_sessions(query)) {
        let spread = Spread::new(&stream.rows, (2, 20), &mut Random::new(seed));
        let error = run(&query, spread.table(&stream.schema), 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "seed {seed}: {error}");
        refused += 1;
    }
    assert!(refused > 0);
}

fn check(query: &Query, stream: &Rows, spread: &Spread, what: &str) -> usize {
    let (rows, partitioned) = spread.arrive();
    let expected = answer_partitioned(query, &stream.schema, &rows, Some(&partitioned));
    for threads in [1, 3] {
        let got = run(query, spread.table(&stream.schema), threads);
        match (&expected, got) {
            (Ok(expected), Ok((got, late))) => {
                if let Some(difference) = difference(expected, &got) {
                    panic!("{difference}\n{what}, {threads} threads, {query:#?}");
                }
                assert_eq!(late, expected.late.len() as u64, "late rows, {what}");
            }
            (Err(_), Err(_)) => {}
            (Ok(_), Err(error)) => panic!("{error}\n{what}"),
            (Err(error), Ok(_)) => panic!("the oracle refuses: {error}\n{what}"),
        }
    }
    expected.map_or(0, |expected| expected.late.len())
}

#[test]
fn partitioned_streams_agree_with_the_oracle() {
    let (mut late, mut with_late) = (0, 0u64);
    for seed in 0..seeds() {
        let (query, stream) = random_query(seed);
        if has_sessions(&query) {
            continue;
        }
        let mut random = Random::new(seed ^ 0x9A27);
        let count = 1 + random.below(5);
        let batch_rows = *random.pick(&[1, 3, 20, 100, 1_000]);
        let spread = Spread::new(&stream.rows, (count, batch_rows), &mut random);
        let what = format!("seed {seed}, {count} partitions, batches of {batch_rows}");
        let rows = check(&query, &stream, &spread, &what);
        late += rows;
        with_late += u64::from(rows > 0);
    }
    assert!(
        late > 0 && with_late * 20 > seeds(),
        "{with_late} streams with late rows"
    );
}

#[test]
fn partitions_in_order_need_no_lateness_however_rows_are_spread() {
    let mut compared = 0u64;
    for seed in 0..seeds() {
        let (mut query, mut stream) = random_query(seed);
        query.event_time.lateness = Duration::ZERO;
        let windowed = query.steps.iter().any(|step| match step {
            Step::Aggregate { window, .. } => window.needs_time(),
            _ => false,
        });
        // Which of several rows comes first differs.
        let in_order = ["arg_min", "arg_max", "first", "last"];
        let ordered = query.steps.iter().any(|step| match step {
            Step::Aggregate { aggregates, .. } => aggregates
                .iter()
                .any(|call| in_order.contains(&call.function.as_str())),
            _ => false,
        });
        let time = stream.schema.index_of(TIME).unwrap();
        stream.rows.retain(|row| row[time] != Value::Null);
        if !windowed || ordered || has_sessions(&query) || stream.rows.is_empty() {
            continue;
        }
        stream.rows.sort_by(|a, b| order(&a[time], &b[time]));
        let Ok(expected) = answer(&query, &stream.schema, &stream.rows) else {
            continue;
        };
        assert_eq!(expected.late.len(), 0);
        let mut random = Random::new(seed);
        for count in [1, 2, 7] {
            let batch_rows = 1 + random.below(50);
            let spread = Spread::new(&stream.rows, (count, batch_rows), &mut random);
            let threads = 1 + random.below(3);
            let (got, late) = run(&query, spread.table(&stream.schema), threads).unwrap();
            let what = format!("seed {seed}, {count} partitions, {query:#?}");
            assert_eq!(late, 0, "{what}");
            if let Some(difference) = difference(&expected, &got) {
                panic!("{difference}\n{what}");
            }
            compared += 1;
        }
    }
    assert!(compared * 2 > seeds(), "{compared}");
}
