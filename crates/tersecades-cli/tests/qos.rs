//! The command `qos` as scripts see it, and lossy columns of `sql`.

#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

fn tersecades(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Drop sessions: each machine's times in which it works and its network is silent.
const LOSSES: &str = "
    WITH health AS (
        SELECT window_start, vm_id,
            max(average_value) FILTER (WHERE counter_name = 'cpu_percent') AS cpu,
            max(max_value) FILTER (
                WHERE counter_name IN ('network_in_bytes', 'network_out_bytes')) AS network
        FROM TUMBLE(TABLE counters, DESCRIPTOR(timestamp), INTERVAL '1' MINUTE)
        GROUP BY window_start, window_end, vm_id
    )
    SELECT window_start, window_end, vm_id, count(*) AS minutes
    FROM health WHERE cpu >= 5 AND network < 1
    GROUP BY session(window_start, INTERVAL '90 seconds'), vm_id";

/// The same by states of machines: each change, what was before it, and for how many seconds.
const CHANGES: &str = "
    WITH health AS (
        SELECT window_start, vm_id,
            max(average_value) FILTER (WHERE counter_name = 'cpu_percent') AS cpu,
            max(max_value) FILTER (
                WHERE counter_name IN ('network_in_bytes', 'network_out_bytes')) AS network
        FROM TUMBLE(TABLE counters, DESCRIPTOR(timestamp), INTERVAL '1' MINUTE)
        GROUP BY window_start, window_end, vm_id
    ), states AS (
        SELECT window_start, vm_id,
            CASE WHEN cpu >= 5 AND network < 1 THEN 'lost'
                WHEN cpu >= 5 THEN 'active' ELSE 'idle' END AS state
        FROM health
    ), steps AS (
        SELECT window_start, vm_id, state,
            lag(state) OVER (PARTITION BY vm_id ORDER BY window_start) AS before
        FROM states
    ), changes AS (
        SELECT window_start, vm_id, before, state, extract(epoch FROM window_start) AS until_s,
            extract(epoch FROM window_start - lag(window_start)
                OVER (PARTITION BY vm_id ORDER BY window_start)) AS lasted_s
        FROM steps WHERE before IS NULL OR before <> state
    )
    SELECT vm_id, until_s, lasted_s FROM changes WHERE before = 'lost'";

fn counters(folder: &Path) {
    let rows = (60 * 8 * 240).to_string();
    let arguments = [
        "generate",
        "counters",
        "--rows",
        &rows,
        "--vms",
        "60",
        "--clusters",
        "4",
        "--nodes",
        "20",
        "--loss-share",
        "0.05",
        "-o",
        "counters.parquet",
    ];
    let made = tersecades(folder, &arguments);
    assert!(made.status.success(), "{}", text(&made.stderr));
}

#[test]
fn losses_in_sql_are_the_injected_ones_and_survive_small_tolerances() {
    let folder = tempfile::tempdir().unwrap();
    counters(folder.path());
    let truth = std::fs::read_to_string(folder.path().join("counters.parquet.truth.jsonl"));
    let injected = truth.unwrap().lines().count();
    std::fs::write(folder.path().join("losses.sql"), LOSSES).unwrap();
    let table = "counters=counters.parquet,event_time=timestamp";
    let found = tersecades(
        folder.path(),
        &[
            "sql",
            "-f",
            "losses.sql",
            "--table",
            table,
            "--format",
            "jsonl",
        ],
    );
    assert!(found.status.success(), "{}", text(&found.stderr));
    assert_eq!(text(&found.stdout).lines().count(), injected);
    let measured = tersecades(
        folder.path(),
        &[
            "qos",
            "--table",
            table,
            "-f",
            "losses.sql",
            "--tolerances",
            "0.001,1,100000",
            "--column",
            "average_value",
            "--column",
            "max_value",
            "--format",
            "json",
            "--plot",
            "loss.svg",
        ],
    );
    assert!(measured.status.success(), "{}", text(&measured.stderr));
    assert!(measured.stderr.is_empty(), "{}", text(&measured.stderr));
    let found: serde_json::Value = serde_json::from_str(text(&measured.stdout)).unwrap();
    let settings = found["settings"].as_array().unwrap();
    let loss = |index: usize| settings[index]["loss"].as_f64().unwrap();
    let ratio = |index: usize| settings[index]["column_ratio"].as_f64().unwrap();
    assert_eq!((settings.len(), loss(0), loss(1)), (4, 0.0, 0.0));
    assert_eq!(
        settings[0]["queries"][0]["rows"].as_u64(),
        Some(injected as u64)
    );
    assert!(
        loss(3) > 0.1,
        "a tolerance of 100,000 flattens every counter: {found}"
    );
    assert!(ratio(1) < ratio(2) && ratio(2) < ratio(3), "{found}");
    assert!(
        found["loosest"].as_str().unwrap().starts_with("zfp("),
        "{found}"
    );
    let drawn = std::fs::read_to_string(folder.path().join("loss.svg")).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.matches("<circle").count() == 4);
}

#[test]
fn changes_of_state_in_sql_are_the_injected_losses_with_their_durations() {
    let folder = tempfile::tempdir().unwrap();
    counters(folder.path());
    let table = "counters=counters.parquet,event_time=timestamp";
    let ask = |query: &str| -> Vec<serde_json::Value> {
        let arguments = ["sql", query, "--table", table, "--format", "jsonl"];
        let answer = tersecades(folder.path(), &arguments);
        assert!(answer.status.success(), "{}", text(&answer.stderr));
        let lines = text(&answer.stdout).lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let last = ask("SELECT extract(epoch FROM max(timestamp)) AS s FROM counters");
    let last_s = last[0]["s"].as_f64().unwrap();
    let found = ask(CHANGES).into_iter().map(|row| {
        let vm = row["vm_id"].as_str().unwrap().to_owned();
        let (until_s, lasted_s) = (&row["until_s"], &row["lasted_s"]);
        let [until_s, lasted_s] = [until_s, lasted_s].map(|it| it.as_f64().unwrap());
        (vm, (until_s - lasted_s) as i64, until_s as i64)
    });
    let mut found: Vec<(String, i64, i64)> = found.collect();
    let truth = std::fs::read_to_string(folder.path().join("counters.parquet.truth.jsonl"));
    let injected = truth.unwrap();
    let injected = injected.lines().filter_map(|line| {
        let loss: serde_json::Value = serde_json::from_str(line).unwrap();
        let seconds = |name: &str| loss[name].as_i64().unwrap() / 1_000;
        // One that is not over by the last report has no change at its end.
        let ended = seconds("to_ms") as f64 <= last_s;
        let vm = loss["vm_id"].as_str().unwrap().to_owned();
        ended.then(|| (vm, seconds("from_ms"), seconds("to_ms")))
    });
    let mut injected: Vec<(String, i64, i64)> = injected.collect();
    found.sort();
    injected.sort();
    assert!(injected.len() > 3);
    assert_eq!(found, injected, "precision and recall are one");
}

#[test]
fn the_table_ends_with_the_loosest_setting() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "k,v\na,1.5\nb,2.25\na,3.125\n").unwrap();
    let shown = tersecades(
        folder.path(),
        &[
            "qos",
            "--table",
            "t=t.csv",
            "-q",
            "SELECT k, sum(v) AS s FROM t GROUP BY k",
            "--tolerances",
            "0.01",
            "--codec",
            "fixed_point",
        ],
    );
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let table = text(&shown.stdout);
    assert!(
        table.contains("fixed_point(0.02)") && table.contains("exact"),
        "{table}"
    );
    assert!(
        table
            .trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("loosest setting within a loss of 1.00 %")
    );
}

#[test]
fn what_cannot_be_measured_is_said() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "k,v\na,1\n").unwrap();
    let query = ["qos", "--table", "t=t.csv", "-q", "SELECT count(*) FROM t"];
    for (more, expected) in [
        (&[][..], "no column of floats"),
        (&["--column", "w"], "no column `w`"),
        (&["--column", "k"], "takes no values"),
        (&["--encode", "u"], "`u`"),
    ] {
        let failed = tersecades(folder.path(), &[&query[..], more].concat());
        assert_eq!(failed.status.code(), Some(1));
        assert!(
            text(&failed.stderr).contains(expected),
            "{}",
            text(&failed.stderr)
        );
    }
    let usage = tersecades(folder.path(), &["qos", "--tolerances", "0"]);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn lossy_columns_are_set_in_sql_and_said_under_the_table() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "k,v\na,1.5\nb,2.25\na,3.125\n").unwrap();
    let statements = "SET encoding.t.v = 'zfp(0.25)'; SELECT k, max(v) AS m FROM t GROUP BY k";
    let shown = tersecades(folder.path(), &["sql", statements, "--table", "t=t.csv"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let footer = "bound m: within 0.25 of exact, by lossy v";
    assert!(
        text(&shown.stdout).contains(footer),
        "{}",
        text(&shown.stdout)
    );
    let option = ["--set", "encoding.t.v=zfp(0.25)"];
    let query = ["sql", "SELECT max(v) AS m FROM t", "--table", "t=t.csv"];
    let same = tersecades(folder.path(), &[&query[..], &option].concat());
    assert!(
        text(&same.stdout).contains(footer),
        "{}",
        text(&same.stdout)
    );
    let unknown = tersecades(
        folder.path(),
        &["sql", "SET encoding.t.w = 'zfp(1)'", "--table", "t=t.csv"],
    );
    assert!(
        text(&unknown.stderr).contains("no column `w`"),
        "{}",
        text(&unknown.stderr)
    );
}
