//! What `generate` leaves in a folder.

use super::*;

#[test]
fn a_stream_is_not_replaced_by_its_side_table() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name| folder.path().join(name).to_str().unwrap().to_owned();
    std::os::unix::fs::symlink("tor.parquet", folder.path().join("link.parquet")).unwrap();
    for (generator, output) in [
        ("pingmesh", name("tor.parquet")),
        ("pingmesh", name("./tor.parquet")),
        ("pingmesh", name("link.parquet")),
        ("yahoo", name("campaigns.parquet")),
    ] {
        let (code, said) = failure_of(&["generate", generator, "--rows", "10", "-o", &output]);
        assert_eq!(code, 1, "{said}");
        assert!(
            said.contains("side table") && said.contains(&output),
            "{said}"
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    stdout_of(&[
        "generate",
        "yahoo",
        "--rows",
        "10",
        "-o",
        &name("tor.parquet"),
    ]);
    let help = stdout_of(&["generate", "pingmesh", "--help"]);
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("replace those of an earlier stream")
    );
}

#[test]
fn an_empty_truth_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probes.csv");
    for (fault_at, says) in [("30s", true), ("1s", false)] {
        let options = ["--rows", "5k", "--rate", "1k", "--fault-at", fault_at];
        let output = ["-o", path.to_str().unwrap()];
        let made = tersecades(&[&["generate", "pingmesh"][..], &options, &output].concat());
        let said = String::from_utf8(made.stderr).unwrap();
        assert!(made.status.success(), "{said}");
        assert_eq!(said.contains("truth.jsonl is empty"), says, "{said}");
    }
}
