//! The binary as scripts see it: exit codes, what stands on stdout and stderr, files it leaves.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may stop at the first surprise"
)]

mod bench;
mod demo;
mod generate;
mod inspect;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tersecades::arrow_array::cast::AsArray;
use tersecades::arrow_array::types::{Int32Type, TimestampMillisecondType, UInt32Type};
use tersecades::prelude::{Pingmesh, PingmeshOptions};

fn tersecades(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout_of(arguments: &[&str]) -> String {
    let output = tersecades(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs what must fail; gives its exit code and stderr, and checks that stdout is empty.
fn failure_of(arguments: &[&str]) -> (i32, String) {
    let output = tersecades(arguments);
    assert!(output.stdout.is_empty(), "{arguments:?}");
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Failed probes by window start and pair of clusters, counted row by row.
fn counted_naively(rows: u64, rows_per_second: u64) -> BTreeMap<(i64, String, String), u64> {
    let options = PingmeshOptions {
        rows,
        rows_per_second,
        ..PingmeshOptions::default()
    };
    let mut probes = Pingmesh::new(options).unwrap();
    let mut counts = BTreeMap::new();
    while let Some(batch) = probes.next_batch(10_000).unwrap() {
        let column = |name| batch.column_by_name(name).unwrap();
        let times = column("timestamp").as_primitive::<TimestampMillisecondType>();
        let codes = column("error_code").as_primitive::<Int32Type>();
        let rtts = column("rtt_us").as_primitive::<UInt32Type>();
        let cluster = |name, row| {
            let keys = column(name).as_dictionary::<Int32Type>();
            let names = keys.values().as_string::<i32>();
            names
                .value(usize::try_from(keys.keys().value(row)).unwrap())
                .to_owned()
        };
        for row in 0..batch.num_rows() {
            if codes.value(row) == 0 || rtts.value(row) < 100 {
                continue;
            }
            let last = times.value(row).div_euclid(10_000) * 10_000;
            for start in (0..6).map(|back| last - back * 10_000) {
                let pair = (
                    start,
                    cluster("src_cluster", row),
                    cluster("dst_cluster", row),
                );
                *counts.entry(pair).or_insert(0) += 1;
            }
        }
    }
    counts
}

fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap()
}

/// One window of a table of the demo: start, probes, pairs, and the pairs shown.
type Shown = (String, u64, u64, Vec<(String, String, u64)>);

/// The windows in the section of the demo that starts with `title`.
fn windows_shown(report: &str, title: &str) -> Vec<Shown> {
    let section = report.lines().skip_while(|line| !line.starts_with(title));
    let table = section.skip_while(|line| !line.contains("---")).skip(1);
    let mut windows: Vec<Shown> = Vec::new();
    for line in table.take_while(|line| !line.is_empty()) {
        let mut cells: Vec<&str> = line.split_whitespace().collect();
        if cells.len() == 8 {
            let head: Vec<&str> = cells.drain(..5).collect();
            windows.push((
                head[0].to_owned(),
                number(head[3]),
                number(head[4]),
                Vec::new(),
            ));
        }
        let [source, target, probes] = cells[..] else {
            panic!("{line}")
        };
        let pair = (source.to_owned(), target.to_owned(), number(probes));
        windows.last_mut().unwrap().3.push(pair);
    }
    windows
}

fn inspect_json(path: &Path, more: &[&str]) -> Value {
    let arguments = [
        &["inspect", path.to_str().unwrap(), "--format", "json"],
        more,
    ]
    .concat();
    serde_json::from_str(&stdout_of(&arguments)).unwrap()
}

fn generate(path: &Path, more: &[&str]) {
    let path = path.to_str().unwrap();
    stdout_of(
        &[
            &["generate", "pingmesh", "--rows", "100k", "-o", path],
            more,
        ]
        .concat(),
    );
}

#[test]
fn every_format_is_generated_and_inspected_alike() {
    let folder = tempfile::tempdir().unwrap();
    let mut sizes = Vec::new();
    for suffix in ["parquet", "arrow", "csv"] {
        let path = folder.path().join(format!("probes.{suffix}"));
        generate(&path, &[]);
        let json = inspect_json(
            &path,
            &[
                "--types",
                "src_ip=uint32,rtt_us=uint32,dst_ip=uint32,\
                                          error_code=int32,timestamp=timestamp_ms",
            ],
        );
        assert_eq!(json["rows"], 100_000, "{suffix}");
        let columns = json["columns"].as_array().unwrap();
        assert_eq!(columns.len(), 9);
        assert_eq!(columns[3]["name"], "src_cluster");
        let (mut raw, mut encoded) = (0, 0);
        for column in columns {
            assert_eq!(column["rows"], 100_000);
            assert_eq!(column["nulls"], 0);
            assert!(!column["codec"].as_str().unwrap().is_empty());
            assert!(column["encoded_bytes"].as_u64() > Some(0));
            raw += column["raw_bytes"].as_u64().unwrap();
            encoded += column["encoded_bytes"].as_u64().unwrap();
        }
        assert_eq!(json["raw_bytes"], raw);
        assert_eq!(json["encoded_bytes"], encoded);
        assert!(encoded < raw, "{suffix}: {encoded} of {raw}");
        sizes.push((columns[0]["type"].clone(), raw));
        let few = inspect_json(&path, &["--rows", "70k"]);
        assert_eq!(few["rows"], 70_000);
    }
    assert!(sizes.windows(2).all(|pair| pair[0] == pair[1]), "{sizes:?}");
    let table = stdout_of(&[
        "inspect",
        folder.path().join("probes.arrow").to_str().unwrap(),
    ]);
    assert!(table.starts_with("100,000 rows"), "{table}");
}

#[test]
fn raw_bytes_are_those_of_arrow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.csv");
    fs::write(
        &path,
        "id;flag;word\n1;true;aa\n2;false;bbbb\n-;true;aa\nx;true;cc\n",
    )
    .unwrap();
    let options = [
        "--delimiter",
        ";",
        "--types",
        "id=int16,flag=bool",
        "--on-error",
        "skip",
    ];
    let json = inspect_json(&path, &options);
    assert_eq!(
        (&json["rows"], &json["rejected_rows"]),
        (&3.into(), &1.into())
    );
    let raw = |index: usize| json["columns"][index]["raw_bytes"].as_u64().unwrap();
    assert_eq!(json["columns"][0]["nulls"], 1);
    assert_eq!(raw(0), 3 * 2 + 1, "two bytes each, and a byte of validity");
    assert_eq!(raw(1), 1, "booleans are bits");
    assert_eq!(
        raw(2),
        3 * 4 + 8,
        "offsets and text, smaller than a dictionary array"
    );
}

#[test]
fn encodings_are_overridden_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probes.parquet");
    generate(&path, &[]);
    let pinned = inspect_json(&path, &["--encoding", "rtt_us=plain", "--tier", "cold"]);
    let columns = pinned["columns"].as_array().unwrap();
    let rtt = columns.iter().find(|it| it["name"] == "rtt_us").unwrap();
    assert_eq!(rtt["codec"], "plain");
    let explained = inspect_json(&path, &["--explain", "--rows", "70k"]);
    assert!(explained["regret"].as_f64() < Some(0.05), "{explained}");
    for column in explained["columns"].as_array().unwrap() {
        let candidates = column["candidates"].as_array().unwrap();
        assert!(candidates[0]["cost_ns"].as_f64() > Some(0.0));
        assert!(candidates.len() > 1, "{column}");
    }
    let probes = path.to_str().unwrap();
    let table = stdout_of(&["inspect", probes, "--explain", "--rows", "1k"]);
    assert!(table.contains("regret in all"), "{table}");
}

#[test]
fn cost_tables_are_kept_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("costs.txt"), "byte hot 0.06\n0 compare 0 0\n").unwrap();
    let shown = stdout_of(&["costs", "--file", &at("costs.txt")]);
    assert!(shown.contains("plain"), "{shown}");
    let measured = tersecades(&["costs", "--measure", "--file", &at("here.txt")]);
    assert!(measured.status.success());
    let here = fs::read_to_string(at("here.txt")).unwrap();
    assert!(here.starts_with("# measured by tersecades"), "{here}");
    let said = |name: &str| {
        let output = tersecades(&["costs", "--file", &at(name)]);
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(!said("here.txt").contains("--measure"));
    let elsewhere = here.replacen(" on ", " on another ", 1);
    fs::write(at("elsewhere.txt"), elsewhere).unwrap();
    assert!(said("elsewhere.txt").contains("on another"));
    fs::write(at("a.csv"), "a\n1\n2\n").unwrap();
    let json = inspect_json(
        folder.path().join("a.csv").as_path(),
        &["--costs", &at("costs.txt")],
    );
    assert_eq!(json["rows"], 2);
}

#[test]
fn generated_files_depend_on_the_seed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let bytes_of = |name: &str, more: &[&str]| {
        let path = folder.path().join(name);
        generate(&path, &[&["--rate", "1k"], more].concat());
        let truth = fs::read_to_string(folder.path().join(format!("{name}.truth.jsonl"))).unwrap();
        let tor = fs::read(folder.path().join("tor.parquet")).unwrap();
        (fs::read(&path).unwrap(), truth, tor)
    };
    let first = bytes_of("a.csv", &["--seed", "7"]);
    assert!(first == bytes_of("b.csv", &["--seed", "7"]));
    assert!(first.0 != bytes_of("c.csv", &["--seed", "8"]).0);
    let fault: Value = serde_json::from_str(first.1.trim()).unwrap();
    assert_eq!(fault["kind"], "tor_bad");
    assert_eq!(bytes_of("d.csv", &["--seed", "7", "--no-fault"]).1, "");
    let left: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left.len(), 9, "{left:?}");
    let tor = inspect_json(&folder.path().join("tor.parquet"), &[]);
    assert_eq!(tor["columns"][1]["name"], "tor_id");
}

#[test]
fn every_generator_writes_its_stream_and_its_truth() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, columns, told) in [
        ("pingmesh", 9, "tor_bad"),
        ("counters", 10, "network_lost"),
        ("positions", 5, "trip"),
        ("weather", 20, "stuck_sensor"),
        ("nexmark", 21, "hot_auction"),
        ("yahoo", 7, "burst"),
    ] {
        for suffix in ["parquet", "arrow", "csv"] {
            let path = folder.path().join(format!("{kind}.{suffix}"));
            let path = path.to_str().unwrap();
            let rate: &[&str] = if ["pingmesh", "yahoo"].contains(&kind) {
                &["--rate", "1k"]
            } else {
                &[]
            };
            let common = [
                "generate", kind, "--rows", "300k", "--seed", "3", "-o", path,
            ];
            stdout_of(&[&common, rate].concat());
            let json = inspect_json(Path::new(path), &["--rows", "20k"]);
            assert_eq!(json["columns"].as_array().unwrap().len(), columns, "{path}");
            let truth = fs::read_to_string(format!("{path}.truth.jsonl")).unwrap();
            let first: Value = serde_json::from_str(truth.lines().next().unwrap()).unwrap();
            assert_eq!(first["kind"], told);
        }
    }
}

#[test]
fn what_is_wrong_with_data_exits_with_1_and_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("bad.csv"), "a\n1\nx\n").unwrap();
    fs::write(at("bad.parquet"), "no parquet").unwrap();
    let missing = at("missing.parquet");
    let failures: [(&[&str], &[&str]); 8] = [
        (&["inspect", &missing], &["missing.parquet"]),
        (
            &["inspect", &at("probes.xlsx")],
            &["probes.xlsx", "hint: ", ".parquet"],
        ),
        (&["inspect", &at("bad.parquet")], &["bad.parquet"]),
        (
            &["inspect", &at("bad.csv"), "--types", "a=int64"],
            &["bad.csv", "row 3", "column a"],
        ),
        (
            &["inspect", &at("bad.csv"), "--encoding", "a=plane"],
            &["column a", "did you mean `plain`"],
        ),
        (
            &["generate", "weather", "--stations", "0", "-o", &at("w.csv")],
            &["`stations` is 0", "hint: "],
        ),
        (
            &["generate", "pingmesh", "-o", &at("p.doc")],
            &["p.doc", "hint: "],
        ),
        (
            &[
                "generate",
                "pingmesh",
                "-o",
                &at("p.csv"),
                "--tail-share",
                "2",
            ],
            &["hint: use 0 to 1"],
        ),
    ];
    for (arguments, said) in failures {
        let (code, stderr) = failure_of(arguments);
        assert_eq!(code, 1, "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: "), "{stderr}");
        for part in said {
            assert!(
                stderr.contains(part),
                "{arguments:?}: `{part}` is not in: {stderr}"
            );
        }
    }
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "failures leave no files"
    );
}

#[test]
fn what_is_wrong_with_the_command_line_exits_with_2() {
    let wrong: [&[&str]; 12] = [
        &[],
        &["dmeo"],
        &["demo", "--rows", "many"],
        &["demo", "--threads", "0"],
        &["inspect"],
        &["inspect", "x.csv", "--format", "xml"],
        &["inspect", "x.csv", "--types", "a=varchar"],
        &["generate"],
        &["generate", "pingmesh"],
        &["generate", "pingmsh", "-o", "p.csv"],
        &["generate", "counters", "-o", "c.csv", "--interval", "5"],
        &["lists", "nothing"],
    ];
    for arguments in wrong {
        let (code, stderr) = failure_of(arguments);
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(
            stderr.contains("Usage:") || stderr.contains("--help"),
            "{stderr}"
        );
    }
}

#[test]
fn lists_are_markdown_tables() {
    let names = [
        "codecs",
        "aggregates",
        "windows",
        "operators",
        "sources",
        "sinks",
        "generators",
        "generator-parameters",
    ];
    for name in names {
        let text = stdout_of(&["lists", "--format", "markdown", name]);
        let bars = |line: &str| line.matches('|').count() - line.matches("\\|").count();
        let first = bars(text.lines().next().unwrap());
        assert!(
            text.lines().count() > 2 && text.lines().all(|line| bars(line) == first),
            "{text}"
        );
    }
    assert!(stdout_of(&["lists", "codecs"]).contains("base_delta"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let arguments = ["demo", "--rows", "20k"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Lines of a terminal on a small screen.
const SCREEN_LINES: usize = 36;

#[test]
fn the_help_of_each_command_fits_a_screen() {
    let all = stdout_of(&["--help"]);
    let commands = all.split_once("Commands:").unwrap().1;
    let commands = commands.split_once("Options:").unwrap().0.lines();
    let names = |line: &str| {
        line.strip_prefix("  ")?
            .split(' ')
            .next()
            .map(str::to_owned)
    };
    let mut names: Vec<String> = commands
        .filter_map(names)
        .filter(|it| !it.is_empty())
        .collect();
    assert!(names.len() > 10, "{names:?}");
    names.push(String::new());
    for inner in ["create", "ingest", "query", "export", "stats", "compact"] {
        names.push(format!("store {inner}"));
    }
    for name in names.iter().filter(|name| *name != "help") {
        let arguments: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        let help = stdout_of(&arguments);
        assert!(help.contains("Usage: tersecades"), "{name}: {help}");
        let lines = help.lines().count();
        assert!(lines <= SCREEN_LINES, "{name}: {lines} lines");
    }
    // What does not fit is said by another command.
    assert!(stdout_of(&["help", "sql"]).lines().count() > SCREEN_LINES);
}

#[test]
fn completions_and_manual_are_printed() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            stdout_of(&["completions", shell]).contains("tersecades"),
            "{shell}"
        );
    }
    assert!(stdout_of(&["man"]).contains(".TH"));
}
