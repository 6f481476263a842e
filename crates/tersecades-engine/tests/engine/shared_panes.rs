//! Queries that share panes answer as the naive engine says of each, and as each does alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use tersecades_columnar::error::ErrorKind;
use tersecades_engine::Result;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{col, lit};
use tersecades_engine::plan::{Query, Step};
use tersecades_engine::runtime::standing::Standing;
use tersecades_engine::runtime::{Keep, Running};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Window, cumulate, hop, session, tumble};
use tersecades_testkit::data::{Stream as Rows, to_batches};
use tersecades_testkit::oracle::{Answer, answer, difference};
use tersecades_testkit::query::random_query;
use tersecades_testkit::random::Random;
use tersecades_testkit::trial::{self, Cases, Smaller, smaller};

/// Several queries over one stream, and how they are run.
#[derive(Clone)]
struct Case {
    queries: Vec<Query>,
    rows: Rows,
    batch_rows: usize,
    threads: usize,
    kept: bool,
    /// Batches before a snapshot that a fresh run goes on from.
    restart: Option<usize>,
}

/// What a case says of itself.
struct Seen {
    shares: bool,
    answers: usize,
    late: bool,
}

struct Sets;

/// Windows that share panes, some that do not, each with some of the aggregates of `query`; one of
/// the queries takes only some of the rows.
fn of_other_windows(query: &Query, random: &mut Random) -> Vec<Query> {
    let size = Duration::from_secs(*random.pick(&[1, 2, 5, 60]));
    let mut windows = vec![
        tumble(size),
        hop(size * 3, size),
        hop(size * 4, size * 2),
        cumulate(size * 6, size * 2),
        tumble(size * 2).offset(size),
        hop(size * 5, size * 3).offset(size * 2),
        hop(size, size * 2),
        session(size),
    ];
    while windows.len() > 5 {
        windows.remove(random.below(windows.len()));
    }
    let mut queries: Vec<Query> = Vec::new();
    for window in windows {
        let mut query = query.clone();
        let end = query.steps.iter().position(is_grouped).unwrap();
        query.steps.truncate(end + 1);
        ask(&mut query.steps[end], window, random);
        if random.one_in(6) {
            query.steps.insert(0, Step::Filter(lit(true)));
        }
        queries.push(query);
    }
    queries
}

/// Gives a group-by another window, and leaves out some of its aggregates.
fn ask(step: &mut Step, other: Window, random: &mut Random) {
    if let Step::Aggregate {
        window, aggregates, ..
    } = step
    {
        *window = other;
        aggregates.retain(|_| !random.one_in(3));
        if aggregates.is_empty() {
            aggregates.push(count().alias("rows"));
        }
    }
}

fn is_grouped(step: &Step) -> bool {
    matches!(step, Step::Aggregate { .. })
}

/// What a query found: results, late rows, and late rows by window.
fn found(running: &Running, results: &[RecordBatch]) -> (Answer, usize, String) {
    let metrics = running.metrics();
    let mut got = Answer::from_batches(&running.schema(), results);
    got.skipped_rows = metrics.skipped_rows as usize;
    got.untimed_rows = metrics.untimed_rows as usize;
    let windows = format!("{:?}", metrics.late_by_window);
    (got, metrics.late_rows as usize, windows)
}

impl Case {
    fn of(&self, stream: &Stream, query: &Query) -> Stream {
        let of_query = stream.clone().query(query.clone()).keep_late();
        of_query.threads(self.threads)
    }

    fn start(&self, batches: &[RecordBatch]) -> Result<Standing> {
        let mut stream = Stream::from_batches(self.rows.schema.clone(), batches.to_vec());
        if self.kept {
            stream = stream.keep(Keep::Bytes(usize::MAX));
        }
        let queries = self.queries.iter().enumerate();
        let named = queries.map(|(at, query)| (at.to_string(), self.of(&stream, query)));
        let named: Vec<_> = named.collect();
        stream.standing(named)
    }

    /// Runs the queries together, and each alone beside the naive engine.
    fn check(&self) -> Result<std::result::Result<Seen, String>> {
        let batches = to_batches(&self.rows.schema, &self.rows.rows, self.batch_rows);
        let stream = Stream::from_batches(self.rows.schema.clone(), batches.clone());
        let mut results: Vec<(Arc<str>, RecordBatch)> = Vec::new();
        let before = self.restart.unwrap_or(0).min(batches.len());
        let mut run = match self.restart {
            None => self.start(&batches)?,
            Some(_) => {
                let mut first = self.start(&batches[..before])?;
                for step in 0..before {
                    first.step()?;
                    // What waits at the snapshot comes out of the run that is restored.
                    if (before + step).is_multiple_of(2) {
                        results.extend(std::iter::from_fn(|| first.take_result()));
                    }
                }
                let mut second = self.start(&batches[before..])?;
                second.restore(&first.snapshot()?)?;
                second
            }
        };
        let shares = run.sharing().count() > 0;
        for result in run.by_ref() {
            results.push(result?);
        }
        let mut seen = Seen {
            shares,
            answers: 0,
            late: false,
        };
        for ((name, running), query) in run.queries().zip(&self.queries) {
            let own = results.iter().filter(|(of, _)| **of == *name);
            let own: Vec<RecordBatch> = own.map(|(_, rows)| rows.clone()).collect();
            let (got, late, windows) = found(running, &own);
            let mut alone = self.of(&stream, query).run()?;
            let rows: Vec<RecordBatch> = alone.by_ref().collect::<Result<_>>()?;
            let (one, late_alone, windows_alone) = found(&alone, &rows);
            let naive = answer(query, &self.rows.schema, &self.rows.rows)?;
            let differs = difference(&naive, &got).or_else(|| difference(&one, &got));
            let counts = (late, got.skipped_rows, got.untimed_rows);
            let asked = (naive.late.len(), naive.skipped_rows, naive.untimed_rows);
            if let Some(differs) = differs {
                return Ok(Err(format!("{query}: {differs}")));
            }
            if counts != asked || late != late_alone || windows != windows_alone {
                let what = format!("{query}: late, skipped, untimed: expected {asked:?}");
                return Ok(Err(format!("{what}, got {counts:?}; {windows}")));
            }
            seen.answers += usize::from(!naive.rows.is_empty());
            seen.late |= late > 0;
        }
        Ok(Ok(seen))
    }
}

impl Cases for Sets {
    type Case = Case;
    type Seen = Seen;

    fn make(&self, seed: u64) -> Case {
        let mut random = Random::new(seed ^ 0x9A_7E5);
        let (mut query, mut rows) = random_query(seed * 64);
        for more in 1.. {
            if query.steps.iter().any(is_grouped) {
                break;
            }
            (query, rows) = random_query(seed * 64 + more);
        }
        if !random.one_in(4) {
            query.event_time.lateness = Duration::ZERO;
        }
        for _ in 0..rows.rows.len() / 20 {
            let [one, other] = [0; 2].map(|_| random.below(rows.rows.len()));
            rows.rows.swap(one, other);
        }
        let of_its_own = |query: &Query| {
            let answers = answer(query, &rows.schema, &rows.rows).is_ok();
            let stream = Stream::from_batches(rows.schema.clone(), Vec::new());
            let one = [("one", stream.clone().query(query.clone()))];
            answers && stream.standing(one).is_ok()
        };
        let mut queries = of_other_windows(&query, &mut random);
        queries.retain(of_its_own);
        Case {
            queries,
            rows,
            batch_rows: *random.pick(&[1, 7, 64, 65_536]),
            threads: *random.pick(&[1, 1, 3]),
            kept: random.one_in(3),
            restart: random.one_in(3).then(|| random.below(8)),
        }
    }

    fn check(&self, case: &Case) -> std::result::Result<Seen, String> {
        let checked = case.check();
        checked.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn smaller<'a>(&'a self, case: &'a Case) -> Smaller<'a, Case> {
        let fewer = (0..case.queries.len()).map(|left_out| {
            let mut case = case.clone();
            case.queries.remove(left_out);
            case
        });
        let whole = case.restart.iter().map(|_| Case {
            restart: None,
            ..case.clone()
        });
        let first = case.queries.iter().take(1);
        let streams = first.flat_map(|query| smaller::streams(&case.rows, query));
        let streams = streams.map(|rows| Case {
            rows,
            ..case.clone()
        });
        Box::new(whole.chain(fewer).chain(streams))
    }

    fn show(&self, case: &Case) -> String {
        let queries = case.queries.iter().map(|query| format!("\n  {query}"));
        let rows = case.rows.rows.iter().map(|row| format!("\n  {row:?}"));
        format!(
            "{}\nbatches of {}, threads {}, kept {}, restart {:?}, {} rows{}",
            queries.collect::<String>(),
            case.batch_rows,
            case.threads,
            case.kept,
            case.restart,
            case.rows.rows.len(),
            rows.collect::<String>()
        )
    }
}

#[test]
fn random_sets_of_queries_agree_with_the_oracle() {
    let seen = trial::run("sets of queries", 400, &Sets);
    let shared = seen.iter().filter(|seen| seen.shares).count();
    let late = seen.iter().filter(|seen| seen.shares && seen.late).count();
    let answers: usize = seen.iter().map(|seen| seen.answers).sum();
    if seen.len() >= 100 {
        assert!(shared * 2 > seen.len(), "{shared} sets shared panes");
        assert!(late * 10 > seen.len(), "{late} of them had late rows");
        assert!(answers > seen.len(), "{answers} answers with rows");
    }
}

/// 20,000 rows of as many groups in the first 20 seconds, a millisecond apart.
fn wide() -> Stream {
    let time = TimestampMillisecondArray::from_iter_values(0..20_000);
    let key = Int64Array::from_iter_values(0..20_000);
    let columns: [(&str, ArrayRef); 2] = [("timestamp", Arc::new(time)), ("host", Arc::new(key))];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let parts = (0..20).map(|part| rows.slice(part * 1_000, 1_000));
    Stream::from_batches(rows.schema(), parts.collect())
}

fn by_host(stream: &Stream, window: Window) -> Stream {
    let windows = stream.clone().window(window).group_by(["host"]);
    windows.aggregate([count(), call("max", col("host"))])
}

#[test]
fn explain_says_which_panes_are_shared() {
    let stream = wide();
    let seconds = Duration::from_secs;
    let queries = [
        ("rows", by_host(&stream, tumble(seconds(10)))),
        ("hops", by_host(&stream, hop(seconds(60), seconds(5)))),
        ("visits", by_host(&stream, session(seconds(5)))),
    ];
    let mut run = stream.standing(queries).unwrap();
    let shared = "panes of 5s shared by `rows`, `hops`";
    assert_eq!(run.sharing().collect::<Vec<_>>(), [shared]);
    let says: Vec<bool> = run
        .queries()
        .map(|(_, query)| query.describe().iter().any(|line| line.ends_with(shared)))
        .collect();
    assert_eq!(says, [true, true, false]);
}

#[test]
fn bytes_of_shared_panes_count_once() {
    let stream = wide();
    let window = |query: usize| tumble(Duration::from_secs(100 + 100 * query as u64));
    let half = |running: &mut Running| {
        (0..10).for_each(|_| assert!(running.step().unwrap()));
        running.state_bytes()
    };
    let alone = half(&mut by_host(&stream, window(0)).run().unwrap());
    let queries = (0..4).map(|query| (query.to_string(), by_host(&stream, window(query))));
    let mut run = stream.clone().standing(queries).unwrap();
    (0..10).for_each(|_| assert!(run.step().unwrap()));
    let together: usize = run.queries().map(|(_, query)| query.state_bytes()).sum();
    assert!(
        together * 2 > alone && together < alone * 2,
        "{together} bytes together, {alone} of one alone"
    );
    let limited = |query| by_host(&stream, window(query)).memory_limit(alone / 8);
    let queries = (0..4).map(|query| (query.to_string(), limited(query)));
    let mut results = stream.clone().standing(queries).unwrap();
    let error = results.find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}

#[test]
fn a_query_that_has_ended_holds_no_other_up() {
    let stream = wide();
    let seconds = |window| by_host(&stream, tumble(Duration::from_secs(window)));
    let queries = [("first", seconds(1).limit(3, 0)), ("all", seconds(2))];
    let mut rows = [0, 0];
    for result in stream.clone().standing(queries).unwrap() {
        let (name, result) = result.unwrap();
        rows[usize::from(&*name == "all")] += result.num_rows();
    }
    assert_eq!(rows, [3, 20_000]);
}
