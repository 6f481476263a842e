//! Which file says what types text has.

use super::*;
use crate::source::CsvOptions;

#[test]
fn text_in_later_files_is_read_as_the_first_ones_types() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.csv", "n,w\n1.5,x\n");
    write(root, "b.csv", "n,w\n2,7\n");
    assert_eq!(
        rows(&table(root, "*.csv").unwrap(), None),
        ["1.5 x", "2.0 7"]
    );
    write(root, "a.jsonl", "{\"n\":1.5,\"o\":{\"k\":\"x\"}}\n");
    write(root, "b.jsonl", "{\"n\":2}\n{\"o\":{\"k\":7}}\n");
    assert_eq!(
        rows(&table(root, "*.jsonl").unwrap(), None),
        ["1.5 x", "2.0 -", "- 7"]
    );
}

#[test]
fn text_without_rows_leaves_its_types_to_the_first_file_with_rows() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.csv", "n,w,z\n");
    write(root, "b.csv", "w,z,n\n");
    let empty = table(root, "*.csv").unwrap();
    assert_eq!(rows(&empty, None), [""; 0]);
    write(root, "c.csv", "w,n,z\nx,1.5,\n");
    write(root, "d.csv", "n,w,z\n2,7,true\n");
    let files = table(root, "*.csv").unwrap();
    let schema = Table::schema(&files);
    let types = schema.fields().iter().map(|field| field.data_type());
    let names = schema.fields().iter().map(|field| field.name().as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["n", "w", "z"]);
    assert_eq!(*types.clone().next().unwrap(), DataType::Float64);
    assert_eq!(rows(&files, None), ["1.5 x -", "2.0 7 true"]);
    let given = SourceOptions {
        csv: CsvOptions {
            types: vec![("n".to_owned(), DataType::Utf8)],
            ..CsvOptions::default()
        },
        ..SourceOptions::default()
    };
    let given = FilesTable::new(root.join("*.csv"), &given).unwrap();
    assert_eq!(rows(&given, None), ["1.5 x -", "2 7 true"]);
}

#[test]
fn text_without_a_byte_gives_no_columns_wherever_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for empty in ["a.csv", "c.csv"] {
        write(root, empty, "");
    }
    assert!(table(root, "*.csv").is_err());
    write(root, "b.csv", "n,w\n1,x\n");
    write(root, "d.csv", "n,w\n2,y\n");
    let files = table(root, "*.csv").unwrap();
    assert_eq!(rows(&files, None), ["1 x", "2 y"]);
    write(root, "a.jsonl", "");
    write(root, "b.jsonl", "{\"n\":1}\n");
    assert_eq!(rows(&table(root, "*.jsonl").unwrap(), None), ["1"]);
}

#[cfg(unix)]
#[test]
fn a_pipe_among_files_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.csv", "n\n1\n");
    let mut made = std::process::Command::new("mkfifo");
    assert!(made.arg(root.join("b.csv")).status().unwrap().success());
    for pattern in ["", "*.csv", "**/*.csv"] {
        let error = table(root, pattern).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("b.csv"), "{error}");
        assert!(error.hint_text().unwrap().contains("by itself"), "{error}");
    }
}
