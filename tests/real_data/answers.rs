//! Windowed aggregates over real data equal DuckDB's, however the question is run.

use tersecades_engine::stream::Stream;

use crate::data_set::{AZURE, BEIJING, DataSet, FLIGHTS, GITHUB, RIPE_ATLAS, SEATTLE};
use crate::question::{Question, Way};
use crate::row::assert_rows_agree;
use crate::{duckdb, questions, report};

/// Rows of the runs with the smallest batches.
const SMALL_ROWS: usize = 10_000;

fn check(set: &DataSet, questions: &[Question]) {
    let Some(loaded) = set.load() else { return };
    let expected = duckdb::answers(set, &loaded, questions);
    for (index, question) in questions.iter().enumerate() {
        let what = |way: Way| {
            let Way {
                threads,
                batch_rows,
                ..
            } = way;
            format!(
                "{} {}, {threads} threads, {batch_rows} rows",
                set.name, question.name
            )
        };
        let plain = Way::plain(set);
        let answer = question.answer(&loaded, plain);
        assert!(!answer.is_empty(), "{}", what(plain));
        if let Some(expected) = &expected {
            assert_rows_agree(&what(plain), &answer, &expected[index]);
            report(&format!(
                "{} {}: {} rows = DuckDB",
                set.name,
                question.name,
                answer.len()
            ));
        }
        for (threads, batch_rows) in [(3, 65_536), (1, 1_000), (3, 1_000)] {
            let way = Way {
                threads,
                batch_rows,
                ..plain
            };
            assert_rows_agree(&what(way), &question.answer(&loaded, way), &answer);
        }
        let few = question.answer(
            &loaded,
            Way {
                rows_limit: SMALL_ROWS,
                ..plain
            },
        );
        for threads in [1, 3] {
            let way = Way {
                threads,
                batch_rows: 7,
                rows_limit: SMALL_ROWS,
                ..plain
            };
            assert_rows_agree(&what(way), &question.answer(&loaded, way), &few);
        }
    }
}

#[test]
fn github_events() {
    check(&GITHUB, &questions::github());
}

#[test]
fn ripe_atlas_answers_equal_duckdb() {
    check(&RIPE_ATLAS, &questions::ripe_atlas());
}

#[test]
fn seattle_answers_equal_duckdb() {
    check(&SEATTLE, &questions::seattle());
}

#[test]
fn azure_answers_equal_duckdb() {
    check(&AZURE, &questions::azure());
}

#[test]
fn flights_answers_equal_duckdb() {
    check(&FLIGHTS, &questions::flights());
}

#[test]
fn beijing_answers_equal_duckdb() {
    check(&BEIJING, &questions::beijing());
}

#[test]
fn a_file_as_a_stream_answers_like_its_rows_in_memory() {
    let Some(loaded) = FLIGHTS.load() else { return };
    let (question, way) = (&questions::flights()[0], Way::plain(&FLIGHTS));
    let file = loaded.folder.join(FLIGHTS.files[0]);
    let mut options = FLIGHTS.options();
    options.batch_rows = 50_000;
    let stream = Stream::open(file, &options).unwrap();
    let answer = question.rows(question.start_on(stream, way));
    assert_rows_agree(
        "flights from the file",
        &answer,
        &question.answer(&loaded, way),
    );
}
