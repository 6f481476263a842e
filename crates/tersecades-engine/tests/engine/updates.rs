//! Results that come more than once: whatever replaces what, in the end they are the answer.
//!
//! With allowed lateness `a` a row counts in a window that ends after the watermark less `a`. So
//! the last result of every group is the naive answer to the same query whose rows may be `a`
//! later; and each result before is the naive answer over the rows that had arrived. Where results
//! come behind each row, what stands behind it is that whole answer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use tersecades_columnar::error::ErrorKind;
use tersecades_columnar::types::Value;
use tersecades_engine::aggregate::count as count_rows;
use tersecades_engine::expression::col;
use tersecades_engine::plan::{AggregateCall, EventTime, Query, Step};
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Emit, Shape, Updates, Window, count, session};
use tersecades_testkit::data::{Stream as Rows, from_batch, to_batches};
use tersecades_testkit::oracle::compare::is_same;
use tersecades_testkit::oracle::order::order;
use tersecades_testkit::oracle::{Answer, Row, answer, difference, tick_ns};
use tersecades_testkit::query::random_query;
use tersecades_testkit::random::Random;
use tersecades_testkit::trial::{self, Cases, Smaller, smaller};

/// A query whose results are updated, the same query with a plain answer, and its rows.
#[derive(Clone)]
struct Case {
    updating: Query,
    plain: Query,
    stream: Rows,
    /// Columns that are ends of windows, and those that are keys.
    ends: usize,
    keys: usize,
    emit: Emit,
    in_sessions: bool,
    /// Windows of so many rows: several of one group may have equal ends.
    in_counts: bool,
}

/// Everything a run handed out, in order, and what it left out.
struct Run {
    /// Each result with the number of rows that had arrived.
    results: Vec<(usize, Row)>,
    late_rows: u64,
    skipped_rows: u64,
    columns: Vec<(String, DataType)>,
}

fn window_of(query: &mut Query) -> Option<(&mut Window, usize)> {
    let index = query
        .steps
        .iter()
        .position(|step| matches!(step, Step::Aggregate { .. }))?;
    query.steps.truncate(index + 1);
    match query.steps.last_mut() {
        Some(Step::Aggregate { window, keys, .. }) => Some((window, keys.len())),
        _ => None,
    }
}

/// The case of `seed`; none where its windows come out once.
fn case(seed: u64, random: &mut Random) -> Option<Case> {
    let (mut plain, stream) = random_query(seed);
    let tick = tick_ns(plain.event_time.unit) as u64;
    let ticks = |ticks: i64| Duration::from_nanos(ticks.unsigned_abs() * tick);
    let (window, _) = window_of(&mut plain)?;
    // Few windows of random queries are of so many rows.
    if random.one_in(8) {
        *window = count(*random.pick(&[1, 2, 3, 7, 50]));
    }
    let updates = Updates {
        allowed_lateness: match (window.shape, *random.pick(&[0, 1, 5, 20, 300])) {
            // No row is late there.
            (Shape::Global | Shape::Count { .. }, _) => Duration::ZERO,
            (_, late) => ticks(late),
        },
        emit: match random.below(3) {
            0 => Emit::Final,
            1 => Emit::Update,
            _ => Emit::Every(ticks(*random.pick(&[1, 7, 30, 200]))),
        },
    };
    *window = Window { updates, ..*window };
    updates.are_possible().then(|| updated(plain, stream))
}

/// The case of a query whose windows come out more than once.
fn updated(updating: Query, stream: Rows) -> Case {
    let mut plain = updating.clone();
    let (window, keys) = window_of(&mut plain).unwrap();
    let asked = std::mem::replace(window, Window::from(window.shape).offset(window.offset));
    plain.event_time.lateness += asked.updates.allowed_lateness;
    Case {
        updating,
        plain,
        stream,
        ends: if asked.reads_time() { 2 } else { 0 },
        keys,
        emit: asked.updates.emit,
        in_sessions: matches!(asked.shape, Shape::Session { .. }),
        in_counts: matches!(asked.shape, Shape::Count { .. }),
    }
}

fn start(case: &Case, batches: Vec<RecordBatch>, threads: usize) -> Running {
    Stream::from_batches(case.stream.schema.clone(), batches)
        .query(case.updating.clone())
        .threads(threads)
        .run()
        .unwrap()
}

fn run(
    case: &Case,
    (batch_rows, threads): (usize, usize),
    restart: Option<usize>,
) -> tersecades_engine::Result<Run> {
    let mut batches = to_batches(&case.stream.schema, &case.stream.rows, batch_rows);
    let all_rows = case.stream.rows.len();
    let rest = restart.map(|stop| batches.split_off(stop.min(batches.len())));
    let mut running = start(case, batches, threads);
    let mut results = Vec::new();
    let mut arrived = 0;
    let mut take = |running: &mut Running, arrived: usize| {
        while let Some(batch) = running.take_result() {
            results.extend(from_batch(&batch).into_iter().map(|row| (arrived, row)));
        }
    };
    if let Some(rest) = rest {
        while running.metrics().batches < restart.unwrap_or(0) as u64 && arrived < all_rows {
            running.step()?;
            arrived = running.metrics().rows as usize;
            take(&mut running, arrived);
        }
        let snapshot = running.snapshot()?;
        running = start(case, rest, threads);
        running.restore(&snapshot)?;
    }
    let before = arrived;
    while running.step()? {
        arrived = before + running.metrics().rows as usize;
        take(&mut running, arrived);
    }
    take(&mut running, all_rows);
    let metrics = running.metrics();
    Ok(Run {
        columns: Answer::from_batches(&running.schema(), &[]).columns,
        results,
        late_rows: metrics.late_rows,
        skipped_rows: metrics.skipped_rows,
    })
}

fn name(row: &[Value], case: &Case) -> String {
    let zero = |value: &Value| match value {
        Value::Float(float) if *float == 0.0 => Value::Float(0.0),
        other => other.clone(),
    };
    let names = row[..case.ends + case.keys].iter();
    format!("{:?}", names.map(zero).collect::<Vec<_>>())
}

/// What stands of the results so far.
struct Standing<'a> {
    case: &'a Case,
    what: &'a str,
    /// By name; those of one name in the order in which they came.
    rows: HashMap<String, Vec<Row>>,
}

impl<'a> Standing<'a> {
    fn new(case: &'a Case, what: &'a str) -> Self {
        let rows = HashMap::new();
        Standing { case, what, rows }
    }

    /// Takes in the next result; checks what it says of itself.
    fn take_in(&mut self, row: &Row) {
        let (change, values) = row.split_last().unwrap();
        let (what, counted) = (self.what, self.case.in_counts);
        let known = self.rows.entry(name(values, self.case)).or_default();
        if *change == Value::from("delete") {
            let withdrawn = format!("{values:?}");
            let at = known
                .iter()
                .rposition(|row| format!("{row:?}") == withdrawn);
            let at = at.unwrap_or_else(|| panic!("{row:?} withdraws what is not there, {what}"));
            known.remove(at);
            return;
        }
        let replaces = !counted && !known.is_empty();
        let expected = if replaces { "update" } else { "insert" };
        assert_eq!(*change, Value::from(expected), "{row:?}, {what}");
        if replaces {
            known.pop();
        }
        known.push(values.to_vec());
    }

    /// How what stands differs from an answer.
    fn difference(&self, expected: &Answer, columns: &[(String, DataType)]) -> Option<String> {
        let (change, columns) = columns.split_last().unwrap();
        assert_eq!(change.0, "change");
        let rows = self.rows.values().flatten().cloned().collect();
        let got = Answer {
            columns: columns.to_vec(),
            rows: by_name(rows, self.case, |row| row),
            ..Answer::default()
        };
        // Windows of so many rows come as they fill; of one name they stay in that order.
        if !self.case.in_counts {
            return difference(expected, &got);
        }
        let rows = expected.rows.iter().zip(&expected.slack);
        let rows = by_name(rows.collect(), self.case, |(row, _)| row);
        let expected = Answer {
            columns: expected.columns.clone(),
            rows: rows.iter().map(|(row, _)| (*row).clone()).collect(),
            slack: rows.iter().map(|(_, slack)| (*slack).clone()).collect(),
            ..Answer::default()
        };
        difference(&expected, &got)
    }
}

/// Rows by windows, ends first, then by keys.
fn by_name<R>(mut rows: Vec<R>, case: &Case, values: impl Fn(&R) -> &Row) -> Vec<R> {
    rows.sort_by(|a, b| {
        let columns = (0..case.ends).rev().chain(case.ends..case.ends + case.keys);
        let orders = columns.map(|column| order(&values(a)[column], &values(b)[column]));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    rows
}

/// Each result is the answer over the rows that had arrived; where results come behind each row, no
/// other answer stands then.
fn check_each(case: &Case, run: &Run, what: &str) {
    let mut standing = Standing::new(case, what);
    let mut results = run.results.iter().peekable();
    for arrived in 0..=case.stream.rows.len() {
        let always = case.emit == Emit::Update;
        if !always && results.peek().is_none_or(|(at, _)| *at != arrived) {
            continue;
        }
        let rows = &case.stream.rows[..arrived];
        let expected = answer(&case.plain, &case.stream.schema, rows).unwrap();
        while let Some((_, row)) = results.next_if(|(at, _)| *at == arrived) {
            standing.take_in(row);
            if row.last() != Some(&Value::from("delete")) {
                check_one(&expected, row, (arrived, standing.case, what));
            }
        }
        // Without keys there is an answer before there is a row; it comes at the end.
        if always && !standing.rows.is_empty() {
            let difference = standing.difference(&expected, &run.columns);
            if let Some(difference) = difference {
                panic!("behind {arrived} rows: {difference}\n{what}");
            }
        }
    }
    assert_eq!(results.next(), None, "{what}");
}

/// A result is a row of the answer.
fn check_one(expected: &Answer, got: &Row, (arrived, case, what): (usize, &Case, &str)) {
    let group = name(got, case);
    let rows = expected.rows.iter().zip(&expected.slack);
    let named: Vec<_> = rows.filter(|(row, _)| name(row, case) == group).collect();
    let same = |(row, slack): &(&Row, &Vec<f64>)| {
        let mut columns = row.iter().zip(got).zip(slack.iter());
        columns.all(|((value, got), slack)| is_same(value, got, *slack))
    };
    assert!(
        named.iter().any(same),
        "behind {arrived} rows: expected one of {named:?}, got {got:?}, {what}"
    );
}

/// What came out in which order, without what rounding may change.
fn course(run: &Run) -> Vec<Row> {
    let exact = |value: &Value| match value {
        Value::Float(_) => Value::Null,
        value => value.clone(),
    };
    let rows = run.results.iter();
    rows.map(|(_, row)| row.iter().map(exact).collect())
        .collect()
}

/// Whether late rows changed results.
fn check(case: &Case, seed: u64) -> bool {
    let expected = answer(&case.plain, &case.stream.schema, &case.stream.rows);
    let mut random = Random::new(seed);
    let ways = [
        (1, 1, None),
        (*random.pick(&[7, 64]), 1, None),
        (65_536, 1, None),
        (*random.pick(&[3, 20, 100]), 3, None),
        (
            *random.pick(&[2, 20]),
            1 + random.below(3),
            Some(random.below(10)),
        ),
    ];
    let mut courses = Vec::new();
    let mut updated = false;
    for (batch_rows, threads, restart) in ways {
        let what = format!(
            "seed {seed}, batches of {batch_rows}, {threads} threads, restart {restart:?}, {:#?}",
            case.updating
        );
        let run = match (&expected, run(case, (batch_rows, threads), restart)) {
            (Ok(_), Ok(run)) => run,
            (Err(_), Err(_)) => return false,
            (Ok(_), Err(error)) => panic!("{error}, {what}"),
            (Err(error), Ok(_)) => panic!("the oracle refuses: {error}, {what}"),
        };
        let expected = expected.as_ref().unwrap();
        let mut standing = Standing::new(case, &what);
        run.results
            .iter()
            .for_each(|(_, row)| standing.take_in(row));
        if let Some(difference) = standing.difference(expected, &run.columns) {
            panic!("{difference}\n{what}");
        }
        let counted = (run.late_rows as usize, run.skipped_rows as usize);
        assert_eq!(
            counted,
            (expected.late.len(), expected.skipped_rows),
            "{what}"
        );
        if batch_rows == 1 && case.stream.rows.len() <= 40 {
            check_each(case, &run, &what);
        }
        updated |= run.results.len() > expected.rows.len();
        courses.push((what, course(&run)));
    }
    // Behind which batch a session comes is seen in what has to be withdrawn.
    if case.emit != Emit::Update && !case.in_sessions {
        for (what, other) in &courses[1..] {
            assert_eq!(courses[0].1, *other, "{what}");
        }
    }
    updated
}

struct UpdatedResults;

impl Cases for UpdatedResults {
    /// None where the windows of the seed's query come out once.
    type Case = (u64, Option<Case>);
    /// Whether there was a case, and whether late rows changed results.
    type Seen = (bool, bool);

    fn make(&self, seed: u64) -> Self::Case {
        (seed, case(seed, &mut Random::new(seed ^ 0x0DDBA11)))
    }

    fn check(&self, (seed, case): &Self::Case) -> Result<Self::Seen, String> {
        let updated = case.as_ref().map(|case| check(case, *seed));
        Ok((updated.is_some(), updated == Some(true)))
    }

    fn smaller<'a>(&'a self, (seed, case): &'a Self::Case) -> Smaller<'a, Self::Case> {
        let fewer = case.iter().flat_map(move |case| {
            let rows = smaller::rows(&case.stream.rows);
            rows.map(move |rows| {
                let mut fewer = case.clone();
                fewer.stream.rows = rows;
                (*seed, Some(fewer))
            })
        });
        Box::new(fewer)
    }

    fn show(&self, (_, case): &Self::Case) -> String {
        let rows = case.iter().flat_map(|case| &case.stream.rows);
        rows.map(|row| format!("  {row:?}\n")).collect()
    }
}

#[test]
fn the_last_results_are_the_answer_and_each_is_right_at_its_time() {
    let seen = trial::run("updates", 1_200, &UpdatedResults);
    let cases = seen.iter().filter(|seen| seen.0).count();
    let updated = seen.iter().filter(|seen| seen.1).count();
    let few = seen.len() < 100;
    assert!(
        few || cases * 2 > seen.len(),
        "{cases} cases of {} seeds",
        seen.len()
    );
    assert!(
        few || updated * 4 > cases,
        "{updated} of {cases} cases replace results"
    );
}

/// So many windows, a few of them open, that the state lets go of those that are done.
#[test]
fn windows_that_are_done_go_while_others_may_change() {
    let mut random = Random::new(7);
    let row = |at: i64| {
        let rare = random.one_in(200);
        let group = random.between(0, 39) + if rare { 100 } else { 0 };
        let time = at + random.between(0, 9);
        vec![Value::Integer(time.into()), Value::Integer(group.into())]
    };
    let column = |name: &str| Field::new(name, DataType::Int64, true);
    let stream = Rows {
        schema: Arc::new(Schema::new(vec![column("time"), column("group")])),
        rows: (0..6_000).map(row).collect(),
        shapes: Vec::new(),
    };
    let millis = Duration::from_millis;
    let patient = session(millis(5)).allowed_lateness(millis(100));
    for emit in [Emit::Update, Emit::Every(millis(50))] {
        for window in [count(3).emit(emit), patient.emit(emit)] {
            let step = Step::Aggregate {
                window,
                keys: vec!["group".to_owned()],
                aggregates: vec![count_rows()],
            };
            let query = Query {
                event_time: EventTime {
                    expression: col("time"),
                    unit: TimeUnit::Millisecond,
                    lateness: millis(2),
                },
                steps: vec![step],
            };
            assert!(check(&updated(query, stream.clone()), 0), "{window}");
        }
    }
}

#[test]
fn windows_of_so_many_rows_come_without_event_time_but_for_a_period() {
    let column = Field::new("value", DataType::Int64, true);
    let schema = Arc::new(Schema::new(vec![column]));
    let rows: Vec<Row> = (1..=3).map(|value| vec![Value::Integer(value)]).collect();
    let stream = Stream::from_batches(schema.clone(), to_batches(&schema, &rows, 1));
    let counted = |window: Window| stream.clone().window(window).aggregate([count_rows()]);
    let results = counted(count(2).emit(Emit::Update)).run().unwrap();
    let results: Vec<Row> = results.flat_map(|it| from_batch(&it.unwrap())).collect();
    let kinds = [(1, "insert"), (1, "delete"), (2, "insert"), (1, "insert")];
    let expected = kinds.map(|(rows, change)| vec![Value::Integer(rows), Value::from(change)]);
    assert_eq!(results, expected);
    let second = Duration::from_secs(1);
    let periodic = counted(count(2).emit(Emit::Every(second))).run();
    assert_eq!(periodic.err().unwrap().kind(), ErrorKind::InvalidArgument);
    let late = counted(count(2).allowed_lateness(second))
        .run()
        .err()
        .unwrap();
    assert!(late.to_string().contains("allowed lateness"), "{late}");
    let nothing: [AggregateCall; 0] = [];
    let columns = stream
        .clone()
        .window(count(2).emit(Emit::Update))
        .aggregate(nothing);
    let error = columns.run().err().unwrap();
    assert!(
        error.to_string().contains("without result columns"),
        "{error}"
    );
}
