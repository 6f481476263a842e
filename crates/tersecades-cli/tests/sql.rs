//! `tersecades sql` as scripts see it.

#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::path::Path;
use std::process::{Command, Output};

fn sql(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .current_dir(folder)
        .arg("sql")
        .args(arguments)
        .output()
        .unwrap()
}

/// A folder with the file `probes.csv`, whose last row is late.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows = "ts,host,rtt\n\
                2024-01-01 00:00:01,a,1\n\
                2024-01-01 00:00:25,b,2\n\
                2024-01-01 00:00:02,a,3\n";
    std::fs::write(folder.path().join("probes.csv"), rows).unwrap();
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn rows_go_to_stdout_in_the_format_asked_for() {
    let folder = folder();
    let query = "SELECT host, sum(rtt) AS total FROM 'probes.csv' GROUP BY host ORDER BY host";
    let csv = sql(folder.path(), &[query, "--format", "csv"]);
    assert_eq!(text(&csv.stdout), "host,total\na,4\nb,2\n");
    assert!(csv.stderr.is_empty());
    let lines = sql(folder.path(), &[query, "--format", "jsonl"]);
    assert!(text(&lines.stdout).starts_with("{\"host\":\"a\",\"total\":4}\n"));
    assert!(text(&sql(folder.path(), &[query]).stdout).contains("----"));
}

#[test]
fn empty_texts_and_nulls_of_csv_written_by_a_query_are_told_apart() {
    let folder = folder();
    let values = "SELECT * FROM (VALUES (1, ''), (2, NULL), (3, 'NA'), (4, 'b')) AS v (n, t)";
    let written = sql(folder.path(), &[values, "-o", "texts.csv"]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let back = "SELECT n, t IS NULL AS missing, length(t) AS bytes FROM 'texts.csv' ORDER BY n";
    let found = sql(folder.path(), &[back, "--format", "csv"]);
    let rows = "n,missing,bytes\n1,false,0\n2,true,\n3,false,2\n4,false,1\n";
    assert_eq!(text(&found.stdout), rows, "{}", text(&found.stderr));
}

#[test]
fn a_folder_is_a_table_with_a_column_for_what_its_folders_are_named() {
    let folder = folder();
    for (day, rows) in [("day=1", "n\n1\n2\n"), ("day=2", "n\n3\n")] {
        let day = folder.path().join("days").join(day);
        std::fs::create_dir_all(&day).unwrap();
        std::fs::write(day.join("part.csv"), rows).unwrap();
    }
    for table in ["days", "days/", "days/**/*.csv"] {
        let query = format!("SELECT day, sum(n) AS n FROM '{table}' GROUP BY day ORDER BY day");
        let found = sql(folder.path(), &[&query, "--format", "csv"]);
        assert_eq!(text(&found.stdout), "day,n\n1,3\n2,3\n", "{table}");
    }
}

#[test]
fn rows_go_to_a_file_and_statements_come_from_one() {
    let folder = folder();
    std::fs::write(
        folder.path().join("q.sql"),
        "SELECT rtt FROM probes WHERE rtt > 1",
    )
    .unwrap();
    let arguments = [
        "-f",
        "q.sql",
        "--table",
        "probes=probes.csv",
        "-o",
        "slow.parquet",
    ];
    assert!(sql(folder.path(), &arguments).status.success());
    let count = sql(
        folder.path(),
        &["SELECT count(*) FROM 'slow.parquet'", "--format", "csv"],
    );
    assert_eq!(text(&count.stdout), "count(*)\n2\n");
}

#[test]
fn late_rows_are_counted_on_stderr() {
    let folder = folder();
    let query = "SELECT count(*) AS n FROM probes GROUP BY tumble(ts, INTERVAL '10 seconds')";
    let run = |query: &str, table: &str| {
        sql(folder.path(), &[query, "--format", "csv", "--table", table])
    };
    let table = "probes=probes.csv,event_time=ts,lateness=5s";
    let into = format!("{query} LATE INTO 'late.csv'");
    for (query, hint) in [(query, "LATE INTO 'file' keep"), (&into, "LATE INTO wrote")] {
        let late = run(query, table);
        assert_eq!(text(&late.stdout), "n\n1\n1\n");
        assert!(text(&late.stderr).contains("1 row came too late"));
        assert!(text(&late.stderr).contains(hint));
    }
    let whole = run(query, "probes=probes.csv");
    assert_eq!(
        (text(&whole.stdout).as_str(), whole.stderr.is_empty()),
        ("n\n2\n1\n", true)
    );
}

#[test]
fn rows_without_a_pair_lack_no_event_time() {
    let folder = folder();
    let query = "SELECT b.window_start IS NULL AS alone, count(*) AS n FROM (SELECT 2 AS rtt) AS a \
                 FULL JOIN TUMBLE(TABLE probes, DESCRIPTOR(ts), INTERVAL '1 minute') AS b \
                 ON a.rtt = b.rtt + 1 GROUP BY b.window_start";
    let joined = |query: &str| {
        let table = ["--format", "csv", "--table", "probes=probes.csv"];
        sql(folder.path(), &[&[query][..], &table].concat())
    };
    let paired = joined(query);
    assert_eq!(text(&paired.stdout), "alone,n\nfalse,3\n");
    let alone = joined(&query.replace("b.rtt + 1", "b.rtt + 9"));
    let said = (text(&alone.stdout), text(&alone.stderr));
    let wanted = ("alone,n\nfalse,3\ntrue,1\n".to_owned(), String::new());
    assert_eq!(said, wanted);
}

#[test]
fn errors_go_to_stderr_with_place_and_hint() {
    let folder = folder();
    let wrong = sql(folder.path(), &["SELECT hst FROM 'probes.csv'"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(wrong.stdout.is_empty());
    let said = text(&wrong.stderr);
    assert!(
        said.contains("line 1, column 8") && said.contains("did you mean `host`?"),
        "{said}"
    );
    assert_eq!(sql(folder.path(), &[]).status.code(), Some(2));
    assert_eq!(
        sql(folder.path(), &["SELECT 1", "--format", "xml"])
            .status
            .code(),
        Some(2)
    );
    let unset = sql(folder.path(), &["SELECT 1", "--set", "batch_row=1"]);
    assert_eq!(unset.status.code(), Some(1));
}

#[test]
fn standard_input_is_a_table_in_a_format_that_is_named() {
    let folder = folder();
    let piped = std::fs::File::open(folder.path().join("probes.csv")).unwrap();
    let query = "SELECT count(*) AS n FROM rows WHERE host = 'a'";
    let output = Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .args([
            "sql",
            query,
            "--table",
            "rows=-,format=csv",
            "--format",
            "csv",
        ])
        .stdin(piped)
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "n\n2\n", "{}", text(&output.stderr));
}

#[test]
fn rows_of_tables_count_against_the_memory_limit() {
    let folder = folder();
    let host = "SELECT host, rtt, 'of a long text that takes memory' AS note FROM 'probes.csv'";
    let rows = format!("{host} UNION ALL {host}");
    let table = format!("CREATE TABLE kept AS {rows}; SELECT count(*) FROM kept");
    let held = sql(folder.path(), &[&table, "--memory-limit", "4KiB"]);
    assert!(held.status.success(), "{}", text(&held.stderr));
    let refused = sql(folder.path(), &[&table, "--memory-limit", "200B"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(
        said.contains("table kept take more than 200 bytes"),
        "{said}"
    );
}

#[test]
fn rows_that_do_not_fit_go_to_a_file_that_is_new() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("bad.csv"), "k,n\na,1\nb,x\nc\nd,4\n").unwrap();
    let total = "SELECT sum(n) AS n FROM 'bad.csv'";
    let run = |file: &str| {
        let options = [
            "--types",
            "n=int64",
            "--dead-letters",
            file,
            "--format",
            "csv",
        ];
        let all: Vec<&str> = [total].into_iter().chain(options).collect();
        sql(path, &all)
    };
    let found = run("letters.jsonl");
    assert_eq!(text(&found.stdout), "n\n5\n", "{}", text(&found.stderr));
    let letters = std::fs::read_to_string(path.join("letters.jsonl")).unwrap();
    let lines: Vec<&str> = letters.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains(r#""line":3,"column":"n""#) && lines[0].contains("b,x"));
    assert!(lines[1].contains(r#""line":4,"column":null"#), "{letters}");
    for (wrong, said) in [
        ("bad.csv", "there already"),
        ("letters.jsonl", "there already"),
        ("letters.txt", "suffix"),
        ("missing/letters.csv", "No such file"),
    ] {
        let refused = run(wrong);
        assert_eq!(refused.status.code(), Some(1), "{wrong}");
        assert!(
            text(&refused.stderr).contains(said),
            "{}",
            text(&refused.stderr)
        );
    }
    assert!(
        std::fs::read_to_string(path.join("bad.csv"))
            .unwrap()
            .contains("d,4")
    );
}

#[test]
fn the_answer_and_the_rows_that_do_not_fit_go_to_files_of_their_own() {
    let folder = folder();
    let query = "SELECT * FROM 'probes.csv'";
    for letters in ["out.csv", "./out.csv"] {
        let refused = sql(
            folder.path(),
            &[query, "-o", "out.csv", "--dead-letters", letters],
        );
        assert_eq!(refused.status.code(), Some(1), "{letters}");
        let said = text(&refused.stderr);
        assert!(said.contains("would be replaced"), "{said}");
        assert!(!folder.path().join("out.csv").exists());
    }
}

#[test]
fn late_rows_replace_no_file() {
    let folder = folder();
    let table = ["-t", "probes=probes.csv,event_time=ts,lateness=5s"];
    let late = |file: &str| {
        format!(
            "SELECT count(*) FROM probes GROUP BY tumble(ts, INTERVAL '10 seconds') \
             LATE INTO '{file}'"
        )
    };
    let before = std::fs::read_to_string(folder.path().join("probes.csv")).unwrap();
    let twice = format!("{}; {}", late("twice.csv"), late("twice.csv"));
    for (query, output, says) in [
        (late("probes.csv"), None, "there already"),
        (
            format!("EXPLAIN ANALYZE {}", late("probes.csv")),
            None,
            "there already",
        ),
        (late("out.csv"), Some("./out.csv"), "would be replaced"),
        (twice, None, "there already"),
    ] {
        let mut arguments = vec![query.as_str(), table[0], table[1]];
        arguments.extend(output.into_iter().flat_map(|output| ["-o", output]));
        let refused = sql(folder.path(), &arguments);
        assert_eq!(refused.status.code(), Some(1), "{query}");
        let said = text(&refused.stderr);
        assert!(said.contains(says), "{said}");
    }
    let after = std::fs::read_to_string(folder.path().join("probes.csv")).unwrap();
    assert_eq!(before, after);
    let kept = std::fs::read_to_string(folder.path().join("twice.csv")).unwrap();
    assert_eq!(kept.lines().count(), 2, "{kept}");
}

#[test]
fn two_tables_of_one_name_are_refused() {
    let folder = folder();
    let refused = sql(
        folder.path(),
        &["SELECT * FROM p", "-t", "p=probes.csv", "-t", "p=other.csv"],
    );
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("two tables are named `p`"));
}

#[test]
fn errors_of_rows_name_file_and_row() {
    let folder = tempfile::tempdir().unwrap();
    for (name, rows, says) in [
        ("quote.csv", "\na,\"b\n1,2\n", "quote.csv, row 2"),
        ("text.jsonl", "\nhello\n", "text.jsonl, row 2"),
    ] {
        std::fs::write(folder.path().join(name), rows).unwrap();
        let failed = sql(folder.path(), &[&format!("SELECT * FROM '{name}'")]);
        assert_eq!(failed.status.code(), Some(1));
        let said = text(&failed.stderr);
        assert!(said.contains(says) && !said.contains("line 1"), "{said}");
    }
}

/// What is written, kept as a table or kept as it flows says how much was left out.
#[test]
fn statements_without_rows_say_what_they_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "ts,v\n2024-01-01 00:00:01,1\n2024-01-01 00:00:02,x\n2024-01-01 00:00:03,3\n";
    std::fs::write(folder.path().join("bad.csv"), rows).unwrap();
    for statement in [
        "COPY (SELECT * FROM 'bad.csv') TO 'out.parquet'",
        "CREATE TABLE t AS SELECT * FROM 'bad.csv'",
        "CREATE STREAM s FROM 'bad.csv' WATERMARK FOR ts AS ts KEEP 1 HOUR",
    ] {
        let typed = ["--types", "v=int64", "--on-error", "skip", statement];
        let said = text(&sql(folder.path(), &typed).stderr);
        assert!(
            said.contains("2 rows") && said.contains("1 row could not be read"),
            "{said}"
        );
    }
}
