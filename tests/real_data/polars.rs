//! Windows over real data equal those of Polars.

use std::path::Path;
use std::process::Command;

use arrow_schema::TimeUnit;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::plan::AggregateCall;

use crate::data_set::RIPE_ATLAS;
use crate::duckdb::{python_with, rows_in};
use crate::question::{Question, Time, Way};
use crate::row::assert_rows_agree;
use crate::{report, skip};

const HOUR: u64 = 3_600;

/// The questions that `polars_answers.py` answers, by the names of its files.
fn questions() -> [Question; 2] {
    let time = || Time {
        expression: col("epoch"),
        unit: TimeUnit::Millisecond,
        sql: "",
        ticks_per_second: 1_000_000,
    };
    let rtt = |name| call(name, col("rtt"));
    let high = AggregateCall {
        parameter: Some(0.9),
        ..rtt("quantile")
    };
    [
        Question::new("tumbling", time(), HOUR, HOUR)
            .by(&["probe_id"])
            .ask(count(), "")
            .ask(call("sum", col("cp")), "")
            .ask(rtt("min"), "")
            .ask(rtt("max"), "")
            .ask(rtt("stddev"), "")
            .ask(rtt("median"), "")
            .ask(rtt("count_distinct"), ""),
        Question::new("hopping", time(), 6 * HOUR, HOUR)
            .ask(count(), "")
            .ask(rtt("mean"), "")
            .ask(high, ""),
    ]
}

#[test]
fn ripe_atlas_windows_equal_polars() {
    let Some(loaded) = RIPE_ATLAS.load() else {
        return;
    };
    let Some(python) = python_with("polars") else {
        return skip("no Python with Polars: windows are not compared (make venv)");
    };
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("polars_answers.py");
    let data = loaded.folder.join(RIPE_ATLAS.files[0]);
    let mut run = Command::new(python);
    let run = run.arg(script).arg(data).arg(folder.path()).output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    for question in questions() {
        let expected = rows_in(&folder.path().join(format!("{}.parquet", question.name)));
        let answer = question.answer(&loaded, Way::plain(&RIPE_ATLAS));
        assert!(!answer.is_empty());
        assert_rows_agree(question.name, &answer, &expected);
        let (name, rows) = (question.name, answer.len());
        report(&format!("ripe_atlas_rtt {name}: {rows} rows = Polars"));
    }
}
