//! Files of folders and globs: order, partitions, projection, differing schemas, bad rows.

mod typed;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tersecades_columnar::error::ErrorKind;

use super::*;
use crate::error_bound::{ERROR_BOUND, LOSSY_COLUMNS, bound_lines};
use crate::expression::col;
use crate::operator::row::keys::SortOrder;
use crate::sink::{self, SinkOptions};
use crate::source::OnError;
use crate::source::location::open_table;
use crate::stream::Stream;

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn table(root: &Path, pattern: &str) -> Result<FilesTable> {
    FilesTable::new(root.join(pattern), &SourceOptions::default())
}

fn read(source: &mut dyn Source) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    while let Some(batch) = source.next()? {
        assert_eq!(batch.schema(), source.schema());
        batches.push(batch);
    }
    assert!(source.next()?.is_none());
    Ok(batches)
}

fn rows(table: &FilesTable, columns: Option<&[String]>) -> Vec<String> {
    let mut shown = Vec::new();
    for batch in read(&mut table.source(columns).unwrap()).unwrap() {
        let columns: Vec<ArrayRef> = batch
            .columns()
            .iter()
            .map(|column| arrow_cast::cast(column, &DataType::Utf8).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let text = |column: &ArrayRef| {
                let column = column.as_string::<i32>();
                if arrow_array::Array::is_null(column, row) {
                    "-".to_owned()
                } else {
                    column.value(row).to_owned()
                }
            };
            shown.push(columns.iter().map(text).collect::<Vec<_>>().join(" "));
        }
    }
    shown
}

#[test]
fn files_come_by_path_with_the_keys_of_their_folders() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "day=2024-05-02/zone=eu/b.csv", "n,w\n3,c\n");
    write(root, "day=2024-05-01/zone=eu/z.csv", "n,w\n2,b\n");
    write(root, "day=2024-05-01/zone=7/a.csv", "n,w\n1,a\n");
    write(
        root,
        "day=__HIVE_DEFAULT_PARTITION__/zone=x/c.csv",
        "w,n\nd,4\n",
    );
    write(root, "day=2024-05-01/zone=eu/.hidden.csv", "n,w\n9,x\n");
    write(root, "_log/old.csv", "broken");
    for pattern in ["", "**/zone=*/*.csv", "day=*/zone=*/*.csv"] {
        let table = table(root, pattern).unwrap();
        assert_eq!(table.files().len(), 4, "{pattern}");
        let types: Vec<_> = table
            .schema()
            .fields()
            .iter()
            .map(|it| it.data_type().clone())
            .collect();
        let text = crate::source::text_type();
        assert_eq!(
            types,
            [DataType::Int64, text.clone(), DataType::Date32, text]
        );
        let expected = [
            "1 a 2024-05-01 7",
            "2 b 2024-05-01 eu",
            "3 c 2024-05-02 eu",
            "4 d - x",
        ];
        assert_eq!(rows(&table, None), expected);
        let one = ["zone".to_owned()];
        assert_eq!(rows(&table, Some(&one)), ["7", "eu", "eu", "x"]);
        let two = ["day".to_owned(), "n".to_owned()];
        assert_eq!(rows(&table, Some(&two))[2], "3 2024-05-02");
        let mut source = table.file_source(1, None).unwrap();
        assert_eq!(source.file(), None);
        assert_eq!(source.next().unwrap().unwrap().num_rows(), 1);
        assert_eq!(source.file(), Some(1));
        assert!(table.file_source(4, None).is_err());
    }
}

#[test]
fn other_columns_are_an_error_with_file_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.csv", "n,w\n1,x\n");
    for (text, column) in [
        ("n\n1\n", "w"),
        ("n,w,z\n1,x,2\n", "z"),
        ("n,w\nx,y\n", "n"),
    ] {
        write(root, "b.csv", text);
        let table = table(root, "*.csv").unwrap();
        let error = read(&mut table.source(Some(&["n".to_owned()])).unwrap()).unwrap_err();
        assert_eq!(error.context().column.as_deref(), Some(column), "{error}");
        assert!(
            error.context().file.as_ref().unwrap().ends_with("b.csv"),
            "{error}"
        );
        assert!(error.hint_text().is_some());
    }
    let numbers = |name: &str, array: ArrayRef| {
        let batch = RecordBatch::try_from_iter([("n", array)]).unwrap();
        let mut sink =
            sink::create(&root.join(name), &batch.schema(), &SinkOptions::default()).unwrap();
        sink.write(&batch).unwrap();
        sink.finish().unwrap();
    };
    numbers(
        "a.parquet",
        Arc::new(arrow_array::Int64Array::from(vec![1, 2])),
    );
    numbers(
        "b.parquet",
        Arc::new(arrow_array::Int32Array::from(vec![3])),
    );
    let table = table(root, "*.parquet").unwrap();
    let error = read(&mut table.source(None).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(
        error.message().contains("Int32") && error.message().contains("Int64"),
        "{error}"
    );
}

#[test]
fn keys_of_json_that_the_first_file_lacks_make_their_rows_bad() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.jsonl", "{\"a\":1,\"o\":{\"x\":1}}\n");
    let later = "{\"a\":1}\n{\"a\":2,\"b\":3}\n{\"o\":{\"x\":2,\"y\":4}}\n{\"a\":5}\n";
    write(root, "b.jsonl", later);
    let error = read(&mut table(root, "*.jsonl").unwrap().source(None).unwrap()).unwrap_err();
    assert!(error.message().contains("`b`"), "{error}");
    assert_eq!(error.context().row, Some(2));
    assert!(error.context().file.as_ref().unwrap().ends_with("b.jsonl"));
    let options = SourceOptions {
        on_error: OnError::Skip,
        ..SourceOptions::default()
    };
    let skipping = FilesTable::new(root.join("*.jsonl"), &options).unwrap();
    let mut source = skipping.source(Some(&["a".to_owned()])).unwrap();
    let rows: usize = read(&mut source)
        .unwrap()
        .iter()
        .map(RecordBatch::num_rows)
        .sum();
    assert_eq!((rows, source.rejected().count_rows), (3, 2));
}

#[test]
fn an_object_that_begins_as_null_in_a_later_file_is_that_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.jsonl", "{\"o\":{\"x\":1,\"p\":{\"q\":\"u\"}}}\n");
    let later = "{\"o\":null}\n{\"o\":{\"x\":2,\"p\":null}}\n{\"o\":null}\n";
    write(root, "b.jsonl", later);
    write(
        root,
        "c.jsonl",
        "{\"o\":{\"p\":null}}\n{\"o\":{\"p\":{\"q\":\"v\"}}}\n",
    );
    let found = rows(&table(root, "*.jsonl").unwrap(), None);
    assert_eq!(found, ["1 u", "- -", "2 -", "- -", "- -", "- v"]);
}

#[test]
fn an_object_that_is_empty_in_the_first_file_may_be_anything_in_later_ones() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.jsonl", "{\"n\":1,\"o\":{}}\n");
    write(root, "b.jsonl", "{\"n\":2,\"o\":null}\n{\"n\":3}\n");
    write(
        root,
        "c.jsonl",
        "{\"n\":4}\n{\"n\":5,\"o\":{\"x\":[]}}\n{\"o\":{}}\n",
    );
    let found = rows(&table(root, "*.jsonl").unwrap(), None);
    assert_eq!(found, ["1 {}", "2 -", "3 -", "4 -", "5 {\"x\":[]}", "- {}"]);
    write(root, "a.jsonl", "{\"n\":1,\"o\":{\"x\":7}}\n");
    write(root, "c.jsonl", "{\"n\":4,\"o\":{}}\n{\"o\":{\"x\":8}}\n");
    let found = rows(&table(root, "*.jsonl").unwrap(), None);
    assert_eq!(found, ["1 7", "2 -", "3 -", "4 -", "- 8"]);
}

/// Writes one column of numbers, which metadata says are so lossy.
fn write_lossy(root: &Path, name: &str, marks: &[(&str, &str)], rows: Option<&str>) {
    let pairs = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
        let owned = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        owned.collect()
    };
    let field = Field::new("v", DataType::Float64, true).with_metadata(pairs(marks));
    let rows = rows.map(|columns| (ROWS_DEPEND_ON, columns));
    let schema = Schema::new(vec![field]).with_metadata(pairs(rows.as_slice()));
    let values: ArrayRef = Arc::new(arrow_array::Float64Array::from(vec![1.5]));
    let batch = RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap();
    let mut sink =
        sink::create(&root.join(name), &batch.schema(), &SinkOptions::default()).unwrap();
    sink.write(&batch).unwrap();
    sink.finish().unwrap();
}

#[test]
fn a_column_is_as_lossy_as_it_is_in_any_file() {
    let bound = |bound| [(ERROR_BOUND, bound), (LOSSY_COLUMNS, "v")];
    for suffix in ["parquet", "arrow"] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |name: &str, marks: &[(&str, &str)], rows| {
            write_lossy(root, &format!("k=1/{name}.{suffix}"), marks, rows);
        };
        fs::create_dir(root.join("k=1")).unwrap();
        let lines = || {
            let table = table(root, &format!("k=1/*.{suffix}")).unwrap();
            let schema = table.schema();
            let batches = read(&mut table.source(None).unwrap()).unwrap();
            assert!(batches.iter().all(|batch| batch.schema() == schema));
            bound_lines(&schema)
        };
        write("a", &[], None);
        write("b", &[], None);
        assert!(lines().is_empty());
        write("b", &bound("0.5"), None);
        assert_eq!(lines(), ["bound v: within 0.5 of exact, by lossy v"]);
        write("a", &bound("0.25"), Some("w"));
        let rows = "bound rows: which there are depends on lossy w";
        assert_eq!(lines(), ["bound v: within 0.5 of exact, by lossy v", rows]);
        write(
            "c",
            &[(ERROR_BOUND, "2 per row"), (LOSSY_COLUMNS, "u")],
            Some("x"),
        );
        let rows = "bound rows: which there are depends on lossy w,x";
        assert_eq!(lines(), ["bound v: unknown, it depends on lossy u,v", rows]);
    }
}

#[test]
fn text_of_later_files_may_be_coded_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let write = |name: &str, column: ArrayRef, has_fixed_dictionaries| {
        let options = SinkOptions {
            has_fixed_dictionaries,
            ..SinkOptions::default()
        };
        let batch = RecordBatch::try_from_iter([("w", column)]).unwrap();
        let mut sink = sink::create(&root.join(name), &batch.schema(), &options).unwrap();
        sink.write(&batch).unwrap();
        sink.finish().unwrap();
    };
    let coded = || -> ArrayRef {
        let texts = [Some("x"), None, Some("x")].into_iter();
        Arc::new(texts.collect::<arrow_array::DictionaryArray<arrow_array::types::Int32Type>>())
    };
    let large = arrow_array::LargeStringArray::from(vec!["z"]);
    for (first, second) in [("a", "b"), ("b", "a")] {
        write(&format!("{first}.arrow"), coded(), true);
        write(&format!("{second}.arrow"), coded(), false);
        write("c.arrow", Arc::new(large.clone()), false);
        let found = rows(&table(root, "*.arrow").unwrap(), None);
        assert_eq!(found, ["x", "-", "x", "x", "-", "x", "z"]);
    }
    write(
        "c.arrow",
        Arc::new(arrow_array::Int64Array::from(vec![1])),
        false,
    );
    let table = table(root, "*.arrow").unwrap();
    assert!(read(&mut table.source(None).unwrap()).is_err());
}

/// Rows of a folder `n=5` whose file says something else of `n`, row group by row group.
fn overruled(root: &Path) -> Arc<dyn Table> {
    let path = root.join("n=5/a.parquet");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let numbers = |values: std::ops::Range<i64>| -> ArrayRef {
        Arc::new(arrow_array::Int64Array::from_iter_values(values))
    };
    let columns = [("n", numbers(10..1_010)), ("w", numbers(0..1_000))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(100));
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(groups.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    Arc::new(table(root, "**/*.parquet").unwrap())
}

#[test]
fn what_files_say_of_a_key_of_their_folders_leaves_no_rows_out() {
    let folder = tempfile::tempdir().unwrap();
    let stream = || Stream::from_shared(overruled(folder.path()));
    let count = |stream: Stream| -> usize {
        let results = stream.run().unwrap();
        results.map(|batch| batch.unwrap().num_rows()).sum()
    };
    assert_eq!(count(stream().filter(col("n").eq(5))), 1_000);
    assert_eq!(count(stream().filter(col("n").not_eq(5))), 0);
    let by = [(col("n"), SortOrder::DESCENDING)];
    let first = stream().top_k(3, by).run().unwrap();
    let first: Vec<RecordBatch> = first.map(Result::unwrap).collect();
    let of = |name: &str| {
        let column = first[0].column_by_name(name).unwrap();
        column.as_primitive::<Int64Type>().values().to_vec()
    };
    assert_eq!(
        (of("n"), of("w")),
        (vec![5; 3], vec![0, 1, 2]),
        "the first to come"
    );
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_above_shows_each_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "set/a/one.csv", "x\n1\n");
    write(root, "set/two.csv", "x\n2\n");
    for link in ["set/a/self", "set/a/again", "set/loop"] {
        std::os::unix::fs::symlink(root.join("set"), root.join(link)).unwrap();
    }
    std::os::unix::fs::symlink(root.join("set/two.csv"), root.join("set/three.csv")).unwrap();
    for pattern in ["set", "set/**/*.csv"] {
        let mut found = rows(&table(root, pattern).unwrap(), None);
        found.sort();
        // A link to a file is a file of its own.
        assert_eq!(found, ["1", "2", "2"], "{pattern}");
    }
    write(root, "real/b/.hidden.csv", "x\n4\n");
    write(root, "real/b/one.csv", "x\n3\n");
    std::os::unix::fs::symlink(root.join("real/b"), root.join("real/a")).unwrap();
    for (pattern, wanted) in [
        ("real/**/b/*.csv", &["3"][..]),
        ("real//**/one.csv", &["3", "3"]),
        ("real/./**/one.csv", &["3", "3"]),
        ("real/**/.hidden.csv", &["4", "4"]),
    ] {
        assert_eq!(
            rows(&table(root, pattern).unwrap(), None),
            wanted,
            "{pattern}"
        );
    }
}

#[test]
fn nothing_mixtures_and_differing_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    assert!(table(root, "*.csv").unwrap_err().hint_text().is_some());
    assert!(table(root, "").is_err());
    assert!(table(root, "a[.csv").is_err());
    write(root, "x/a.csv", "n\n1\n");
    write(root, "x/b.jsonl", "{\"n\":1}\n");
    let error = table(root, "x").unwrap_err();
    assert!(error.message().contains("csv, jsonl"), "{error}");
    write(root, "y/k=1/a.csv", "n\n1\n");
    write(root, "y/k=1/l=2/a.csv", "n\n1\n");
    let error = table(root, "y").unwrap_err();
    assert!(error.message().contains("k, l"), "{error}");
    write(root, "z/k=1/k=2/a.csv", "n\n1\n");
    assert!(table(root, "z").unwrap_err().message().contains("twice"));
    let unknown = table(root, "x/*.csv").unwrap();
    assert!(unknown.source(Some(&["m".to_owned()])).is_err());
}

#[test]
fn bad_rows_of_all_files_are_counted_with_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.csv", "n\n1\n2\n");
    write(root, "b.csv", "n\nx\n3\n");
    write(root, "c.csv", "n\ny\n");
    write(root, "d.csv", "n\n4\nz\n");
    let options = SourceOptions {
        on_error: OnError::Skip,
        batch_rows: 1,
        ..SourceOptions::default()
    };
    let table = FilesTable::new(root.join("*.csv"), &options).unwrap();
    let mut source = table.source(None).unwrap();
    let batches = read(&mut source).unwrap();
    let numbers = batches
        .iter()
        .map(|it| it.column(0).as_primitive::<Int64Type>().value(0));
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3, 4]);
    let rejected = source.rejected();
    assert_eq!(rejected.count_rows, 3);
    let kept: Vec<(bool, u64)> = rejected
        .kept
        .iter()
        .zip(["b.csv", "c.csv", "d.csv"])
        .map(|(row, name)| (row.file.as_ref().unwrap().ends_with(name), row.line))
        .collect();
    assert_eq!(kept, [(true, 2), (true, 2), (true, 3)]);
}

#[test]
fn a_location_is_a_file_a_glob_or_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a[1].csv", "n\n1\n");
    write(root, "b.txt", "n\n2\n");
    let named = SourceOptions {
        format: Some("csv".to_owned()),
        ..SourceOptions::default()
    };
    for (name, options, files) in [
        ("a[1].csv", &SourceOptions::default(), 1),
        ("b.txt", &named, 1),
        ("", &SourceOptions::default(), 1),
        ("*", &named, 2),
    ] {
        let table = open_table(root.join(name), options).unwrap();
        let Origin::Source(mut source) = table.open(None).unwrap() else {
            panic!("files are not encoded");
        };
        assert_eq!(read(&mut *source).unwrap().len(), files, "{name}");
    }
    assert!(open_table(root.join("b.txt"), &SourceOptions::default()).is_err());
    let error = open_table("-", &SourceOptions::default()).err().unwrap();
    assert!(
        error.hint_text().unwrap().contains("csv, jsonl, json"),
        "{error}"
    );
    let wrong = SourceOptions {
        format: Some("parquet".to_owned()),
        ..SourceOptions::default()
    };
    assert!(
        open_table("-", &wrong)
            .err()
            .unwrap()
            .message()
            .contains("pipe")
    );
}
