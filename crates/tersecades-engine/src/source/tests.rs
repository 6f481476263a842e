//! Parquet and Arrow IPC sources, damaged files, and the real data sets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::arrow_ipc::CompressionType;
use ::arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::file::properties::WriterProperties;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, Int64Array, StringArray};
use bytes::Bytes;
use tersecades_columnar::error::ErrorKind;

use super::arrow_ipc::ArrowSource;
use super::parquet::ParquetSource;
use super::*;

const ROWS: usize = 1000;

fn sample() -> RecordBatch {
    let numbers: Int64Array = (0..ROWS as i64)
        .map(|n| (n % 7 != 0).then_some(n))
        .collect();
    let word = |n: usize| (!n.is_multiple_of(5)).then(|| format!("word {}", n % 11));
    let words: StringArray = (0..ROWS).map(word).collect();
    RecordBatch::try_from_iter([
        ("n", Arc::new(numbers) as arrow_array::ArrayRef),
        ("w", Arc::new(words) as _),
    ])
    .unwrap()
}

fn parquet_bytes(compression: Compression) -> Bytes {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(300))
        .build();
    let batch = sample();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap().into()
}

fn ipc_bytes(stream: bool) -> Bytes {
    packed_ipc_bytes(stream, None)
}

fn packed_ipc_bytes(stream: bool, codec: Option<CompressionType>) -> Bytes {
    let options = IpcWriteOptions::default()
        .try_with_compression(codec)
        .unwrap();
    let mut batch = sample();
    let words = arrow_cast::cast(batch.column(1), &text_type()).unwrap();
    let numbers = batch.column(0).clone();
    batch = RecordBatch::try_from_iter([("n", numbers), ("w", words)]).unwrap();
    match stream {
        true => {
            let mut writer =
                StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            writer.into_inner().unwrap().into()
        }
        false => {
            let mut writer =
                FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            writer.into_inner().unwrap().into()
        }
    }
}

fn options(batch_rows: usize) -> SourceOptions {
    SourceOptions {
        batch_rows,
        ..Default::default()
    }
}

fn read_all(source: &mut dyn Source) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    while let Some(batch) = source.next()? {
        batches.push(batch);
    }
    Ok(batches)
}

fn assert_sample(batches: &[RecordBatch], batch_rows: usize) {
    let expected = sample();
    let mut start = 0;
    for batch in batches {
        assert!(batch.num_rows() <= batch_rows);
        let part = expected.slice(start, batch.num_rows());
        assert_eq!(part.column(0), batch.column(0));
        assert_eq!(batch.column(1).data_type(), &text_type());
        let words = arrow_cast::cast(batch.column(1), &DataType::Utf8).unwrap();
        assert_eq!(part.column(1), &words);
        start += batch.num_rows();
    }
    assert_eq!(start, ROWS);
}

#[test]
fn parquet_keeps_one_dictionary_for_each_row_group() {
    let bytes = parquet_bytes(Compression::UNCOMPRESSED);
    let mut source = ParquetSource::from_bytes(bytes, &options(128)).unwrap();
    assert_eq!(source.rows_hint(), Some(ROWS as u64));
    let batches = read_all(&mut source).unwrap();
    assert_sample(&batches, 128);
    let rows: Vec<_> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(rows, [128, 128, 44, 128, 128, 44, 128, 128, 44, 100]);
    for batch in &batches {
        assert_eq!(
            batch.column(1).as_dictionary::<Int32Type>().values().len(),
            11
        );
    }
    let values = |batch: &RecordBatch| {
        batch
            .column(1)
            .as_dictionary::<Int32Type>()
            .values()
            .clone()
    };
    let shared = values(&batches[0])
        .to_data()
        .ptr_eq(&values(&batches[1]).to_data());
    assert!(shared, "batches of a row group share the strings");
}

#[test]
fn parquet_codecs_and_files_are_read() {
    use ::parquet::basic::{GzipLevel, ZstdLevel};
    let folder = tempfile::tempdir().unwrap();
    for compression in [
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
    ] {
        let path = folder.path().join("a.parquet");
        std::fs::write(&path, parquet_bytes(compression)).unwrap();
        let batches = read_all(&mut *open(&path, &options(300)).unwrap()).unwrap();
        assert_sample(&batches, 300);
    }
}

#[test]
fn ipc_files_and_streams_are_sliced_without_copies() {
    for stream in [false, true] {
        let mut source = ArrowSource::from_bytes(ipc_bytes(stream), &options(300)).unwrap();
        let batches = read_all(&mut source).unwrap();
        assert_sample(&batches, 300);
        assert_eq!(batches.len(), 4);
        let address = |batch: &RecordBatch| {
            batch
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .as_ptr() as usize
        };
        assert_eq!(
            address(&batches[1]) - address(&batches[0]),
            300 * 8,
            "one buffer"
        );
    }
}

type Open = dyn Fn(&SourceOptions) -> Result<Box<dyn Source>>;

#[test]
fn projection_works_in_every_binary_format() {
    let columns = |name: &str| SourceOptions {
        columns: Some(vec![name.to_string()]),
        ..Default::default()
    };
    let parquet = |o: &SourceOptions| -> Result<Box<dyn Source>> {
        Ok(Box::new(ParquetSource::from_bytes(
            parquet_bytes(Compression::SNAPPY),
            o,
        )?))
    };
    let file = |o: &SourceOptions| -> Result<Box<dyn Source>> {
        Ok(Box::new(ArrowSource::from_bytes(ipc_bytes(false), o)?))
    };
    let stream = |o: &SourceOptions| -> Result<Box<dyn Source>> {
        Ok(Box::new(ArrowSource::from_bytes(ipc_bytes(true), o)?))
    };
    let opens: [&Open; 3] = [&parquet, &file, &stream];
    for open in opens {
        let mut source = open(&columns("w")).unwrap();
        assert_eq!(source.schema().fields().len(), 1);
        let batches = read_all(&mut *source).unwrap();
        assert_eq!(
            batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
            ROWS
        );
        assert!(
            batches
                .iter()
                .all(|batch| batch.schema() == source.schema())
        );
        let error = open(&columns("x")).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.hint_text().unwrap().contains("n, w"));
        assert!(open(&options(0)).is_err());
    }
}

#[test]
fn cut_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let parquet = parquet_bytes(Compression::SNAPPY);
    let ipc = ipc_bytes(false);
    for (name, whole) in [("a.parquet", parquet), ("a.arrow", ipc)] {
        let path = folder.path().join(name);
        for length in (0..whole.len()).step_by(whole.len() / 60 + 1) {
            std::fs::write(&path, &whole[..length]).unwrap();
            let outcome = open(&path, &options(100)).and_then(|mut s| read_all(&mut *s));
            let error = outcome.expect_err(name);
            assert_eq!(error.context().file, Some(path.display().to_string()));
        }
    }
    let stream = ipc_bytes(true);
    for length in (0..stream.len() - 16).step_by(stream.len() / 60 + 1) {
        let source = ArrowSource::from_bytes(stream.slice(..length), &options(100));
        let rows = source.and_then(|mut source| read_all(&mut source));
        assert!(
            !rows.is_ok_and(|batches| !batches.is_empty()),
            "no rows of a cut stream"
        );
    }
}

#[test]
fn feather_1_is_named() {
    let bytes = Bytes::from_static(b"FEA1....");
    let error = ArrowSource::from_bytes(bytes, &options(1)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

/// A small pseudo-random sequence, the same in every run.
pub(super) fn next_random(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn damaged_files_never_panic() {
    let mut state = 4711;
    let plain = parquet_bytes(Compression::UNCOMPRESSED);
    let kinds = [
        plain,
        parquet_bytes(Compression::SNAPPY),
        ipc_bytes(false),
        ipc_bytes(true),
    ];
    let rounds = std::env::var("TERSECADES_FUZZ_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok());
    for round in 0..rounds.unwrap_or(400) {
        for (kind, whole) in kinds.iter().enumerate() {
            let mut bytes = whole.to_vec();
            for _ in 0..=next_random(&mut state) % 4 {
                let tail = next_random(&mut state).is_multiple_of(2);
                let span = if tail {
                    bytes.len().min(600)
                } else {
                    bytes.len()
                };
                let place = bytes.len() - 1 - next_random(&mut state) % span;
                bytes[place] = next_random(&mut state) as u8;
            }
            let bytes = Bytes::from(bytes);
            let outcome = std::panic::catch_unwind(|| match kind {
                0 | 1 => ParquetSource::from_bytes(bytes, &options(100))
                    .and_then(|mut source| read_all(&mut source)),
                _ => ArrowSource::from_bytes(bytes, &options(100))
                    .and_then(|mut source| read_all(&mut source)),
            });
            assert!(outcome.is_ok(), "kind {kind} round {round}");
        }
    }
}

fn bad_row(line: u64) -> RejectedRow {
    RejectedRow {
        file: None,
        line,
        column: None,
        reason: "short".into(),
        original: b"1".to_vec(),
    }
}

#[test]
fn unknown_suffix_lists_the_known_ones() {
    let error = open(Path::new("rows.xlsx"), &SourceOptions::default())
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(error.context().file.as_deref(), Some("rows.xlsx"));
    let hint = error.hint_text().unwrap();
    assert!(
        hint.contains(".parquet") && hint.contains(".csv.zst"),
        "{hint}"
    );
}

#[test]
fn suffix_is_found_whatever_its_case() {
    let error = open(Path::new("no/such/FILE.CSV"), &SourceOptions::default())
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.context().file.as_deref(), Some("no/such/FILE.CSV"));
}

#[test]
fn suffixes_and_names_are_unique() {
    let mut seen: Vec<&str> = SOURCES
        .iter()
        .flat_map(|kind| kind.suffixes)
        .copied()
        .collect();
    seen.extend(SOURCES.iter().map(|kind| kind.name));
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[test]
fn policies_fail_count_or_keep() {
    let error = || Error::schema("bad");
    let mut rejected = Rejected::default();
    assert!(rejected.admit(bad_row(1), OnError::Fail, error()).is_err());
    for line in 0..20 {
        rejected
            .admit(bad_row(line), OnError::Skip, error())
            .unwrap();
    }
    assert_eq!(
        (rejected.count_rows, rejected.kept.len()),
        (20, SKIPPED_ROWS_KEPT)
    );
    let mut letters = Rejected::default();
    for line in 0..DEAD_LETTER_ROWS_LIMIT as u64 {
        letters
            .admit(bad_row(line), OnError::DeadLetter, error())
            .unwrap();
    }
    let full = letters
        .admit(bad_row(0), OnError::DeadLetter, error())
        .unwrap_err();
    assert_eq!(full.kind(), ErrorKind::LimitExceeded);
}

/// File, rows, and names of columns with types that must come out.
type Expectation = (&'static str, u64, &'static [(&'static str, &'static str)]);

const TEXT: &str = "Dictionary(Int32, Utf8)";

const DATA: &[Expectation] = &[
    (
        "netlatency_seattle/seattle_slices_001_500.parquet",
        4_900_500,
        &[("rtt_s", "Float64")],
    ),
    (
        "azure_vm_noise/measurements_by_time.parquet",
        1_300_000,
        &[("VM_id", "Int32"), ("test_name", TEXT)],
    ),
    ("bitbrains_small/trace_by_time.parquet", 130_820, &[]),
    (
        "bitbrains_small/one_vm_all_counters.csv",
        8_619,
        &[("CPU usage [%]", "Float64")],
    ),
    (
        "ripe_atlas_rtt/rtt_by_time.csv.gz",
        287_031,
        &[("epoch", "Timestamp(µs)")],
    ),
    (
        "nyc_flights_2013/flights.csv.gz",
        336_776,
        &[
            ("tailnum", TEXT),
            ("dep_delay", "Int64"),
            ("time_hour", "Timestamp(µs, \"UTC\")"),
        ],
    ),
    (
        "beijing_air_quality/PRSA_Data_Aotizhongxin_20130301-20170228.csv.gz",
        35_064,
        &[("SO2", "Float64"), ("wd", TEXT)],
    ),
    (
        "mobile_5g_kpi/kpi.csv.gz",
        145_503,
        &[("NetworkMode", TEXT)],
    ),
];

#[test]
fn real_files_load_whole() {
    let folder = std::env::var_os("TERSECADES_DATA").map_or(PathBuf::from("data"), PathBuf::from);
    for (name, rows, types) in DATA {
        let path = folder.join(name);
        if !path.exists() {
            eprintln!("SKIPPED: {} is absent; set TERSECADES_DATA", path.display());
            continue;
        }
        let mut options = SourceOptions::default();
        options.csv.infer_rows = 40_000;
        let mut source = open(&path, &options).unwrap();
        let mut count = 0;
        while let Some(batch) = source.next().unwrap() {
            count += batch.num_rows() as u64;
        }
        assert_eq!((count, source.rejected().count_rows), (*rows, 0), "{name}");
        for (column, expected) in *types {
            let schema = source.schema();
            let found = schema
                .field_with_name(column)
                .unwrap()
                .data_type()
                .to_string();
            assert_eq!(&found, expected, "{name} {column}");
        }
    }
}

#[test]
fn a_late_float_in_real_data_is_explained() {
    let folder = std::env::var_os("TERSECADES_DATA").map_or(PathBuf::from("data"), PathBuf::from);
    let path = folder.join("beijing_air_quality/PRSA_Data_Aotizhongxin_20130301-20170228.csv.gz");
    if !path.exists() {
        eprintln!("SKIPPED: {} is absent; set TERSECADES_DATA", path.display());
        return;
    }
    let mut source = open(&path, &SourceOptions::default()).unwrap();
    let error = read_all(&mut *source).unwrap_err();
    assert_eq!(error.context().column.as_deref(), Some("PM2.5"));
    assert_eq!(error.context().row, Some(10_708));
    assert!(error.hint_text().unwrap().contains("inference rows"));
}

/// A Parquet file without rows whose only column lies `depth` groups deep (compact Thrift).
fn nested_parquet_bytes(depth: u32) -> Bytes {
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    let mut elements = depth + 2;
    while elements >= 0x80 {
        footer.push(0x80 | (elements % 0x80) as u8);
        elements /= 0x80;
    }
    footer.push(elements as u8);
    footer.extend([0x48, 0x01, b'r', 0x15, 0x02, 0x00]);
    for _ in 0..depth {
        footer.extend([0x35, 0x00, 0x18, 0x01, b'g', 0x15, 0x02, 0x00]);
    }
    footer.extend([0x15, 0x02, 0x25, 0x00, 0x18, 0x01, b'c', 0x00]);
    footer.extend([0x16, 0x00, 0x19, 0x0c, 0x00]);
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [b"PAR1".as_slice(), &footer, &length, b"PAR1"]
        .concat()
        .into()
}

#[test]
fn deep_nesting_is_refused_before_it_fills_the_stack() {
    let shallow = ParquetSource::from_bytes(nested_parquet_bytes(3), &options(10)).unwrap();
    assert_eq!(shallow.schema().fields().len(), 1);
    let deep = ParquetSource::from_bytes(nested_parquet_bytes(100_000), &options(10));
    assert_eq!(deep.err().unwrap().kind(), ErrorKind::LimitExceeded);
    for depth in [60, 63] {
        assert!(ParquetSource::from_bytes(nested_parquet_bytes(depth), &options(10)).is_ok());
    }
}
