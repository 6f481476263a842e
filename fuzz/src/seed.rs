//! Valid inputs of every format.

#![allow(clippy::unwrap_used, reason = "seeds are made of constants")]

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tersecades_columnar::wire;
use tersecades_store::{Store, StoreOptions, StoreSchema, raw};

use crate::samples;

/// Rows of the tables.
const ROWS: usize = 90;

/// Chunk units of every codec, and a batch unit.
pub(crate) fn units() -> Vec<Vec<u8>> {
    let mut units = Vec::new();
    for rows in [5, 1_100] {
        for (_, chunk) in samples::chunks(rows) {
            let mut unit = Vec::new();
            wire::write_chunk(&chunk, &mut unit).unwrap();
            units.push(unit);
        }
    }
    let mut unit = Vec::new();
    wire::write_batch(&samples::batch(20), &mut unit).unwrap();
    units.push(unit);
    units
}

/// CSV with quotes, types, gaps, foreign delimiters and byte order marks.
pub(crate) fn csv() -> Vec<Vec<u8>> {
    let mut long = String::from("time,node,rtt_us,ok\n");
    for row in 0..100 {
        let minute = row % 60;
        long += &format!(
            "2024-05-01T12:{minute:02}:00Z,node-{},{}.5,true\n",
            row % 7,
            row * 3
        );
    }
    let texts = [
        long.as_str(),
        "a,b\n1,2\n3,4\n",
        "name;n;note\n\"x;\"\"y\"\"\";1;\"two\nlines\"\nz;;\n",
        "\u{feff}a\tb\r\n-9223372036854775808\t1e308\r\nNaN\t-inf\r\n",
        "n,flag,day\n1,true,2020-02-29\nNA,false,\nthree,yes,2021-02-29\n",
        "only\n\n\n",
        "",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// The number of the log segment and of the manifest of a new store.
pub(crate) const STORE_FILE: u64 = 2;

/// The files of a small store: a log segment, a manifest and a run.
pub(crate) fn store_files() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let rows = table();
    let schema = StoreSchema::new(&rows.schema()).unwrap();
    let schema = schema.key(&["n"]).unwrap();
    let store = Store::create(folder.path(), schema, StoreOptions::default()).unwrap();
    store.writer().unwrap().append(&rows).unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let log = read("log/0000000002.log");
    store.flush().unwrap();
    let (run, manifest) = (read("runs/0000000001.tcr"), read("MANIFEST-0000000002"));
    assert_eq!(raw::read_log(STORE_FILE, &log), Ok(ROWS as u64));
    assert_eq!(raw::read_manifest(STORE_FILE, &manifest), Ok(1));
    assert_eq!(raw::read_run(1, &run), Ok(ROWS as u64));
    vec![log, run, manifest]
}

/// JSON with nesting, escapes, types, mixtures, arrays and broken ends; one of them packed.
pub(crate) fn json() -> Vec<Vec<u8>> {
    let mut long = String::new();
    for row in 0..60 {
        let minute = row % 60;
        long += &format!(
            "{{\"time\":\"2024-05-01T12:{minute:02}:00Z\",\
             \"at\":{{\"node\":\"n-{}\"}},\"rtt\":{}.5,\"ok\":true}}\n",
            row % 7,
            row * 3
        );
    }
    let texts = [
        long.as_str(),
        "{\"a\":1,\"b\":[1,{\"c\":\"]\"}]}\n{\"a\":null}\r\n\n{\"a\":2.5e-3,\"z\":{}}\n",
        "[{\"a\":{\"b\":1}},\n {\"a\":5}, {\"a\":\"x\\u00e9\\ud83d\\ude00\\n\"}]",
        "{\"n\":-9223372036854775808}{\"n\":99999999999999999999}\n{\"n\":NaN}",
        "{\"a\":1\n{\"a\":2}\n[1]\ntrue\n",
        "\u{feff}{\"day\":\"2024-02-29\"}\n",
        "",
    ];
    let mut seeds = texts.map(|text| text.as_bytes().to_vec()).to_vec();
    seeds.push(zstd::encode_all(long.as_bytes(), 1).unwrap());
    seeds
}

/// A table of several types with nulls.
fn table() -> RecordBatch {
    let rows = 0..ROWS;
    let some = |row: usize| !row.is_multiple_of(5);
    let number = |row: usize| some(row).then_some(row as i64 * 1_000);
    let words: StringArray = rows
        .clone()
        .map(|row| some(row).then(|| format!("w{}", row % 7)))
        .collect();
    let columns: [(&str, ArrayRef); 6] = [
        (
            "n",
            Arc::new(rows.clone().map(number).collect::<Int64Array>()),
        ),
        (
            "t",
            Arc::new(
                rows.clone()
                    .map(number)
                    .collect::<TimestampMicrosecondArray>(),
            ),
        ),
        (
            "f",
            Arc::new(Float64Array::from_iter_values(
                rows.clone().map(|row| row as f64 / 7.0),
            )),
        ),
        (
            "b",
            Arc::new(
                rows.map(|row| some(row).then_some(row % 2 == 0))
                    .collect::<BooleanArray>(),
            ),
        ),
        ("w", Arc::new(words.clone())),
        ("d", arrow_cast::cast(&words, &dictionary_type()).unwrap()),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Parquet, packed and not.
pub(crate) fn parquet() -> Vec<Vec<u8>> {
    let file = |compression| {
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_max_row_group_row_count(Some(ROWS / 2))
            .build();
        let batch = table();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    };
    vec![file(Compression::UNCOMPRESSED), file(Compression::SNAPPY)]
}

/// Arrow IPC as file and as stream.
pub(crate) fn ipc() -> Vec<Vec<u8>> {
    let batch = table();
    let mut file = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    file.write(&batch).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    vec![file.into_inner().unwrap(), stream.into_inner().unwrap()]
}
