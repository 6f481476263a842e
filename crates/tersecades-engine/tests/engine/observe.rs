//! A range kept for queries: it answers them as the whole stream does, and refuses all others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow_schema::SchemaRef;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::observe::Need;
use tersecades_engine::plan::Query;
use tersecades_engine::runtime::{Keep, Retained, Running};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{hop, session, tumble};
use tersecades_engine::{ErrorKind, Result};
use tersecades_testkit::data::to_batches;
use tersecades_testkit::oracle::batch_difference;
use tersecades_testkit::query::random_query;
use tersecades_testkit::random::Random;

/// Pairs of query and data of one run; `TERSECADES_OBSERVE_CASES` asks for more.
const CASES: usize = 4_000;

/// Runs at once, each over queries and streams of its own.
const PARTS: u64 = 4;

/// Seeds of a part.
const PART_SEEDS: u64 = 1 << 32;

/// Queries of earlier seeds that are asked of each stream as well.
const QUERIES_EACH: usize = 9;

/// One case of so many runs while its range is filled, too.
const LIVE_EVERY: usize = 3;

/// Results, late and untimed rows, or that there is an error.
type Outcome = Option<(Vec<RecordBatch>, u64, u64)>;

fn outcome(run: Result<Running>) -> Outcome {
    let mut run = run.ok()?;
    let results: Result<Vec<RecordBatch>> = run.by_ref().collect();
    let metrics = run.metrics();
    Some((results.ok()?, metrics.late_rows, metrics.untimed_rows))
}

/// Stops where outcomes of `query` differ by more than the order in which floats were added.
fn assert_same(query: &Query, (expected, found): (&Outcome, &Outcome), context: &str) {
    let differs = match (expected, found) {
        (None, None) => None,
        (Some((expected, late, untimed)), Some((found, late_found, untimed_found))) => {
            let counts = (late, untimed) != (late_found, untimed_found);
            batch_difference(query, expected, found, &[])
                .or(counts.then(|| "late or untimed rows".to_owned()))
        }
        _ => Some("one of them is an error".to_owned()),
    };
    if let Some(differs) = differs {
        panic!("{context}: {differs}\n{query:#?}");
    }
}

/// What a range of `rows` holds when all have come.
fn range_of(rows: Stream) -> Retained {
    let mut kept = rows.aggregate([count()]).run().unwrap();
    while kept.step().unwrap() {}
    kept.retained().unwrap().clone()
}

/// One query over one stream, kept `whole` and kept for the query; `live` as well if it is to run
/// while the range is filled.
fn check(query: &Query, rows: &Stream, whole: &Retained, live: bool, context: &str) -> Needs {
    let keep = Keep::Bytes(usize::MAX);
    let asked = rows.clone().query(query.clone());
    let exact = outcome(Stream::from_retained(whole).query(query.clone()).run());
    let retained = range_of(rows.clone().keep_for(keep, [("q", asked.clone())]).unwrap());
    let reduced = outcome(retained.query("q").unwrap().run());
    assert_same(query, (&exact, &reduced), context);
    if live {
        // The query that runs while the range is filled is one of those it is kept for.
        let live = outcome(asked.clone().keep(keep).run());
        let none: [(&str, Stream); 0] = [];
        let reduced = outcome(asked.keep_for(keep, none).unwrap().run());
        assert_same(query, (&live, &reduced), &format!("live, {context}"));
    }
    Needs::of(&retained)
}

/// How many columns are kept how.
#[derive(Debug, Default, Clone, Copy)]
struct Needs {
    nothing: usize,
    class: usize,
    exact: usize,
}

impl Needs {
    fn add(&mut self, other: Needs) {
        self.nothing += other.nothing;
        self.class += other.class;
        self.exact += other.exact;
    }

    fn of(retained: &Retained) -> Self {
        let mut needs = Needs::default();
        let observed = retained.observed().unwrap();
        for line in observed.lines() {
            let name = line["keep ".len()..].split(':').next().unwrap();
            match observed.need(name).unwrap() {
                Need::Nothing => needs.nothing += 1,
                Need::Class(_) => needs.class += 1,
                Need::Exact => needs.exact += 1,
            }
        }
        needs
    }
}

/// Checks at least `cases`, of seeds from `first_seed` on; returns what was kept, and how often.
fn check_cases(first_seed: u64, cases: usize) -> (Needs, usize) {
    let mut earlier: VecDeque<(SchemaRef, Query)> = VecDeque::new();
    let (mut done, mut total) = (0, Needs::default());
    for seed in first_seed.. {
        let (query, stream) = random_query(seed);
        let mut random = Random::new(seed);
        let batch_rows = *random.pick(&[20, 100, 700, 65_536]);
        let batches = to_batches(&stream.schema, &stream.rows, batch_rows);
        let rows = Stream::from_batches(stream.schema.clone(), batches);
        earlier.push_front((stream.schema.clone(), query));
        earlier.truncate(400);
        let fitting = earlier
            .iter()
            .filter(|(schema, _)| *schema == stream.schema);
        let whole = range_of(rows.clone().keep(Keep::Bytes(usize::MAX)));
        for (index, (_, query)) in fitting.take(QUERIES_EACH).enumerate() {
            let context = format!("seed {seed}, query {index}");
            let live = done % LIVE_EVERY == 0;
            total.add(check(query, &rows, &whole, live, &context));
            done += 1;
        }
        if done >= cases {
            break;
        }
    }
    (total, done)
}

#[test]
fn answers_over_what_is_kept_for_a_query_are_those_over_the_whole_stream() {
    let cases = std::env::var("TERSECADES_OBSERVE_CASES");
    let cases = cases.ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let part = |index: u64| check_cases(index * PART_SEEDS, cases.div_ceil(PARTS as usize));
    let (mut done, mut total) = (0, Needs::default());
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..PARTS)
            .map(|index| scope.spawn(move || part(index)))
            .collect();
        for part in parts {
            let (needs, checked) = part.join().unwrap();
            total.add(needs);
            done += checked;
        }
    });
    assert!(done >= cases);
    assert!(
        total.class > done && total.nothing > done,
        "{total:?} in {done} cases"
    );
}

/// A probe each 10 ms: time, answer time, error code, two names.
fn probes(rows: i64) -> RecordBatch {
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(
        (0..rows).map(|row| 1_700_000_000_000 + row * 10 + row * row % 7),
    ));
    let rtt: ArrayRef = Arc::new(Float64Array::from_iter_values(
        (0..rows).map(|row| (row * 7919 % 1000) as f64 / 7.0),
    ));
    let code: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|r| r % 50 / 49)));
    let name = |k: i64| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            (0..rows).map(|r| format!("c{}", r % k)),
        ))
    };
    let columns = [
        ("timestamp", times),
        ("rtt", rtt),
        ("code", code),
        ("cluster", name(5)),
        ("host", name(997)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn stream() -> Stream {
    let rows = probes(20_000);
    Stream::from_batches(rows.schema(), vec![rows])
}

fn errors(rows: Stream, window: u64) -> Stream {
    rows.filter(col("code").not_eq(0).and(col("rtt").gt_eq(100.0)))
        .window(hop(
            Duration::from_secs(window),
            Duration::from_secs(window / 6),
        ))
        .group_by(["cluster"])
        .aggregate([count().alias("n")])
}

fn kept_for_errors() -> Retained {
    kept_for_windows_of(60)
}

fn kept_for_windows_of(seconds: u64) -> Retained {
    // A stream that is made anew is another one.
    let kept = stream().keep_for(Keep::Bytes(1), [("errors", errors(stream(), 60))]);
    assert_eq!(kept.err().unwrap().kind(), ErrorKind::InvalidArgument);
    let rows = stream();
    let wanted = [("errors", errors(rows.clone(), seconds))];
    let rows = rows.keep_for(Keep::Bytes(usize::MAX), wanted).unwrap();
    let mut run = rows.aggregate([count()]).run().unwrap();
    while run.step().unwrap() {}
    run.retained().unwrap().clone()
}

#[test]
fn each_column_says_what_is_kept_and_for_whom() {
    let retained = kept_for_errors();
    let lines = retained.observed().unwrap().lines();
    let line = |name: &str| {
        let start = format!("keep {name}: ");
        lines.iter().find(|line| line.starts_with(&start)).unwrap()
    };
    assert!(line("timestamp").contains("every 10000 ticks"), "{lines:?}");
    assert!(
        line("rtt").contains("2 classes cut at 100.0 where code <> 0, elsewhere not kept"),
        "{lines:?}"
    );
    assert!(line("code").contains("3 classes cut at 0, 1"), "{lines:?}");
    assert!(
        line("cluster").ends_with(
            "exact where code <> 0 AND rtt >= 100.0, elsewhere not kept (errors: group key)"
        ),
        "{lines:?}"
    );
    assert!(
        line("host").contains("not kept, no registered query"),
        "{lines:?}"
    );
    let rows = stream();
    let wanted = [("errors", errors(rows.clone(), 60))];
    let kept = rows.keep_for(Keep::Bytes(1), wanted).unwrap();
    let described = kept.aggregate([count()]).describe().unwrap();
    assert!(
        lines.iter().all(|line| described.contains(line)),
        "{described:?}"
    );
}

#[test]
fn times_at_pane_resolution_take_half_a_bit_a_row() {
    let bytes = |retained: &Retained, name: &str| -> usize {
        let index = retained.schema().index_of(name).unwrap();
        let batches = retained.batches();
        batches
            .iter()
            .map(|batch| batch.column(index).byte_size())
            .sum()
    };
    let (long, short) = (kept_for_windows_of(3_600), kept_for_errors());
    let plain = long.rows() * 8;
    assert!(bytes(&long, "timestamp") * 128 <= plain, "{plain}");
    // Panes of a thousand rows end in almost every block.
    assert!(bytes(&short, "timestamp") * 4 <= plain, "{plain}");
    assert!(bytes(&short, "rtt") * 7 <= plain && bytes(&short, "code") * 7 <= plain);
    assert!(short.schema().index_of("host").is_err());
}

#[test]
fn queries_that_would_see_more_are_refused_and_others_are_not() {
    let retained = kept_for_errors();
    let rows = || Stream::from_retained(&retained);
    let seconds = Duration::from_secs;
    let refused = [
        ("host", rows().group_by(["host"]).aggregate([count()])),
        ("cluster", rows().group_by(["cluster"]).aggregate([count()])),
        ("rtt", rows().aggregate([call("max", col("rtt"))])),
        ("timestamp", errors(rows(), 60).keep(Keep::Bytes(1))),
        (
            "rtt",
            rows().filter(col("rtt").gt(200.0)).aggregate([count()]),
        ),
        (
            "timestamp",
            rows().window(tumble(seconds(5))).aggregate([count()]),
        ),
        (
            "timestamp",
            rows().window(session(seconds(60))).aggregate([count()]),
        ),
        ("timestamp", rows()),
        (
            "rtt",
            rows()
                .filter((col("rtt") * 2.0).gt(200.0))
                .aggregate([count()]),
        ),
    ];
    for (column, query) in refused {
        let error = query.run().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert_eq!(error.context().column.as_deref(), Some(column), "{error}");
        assert!(error.hint_text().unwrap().contains("register"), "{error}");
        assert!(error.message().contains("kept"), "{error}");
    }
    let answered = [
        errors(rows(), 120),
        errors(rows(), 3_600),
        rows()
            .filter(col("code").not_eq(0).and(col("rtt").lt(100.0)))
            .aggregate([count()]),
        rows()
            .filter(col("code").not_eq(0))
            .window(tumble(seconds(30)))
            .aggregate([call("count", col("rtt"))]),
        rows().aggregate([call("count_if", col("code").gt_eq(1))]),
    ];
    for query in answered {
        query.run().unwrap().for_each(|batch| drop(batch.unwrap()));
    }
    assert!(
        retained
            .query("error")
            .err()
            .unwrap()
            .to_string()
            .contains("`errors`")
    );
}

/// What `ask` asks of the whole of `rows`, it asks of what is kept for it.
fn same_when_kept(rows: &Stream, ask: impl Fn(Stream) -> Stream) {
    let keep = Keep::Bytes(usize::MAX);
    let retained = range_of(
        rows.clone()
            .keep_for(keep, [("q", ask(rows.clone()))])
            .unwrap(),
    );
    let reduced = outcome(retained.query("q").unwrap().run());
    assert_eq!(outcome(ask(rows.clone()).run()), reduced);
}

#[test]
fn what_a_count_is_filtered_by_is_kept_whole() {
    let odd = BooleanArray::from_iter((0..900).map(|row| (row % 9 != 0).then_some(row % 2 == 1)));
    let columns: [(&str, ArrayRef); 1] = [("odd", Arc::new(odd))];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let rows = Stream::from_batches(rows.schema(), vec![rows]);
    let counted = call("count", col("odd")).filter(col("odd"));
    same_when_kept(&rows, |rows| rows.aggregate([counted.clone()]));
}

#[test]
fn a_class_below_zero_is_below_zero() {
    let around: ArrayRef = Arc::new(Float64Array::from_iter_values((-9..9).map(f64::from)));
    let rows = RecordBatch::try_from_iter([("x", around)]).unwrap();
    let rows = Stream::from_batches(rows.schema(), vec![rows]);
    for cut in [0.0, -0.0] {
        same_when_kept(&rows, |rows| {
            rows.filter(col("x").lt(cut)).aggregate([count()])
        });
    }
}

#[test]
fn a_plain_retained_range_is_exact() {
    let mut run = errors(stream(), 60)
        .keep(Keep::Bytes(usize::MAX))
        .run()
        .unwrap();
    while run.step().unwrap() {}
    let retained = run.retained().unwrap();
    assert!(retained.observed().is_none());
    let rows: Result<Vec<RecordBatch>> = Stream::from_retained(retained).run().unwrap().collect();
    let rows = rows.unwrap();
    assert_eq!(
        rows.iter().map(RecordBatch::num_rows).sum::<usize>(),
        20_000
    );
    assert_eq!(rows[0].num_columns(), 5);
}

#[test]
fn a_range_of_some_time_keeps_the_same_rows_however_they_are_kept() {
    let rows = probes(20_000);
    let batches = (0..200).map(|k| rows.slice(k * 100, 100)).collect();
    let rows = Stream::from_batches(rows.schema(), batches);
    let keep = Keep::Duration(Duration::from_millis(12_345));
    let wanted = [("errors", errors(rows.clone(), 60))];
    let count_kept = |rows: Stream| {
        let mut run = rows.aggregate([count()]).run().unwrap();
        while run.step().unwrap() {}
        run.retained().unwrap().rows()
    };
    let exact = count_kept(rows.clone().keep(keep));
    assert_eq!(exact, count_kept(rows.keep_for(keep, wanted).unwrap()));
}

/// NaN is above all numbers, which stay what they are.
#[test]
fn a_range_cut_at_nan_keeps_numbers_apart_from_it() {
    let doubles = [1.5, f64::NAN, -2.0, f64::INFINITY, f64::NEG_INFINITY, 0.0];
    let singles = doubles.map(|value| value as f32);
    let columns: [(&str, ArrayRef); 2] = [
        ("double", Arc::new(Float64Array::from(doubles.to_vec()))),
        ("single", Arc::new(Float32Array::from(singles.to_vec()))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let rows = Stream::from_batches(batch.schema(), vec![batch]);
    let counted = |stream: Stream| {
        let mut run = stream.run().unwrap();
        run.next().unwrap().unwrap()
    };
    for name in ["double", "single"] {
        let x = || col(name);
        for test in [
            x().eq(f64::NAN),
            x().not_eq(f64::NAN),
            x().lt(f64::NAN),
            x().lt_eq(f64::NAN),
            x().gt(f64::NAN),
            x().gt_eq(f64::NAN),
        ] {
            let query = rows.clone().filter(test.clone()).aggregate([count()]);
            let kept = rows
                .clone()
                .keep_for(Keep::Bytes(usize::MAX), [("q", query.clone())]);
            let kept = range_of(kept.unwrap());
            let expected = counted(query);
            assert_eq!(
                counted(kept.query("q").unwrap()),
                expected,
                "{name}: {test}"
            );
        }
    }
}
