//! Queries that stand together over one stream answer as each does alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use tersecades_columnar::error::{Error, ErrorKind};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::plan::Query;
use tersecades_engine::runtime::{Keep, Running};
use tersecades_engine::source::table::{MemoryTable, Table};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;
use tersecades_testkit::data::{Stream as Rows, to_batches};
use tersecades_testkit::oracle::{Answer, difference};
use tersecades_testkit::query::random_query;
use tersecades_testkit::random::Random;
use tersecades_testkit::trial::smaller;

const SEEDS: u64 = 400;

/// Results, and late rows.
fn answer_of(running: &Running, results: &[RecordBatch]) -> (Answer, u64) {
    let metrics = running.metrics();
    let mut got = Answer::from_batches(&running.schema(), results);
    got.skipped_rows = metrics.skipped_rows as usize;
    got.untimed_rows = metrics.untimed_rows as usize;
    (got, metrics.late_rows)
}

/// Runs the queries together and each alone, which the oracle's tests do as well; the number of
/// them that had rows to answer with.
fn compare(queries: &[Query], rows: &Rows, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let batches = to_batches(&rows.schema, &rows.rows, *random.pick(&[1, 7, 64, 65_536]));
    let mut stream = Stream::from_batches(rows.schema.clone(), batches);
    if random.one_in(2) {
        stream = stream.keep(Keep::Bytes(usize::MAX));
    }
    let of = |query: &Query| {
        let stream = stream.clone().query(query.clone()).keep_late();
        stream.threads(*Random::new(seed).pick(&[1, 1, 3]))
    };
    let named = queries.iter().enumerate();
    let named = named.map(|(index, query)| (index.to_string(), of(query)));
    let mut run = stream.clone().standing(named).unwrap();
    let mut results: HashMap<Arc<str>, Vec<RecordBatch>> = HashMap::new();
    for found in run.by_ref() {
        let (name, rows) = found.unwrap();
        results.entry(name).or_default().push(rows);
    }
    let mut answered = 0;
    for ((name, running), query) in run.queries().zip(queries) {
        let mut alone = of(query).run().unwrap();
        let expected: Vec<RecordBatch> = alone.by_ref().map(Result::unwrap).collect();
        let (expected, late) = answer_of(&alone, &expected);
        let found = results.get(name).map_or(&[][..], |found| &found[..]);
        let (got, late_found) = answer_of(running, found);
        let differs = difference(&expected, &got);
        assert_eq!(differs, None, "seed {seed}, query {name}: {query}");
        assert_eq!(late_found, late, "seed {seed}, query {name}");
        answered += usize::from(!expected.rows.is_empty());
    }
    answered
}

/// Whether the query has an answer, and may stand beside others.
fn can_stand(query: &Query, rows: &Rows) -> bool {
    let batches = to_batches(&rows.schema, &rows.rows, 64);
    let stream = Stream::from_batches(rows.schema.clone(), batches);
    let query = stream.clone().query(query.clone());
    let alone = query.clone().run();
    let answered = alone.is_ok_and(|mut run| run.all(|rows| rows.is_ok()));
    answered && stream.standing([("one", query)]).is_ok()
}

#[test]
fn each_query_answers_as_it_does_alone() {
    let (mut answered, mut together) = (0, 0);
    for seed in 0..SEEDS {
        let (query, rows) = random_query(seed);
        let variants = smaller::queries(&query).take(3);
        let queries: Vec<Query> = std::iter::once(query.clone())
            .chain(variants)
            .filter(|query| can_stand(query, &rows))
            .collect();
        if queries.len() > 1 {
            together += 1;
            answered += compare(&queries, &rows, seed);
        }
    }
    assert!(together > 200, "{together} cases");
    assert!(answered > 300, "{answered} answers with rows");
}

fn probes() -> Stream {
    probes_at((0..5_000).collect())
}

fn probes_at(times: Vec<i64>) -> Stream {
    let rows = (0..5_000i64).map(|row| row * 3 % 700);
    let time = arrow_array::TimestampMillisecondArray::from(times);
    let rtt = arrow_array::Int64Array::from_iter_values(rows);
    let batch = RecordBatch::try_from_iter([
        ("timestamp", Arc::new(time) as arrow_array::ArrayRef),
        ("rtt", Arc::new(rtt) as arrow_array::ArrayRef),
    ]);
    let batch = batch.unwrap();
    let parts = (0..5)
        .map(|part| batch.slice(part * 1_000, 1_000))
        .collect();
    Stream::from_batches(batch.schema(), parts)
}

#[test]
fn results_come_as_windows_close_and_the_range_is_kept_once() {
    let probes = probes().keep(Keep::Bytes(usize::MAX));
    let second = || probes.clone().window(tumble(Duration::from_secs(1)));
    let worst = call("max", col("rtt"));
    let queries = [
        ("rows", second().aggregate([count()])),
        ("worst", second().aggregate([worst])),
    ];
    let mut run = probes.clone().standing(queries).unwrap();
    let mut seen = Vec::new();
    while run.step().unwrap() {
        let found = std::iter::from_fn(|| run.take_result()).count();
        seen.push(found);
    }
    assert_eq!(
        seen,
        [0, 2, 2, 2, 2],
        "both windows, a batch after they began"
    );
    assert_eq!(std::iter::from_fn(|| run.take_result()).count(), 2);
    let kept = run.retained().unwrap();
    assert_eq!(kept.rows(), 5_000);
    let again = Stream::from_retained(kept)
        .aggregate([count()])
        .run()
        .unwrap();
    assert_eq!(again.count(), 1);
}

/// Two partitions, the second a second behind: its rows are not late for any of the queries.
#[test]
fn partitions_hold_the_watermark_back_for_every_query() {
    let part = |first: i64| {
        let time = arrow_array::TimestampMillisecondArray::from_iter_values(
            (0..3_000).map(|row| first + row),
        );
        let time: arrow_array::ArrayRef = Arc::new(time);
        let rows = RecordBatch::try_from_iter([("timestamp", time)]).unwrap();
        let parts = (0..30).map(|part| rows.slice(part * 100, 100)).collect();
        Arc::new(MemoryTable::new(rows.schema(), parts)) as Arc<dyn Table>
    };
    let stream = Stream::from_partitions(vec![part(1_000), part(0)]).unwrap();
    let counted = |millis| {
        let window = tumble(Duration::from_millis(millis));
        stream.clone().window(window).aggregate([count()])
    };
    let queries = [("short", counted(100)), ("long", counted(1_000))];
    let mut run = stream.clone().standing(queries).unwrap();
    let mut rows: HashMap<Arc<str>, usize> = HashMap::new();
    for found in run.by_ref() {
        let (name, found) = found.unwrap();
        *rows.entry(name).or_default() += found.num_rows();
    }
    assert_eq!((rows["short"], rows["long"]), (40, 4));
    let late: u64 = run
        .queries()
        .map(|(_, query)| query.metrics().late_rows)
        .sum();
    assert_eq!(late, 0);
}

/// A run over what a query gives goes on over the rows of it that come after the snapshot.
#[test]
fn a_snapshot_of_queries_over_a_query_goes_on_with_the_rest() {
    let batches: Vec<RecordBatch> = {
        let mut run = probes().run().unwrap();
        run.by_ref().map(Result::unwrap).collect()
    };
    let over = |batches: &[RecordBatch]| {
        let stream = Stream::from_batches(batches[0].schema(), batches.to_vec());
        let source = stream.filter(col("rtt").gt_eq(0)).as_source().unwrap();
        let source = source.event_time(col("timestamp"), Duration::ZERO);
        let counted = |millis| {
            let window = tumble(Duration::from_millis(millis));
            source.clone().window(window).aggregate([count()])
        };
        let queries = [("short", counted(100)), ("long", counted(1_500))];
        source.clone().standing(queries).unwrap()
    };
    let shown = |found: (Arc<str>, RecordBatch)| format!("{} {:?}", found.0, found.1);
    let expected: Vec<String> = over(&batches).map(|found| shown(found.unwrap())).collect();
    for steps in 1..batches.len() {
        let mut run = over(&batches);
        for _ in 0..steps {
            run.step().unwrap();
        }
        let snapshot = run.snapshot().unwrap();
        let mut rest = over(&batches[steps..]);
        rest.restore(&snapshot).unwrap();
        let found: Vec<String> = rest.map(|found| shown(found.unwrap())).collect();
        assert_eq!(found, expected, "after {steps} batches");
    }
}

#[test]
fn what_cannot_stand_together_is_refused() {
    let stream = probes();
    let other = probes().aggregate([count()]);
    let error = stream.clone().standing([("other", other)]).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let twice = [0, 1].map(|_| ("one", stream.clone().aggregate([count()])));
    let error = stream.clone().standing(twice).err().unwrap();
    assert!(error.message().contains("`one`"), "{error}");
    let nested = stream
        .clone()
        .distinct()
        .window(tumble(Duration::from_secs(1)));
    let nested = [("nested", nested.aggregate([count()]))];
    let error = stream.clone().standing(nested).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let steps = stream.clone().filter(col("rtt").gt_eq(3));
    let error = steps.clone().standing([("own", steps)]).err().unwrap();
    assert!(
        error
            .hint_text()
            .is_some_and(|hint| hint.contains("as_source"))
    );
    let bad = stream
        .clone()
        .filter(col("rtz").gt_eq(3))
        .aggregate([count()]);
    assert!(stream.clone().standing([("bad", bad)]).is_err());
    // All read the same encoded rows.
    let plain = stream.clone().aggregate([count()]);
    let coarse = stream.encoding("rtt", "plain");
    let error = coarse.clone().standing([("plain", plain)]).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.hint_text().unwrap().contains("encoding"), "{error}");
    let own = coarse.clone().encoding("timestamp", "plain");
    let own = [("own", own.aggregate([count()]))];
    assert!(coarse.clone().standing(own).is_err());
    let same = [("same", coarse.clone().aggregate([count()]))];
    assert!(coarse.standing(same).is_ok());
}

/// The answers of a query that ran so far, and what went wrong behind them.
fn until_it_fails(stream: Stream) -> (Vec<RecordBatch>, Option<Error>) {
    let (mut found, mut failed) = (Vec::new(), None);
    for rows in stream.run().unwrap() {
        match rows {
            Ok(rows) => found.push(rows),
            Err(error) => failed = Some(error),
        }
    }
    (found, failed)
}

#[test]
fn results_before_an_error_come_first_and_nothing_goes_on_behind_it() {
    // What is late cuts the fourth batch: windows come out in its midst.
    let stream = probes_at(
        (0..5_000)
            .map(|row| if row == 3_250 { 3_010 } else { row })
            .collect(),
    );
    let windows = |stream: Stream| stream.window(tumble(Duration::from_millis(100)));
    // The sum of a window is too much from that of the row 3,400 on, in the fourth batch.
    let large = col("timestamp").cast(DataType::Int64) * (i64::MAX / 340_000);
    let after = |steps: usize, stream: Stream| -> Vec<RecordBatch> {
        let mut run = stream.run().unwrap();
        (0..steps).for_each(|_| assert!(run.step().unwrap()));
        std::iter::from_fn(|| run.take_result()).collect()
    };
    let good = || windows(stream.clone()).aggregate([count()]);
    let bad = || windows(stream.clone()).aggregate([call("sum", large.clone()).alias("sum")]);
    let behind = || windows(stream.clone()).aggregate([call("max", col("rtt"))]);
    let (before, failed) = until_it_fails(bad());
    assert!(failed.is_some() && before.len() > 30, "{}", before.len());
    let expected = HashMap::from([
        (Arc::from("good"), after(4, good())),
        (Arc::from("bad"), before),
        (Arc::from("behind"), after(3, behind())),
    ]);
    let queries = || [("good", good()), ("bad", bad()), ("behind", behind())];
    let mut run = stream.clone().standing(queries()).unwrap();
    let mut found: HashMap<Arc<str>, Vec<RecordBatch>> = HashMap::new();
    let error = loop {
        match run.next().unwrap() {
            Ok((name, rows)) => found.entry(name).or_default().push(rows),
            Err(error) => break error,
        }
    };
    assert_eq!(found, expected);
    assert!(error.hint_text().unwrap().contains("`bad`"), "{error}");
    assert!(run.next().is_none());
    assert_eq!(run.step().unwrap_err().to_string(), error.to_string());
    assert_eq!(run.snapshot().unwrap_err().to_string(), error.to_string());
    // Nor is there a snapshot while the error waits for results to be taken.
    let mut waiting = stream.clone().standing(queries()).unwrap();
    (0..4).for_each(|_| assert!(waiting.step().unwrap()));
    assert!(waiting.snapshot().is_err());
}
