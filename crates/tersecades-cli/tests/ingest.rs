//! `tersecades store ingest`: how the columns of its input are found.

#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::path::Path;
use std::process::{Command, Output};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tersecades"));
    command.current_dir(folder).arg("store").args(arguments);
    command
}

fn done(output: Output, what: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn columns_that_are_not_in_the_first_line_are_typed_by_the_store() {
    /// `k\n7\n` by gzip.
    const PACKED: [u8; 24] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 230, 50, 231, 2, 0, 226, 99, 38, 176, 4, 0, 0, 0,
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let late = "{\"k\":1}\n{\"v\":2,\"ts\":\"2024-05-01 12:00:00.5\",\"k\":2}\n";
    let files: [(&str, &[u8], &str); 5] = [
        (
            "a.jsonl",
            late.as_bytes(),
            "1,,\n2,2024-05-01T12:00:00.500,2.0\n",
        ),
        (
            "b.json",
            b"[\n{\"k\":3},\n{\"k\":4,\"v\":5}]",
            "3,,\n4,,5.0\n",
        ),
        ("c.csv", b"\n\nk,v\n5,6\n", "5,,6.0\n"),
        ("d.csv", b"\"k\"\n6\n", "6,,\n"),
        ("e.csv", &PACKED, "7,,\n"),
    ];
    for (name, bytes, expected) in files {
        std::fs::write(path.join(name), bytes).unwrap();
        let format = name.split_once('.').unwrap().1;
        for input in [name, "-"] {
            let folder = tempfile::tempdir().unwrap();
            let schema = "k BIGINT NOT NULL, ts TIMESTAMP(3), v DOUBLE";
            let create = ["create", "s", "--schema", schema];
            done(command(folder.path(), &create).output().unwrap(), "create");
            let file = path.join(name);
            let input = match input {
                "-" => input,
                _ => file.to_str().unwrap(),
            };
            let arguments = ["ingest", "s", "-i", input, "--format", format];
            let mut ingest = command(folder.path(), &arguments);
            ingest.args(["--infer-rows", "1"]);
            let ingest = ingest.stdin(std::fs::File::open(&file).unwrap());
            done(ingest.output().unwrap(), &format!("{name} {input}"));
            let all = ["query", "s", "SELECT * FROM history ORDER BY k"];
            let query = command(folder.path(), &[&all[..], &["--format", "csv"]].concat()).output();
            let found = done(query.unwrap(), name);
            assert_eq!(found, format!("k,ts,v\n{expected}"), "{name} {input}");
        }
    }
}
