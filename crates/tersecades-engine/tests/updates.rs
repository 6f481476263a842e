//! Results that come more than once: whatever replaces what, in the end they are the answer.
//!
//! With allowed lateness `a` a row counts in a window that ends after the watermark less `a`. So
//! the last result of every group is the naive answer to the same query whose rows may be `a`
//! later; and each result before is the naive answer over the rows that had arrived.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use arrow_array::RecordBatch;
use tersecades_columnar::types::Value;
use tersecades_engine::plan::{Query, Step};
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Emit, Shape, Updates, Window};
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
}

/// Everything a run handed out, in order, and what it left out.
struct Run {
    /// Each result with the number of rows that had arrived.
    results: Vec<(usize, Row)>,
    late_rows: u64,
    skipped_rows: u64,
    columns: Vec<(String, arrow_schema::DataType)>,
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
    let (window, keys) = window_of(&mut plain)?;
    let updates = Updates {
        allowed_lateness: match (window.shape, *random.pick(&[0, 1, 5, 20, 300])) {
            // No row is late there.
            (Shape::Global, _) => Duration::ZERO,
            (_, late) => ticks(late),
        },
        emit: match random.below(3) {
            0 => Emit::Final,
            1 => Emit::Update,
            _ => Emit::Every(ticks(*random.pick(&[1, 7, 30, 200]))),
        },
    };
    let asked = Window { updates, ..*window };
    if !updates.are_possible() || asked.emission(tick as i64).is_err() {
        return None;
    }
    let in_sessions = matches!(asked.shape, Shape::Session { .. });
    let mut updating = plain.clone();
    *window_of(&mut updating)?.0 = asked;
    plain.event_time.lateness += updates.allowed_lateness;
    Some(Case {
        updating,
        plain,
        stream,
        ends: if asked.reads_time() { 2 } else { 0 },
        keys,
        emit: updates.emit,
        in_sessions,
    })
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

/// What is left of all results, in the order of an answer; checks what each says of itself.
fn last_results(case: &Case, run: &Run, what: &str) -> Answer {
    let mut last: HashMap<String, Row> = HashMap::new();
    for (_, row) in &run.results {
        let (change, values) = row.split_last().unwrap();
        let group = name(values, case);
        if *change == Value::from("delete") {
            let before = last.remove(&group);
            let same = before.is_some_and(|before| format!("{before:?}") == format!("{values:?}"));
            assert!(same, "{row:?} withdraws what is not there, {what}");
            continue;
        }
        let replaced = last.insert(group, values.to_vec());
        let expected = if replaced.is_some() {
            "update"
        } else {
            "insert"
        };
        assert_eq!(*change, Value::from(expected), "{row:?}, {what}");
    }
    let mut rows: Vec<Row> = last.into_values().collect();
    rows.sort_by(|a, b| {
        let columns = (0..case.ends).rev().chain(case.ends..case.ends + case.keys);
        let orders = columns.map(|column| order(&a[column], &b[column]));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    let (change, columns) = run.columns.split_last().unwrap();
    assert_eq!(change.0, "change");
    Answer {
        columns: columns.to_vec(),
        rows,
        ..Answer::default()
    }
}

/// Each result is the answer over the rows that had arrived.
fn check_each(case: &Case, run: &Run, what: &str) {
    let mut known: Option<(usize, Answer)> = None;
    let withdrawn = Value::from("delete");
    let results = run.results.iter();
    for (arrived, row) in results.filter(|(_, row)| row.last() != Some(&withdrawn)) {
        if known.as_ref().is_none_or(|(rows, _)| rows != arrived) {
            let rows = &case.stream.rows[..*arrived];
            known = Some((
                *arrived,
                answer(&case.plain, &case.stream.schema, rows).unwrap(),
            ));
        }
        let (_, expected) = known.as_ref().unwrap();
        let group = name(row, case);
        let at = expected
            .rows
            .iter()
            .position(|row| name(row, case) == group);
        let at = at.unwrap_or_else(|| panic!("{row:?} is of no group, {what}"));
        for (column, value) in expected.rows[at].iter().enumerate() {
            assert!(
                is_same(value, &row[column], expected.slack[at][column]),
                "behind {arrived} rows: expected {:?}, got {row:?}, {what}",
                expected.rows[at]
            );
        }
    }
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
        (20, 1 + random.below(3), Some(random.below(10))),
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
        let got = last_results(case, &run, &what);
        if let Some(difference) = difference(expected, &got) {
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
