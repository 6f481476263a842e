//! `inspect`: the types that it prints.

use std::fs;

use super::{failure_of, inspect_json};

#[test]
fn types_are_given_as_they_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    fs::write(&path, "t,u,v,n\n2024-01-01,2024-01-01T00:00:00Z,1.50,1\n").unwrap();
    let types = |options: &[&str]| -> Vec<String> {
        let json = inspect_json(&path, options);
        let columns = json["columns"].as_array().unwrap().iter();
        let shown = columns.map(|column| column["type"].as_str().unwrap().to_owned());
        shown.collect()
    };
    let given = [
        r#"t=Timestamp(ms),u=Timestamp(s, "UTC"),v=Decimal128(9, 2),n=UInt16"#,
        "t=timestamp[ms],u=timestamp[s, tz=UTC],v=decimal(9,2),n=uint16",
        "t=timestamp_ms,u=timestamp[s,UTC],v=decimal128(9, 2),n=uint16",
    ];
    let shown = types(&["--types", given[0]]);
    for given in given {
        assert_eq!(types(&["--types", given]), shown, "{given}");
    }
    let names = ["t", "u", "v", "n"].iter().zip(&shown);
    let again: Vec<String> = names
        .map(|(name, shown)| format!("{name}={shown}"))
        .collect();
    assert_eq!(again.join(","), given[0]);
    let (code, stderr) = failure_of(&["inspect", path.to_str().unwrap(), "--types", "t=time"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("`time`") && stderr.contains("timestamp[s|ms|us|ns]"),
        "{stderr}"
    );
}
