//! `inspect`: the types that it prints.

use std::fs;

use super::{failure_of, inspect_json, tersecades};

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

#[test]
fn a_scheme_that_is_given_is_explained_in_the_place_of_the_choice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    let rows: String = (0..3_000)
        .map(|row| format!("{},{}\n", row % 7, row))
        .collect();
    fs::write(&path, format!("few,all\n{rows}x,1\n")).unwrap();
    let types = ["--types", "few=int64", "--on-error", "skip"];
    let explained = |more: &[&str]| {
        let options = [&["--explain"], &types[..], more].concat();
        let json = inspect_json(&path, &options);
        let few = json["columns"][0].clone();
        let candidates = few["candidates"].as_array().unwrap().clone();
        let cost = |name: &str| {
            let found = candidates.iter().find(|it| it["scheme"] == name);
            found.map(|it| it["cost_ns"].clone())
        };
        (
            few["codec"].clone(),
            few["cost_ns"].clone(),
            cost("plain").unwrap(),
        )
    };
    let (chosen, cost, plain) = explained(&[]);
    assert!(chosen != "plain" && cost.as_f64() < plain.as_f64());
    let (given, cost, plain) = explained(&["--encoding", "few=plain"]);
    assert_eq!((given, cost), ("plain".into(), plain));
    for wrong in ["few=symbols", "few=none", "other=plain"] {
        let options = ["--explain", "--encoding", wrong];
        let path = path.to_str().unwrap();
        let all = [&["inspect", path], &types[..], &options].concat();
        let (code, stderr) = failure_of(&all);
        let column = wrong.split('=').next().unwrap();
        assert!(code == 1 && stderr.contains(column), "{wrong}: {stderr}");
    }
    let all = [
        &["inspect", path.to_str().unwrap(), "--explain"],
        &types[..],
    ]
    .concat();
    let said = String::from_utf8(tersecades(&all).stderr).unwrap();
    assert!(said.contains("1 rows could not be read"), "{said}");
}
