//! Bytes that must not change unnoticed: a small chunk of every codec, longer ones of every layout,
//! a batch, and the example of the docs.
//!
//! `TERSECADES_GOLDEN=write cargo test -p tersecades-columnar --test wire` writes them anew.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, UInt8Array,
};
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::{registry, wire};

use crate::{assert_same, samples, written};

/// Chunks as the first release wrote them. None is changed or removed; a codec that comes to write
/// otherwise gets another file.
const FIXTURES: &str = "tests/golden/v1";

/// Bytes shown on one line.
const LINE_BYTES: usize = 16;

/// Times of a probe every 10 s.
fn probes() -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(
        (0..100).map(|probe| 1_700_000_000 + 10 * probe),
    ))
}

/// The examples of the codecs' own documentation.
fn examples() -> Vec<(&'static str, Chunk)> {
    let mut examples = integers();
    examples.extend(floats());
    examples.extend(texts());
    let numbers = ["pco", "lz4", "snappy"];
    examples.extend(numbers.map(|codec| (codec, samples::encode(codec, probes()))));
    examples
}

fn integers() -> Vec<(&'static str, Chunk)> {
    let small = |values: &[u8]| Arc::new(UInt8Array::from(values.to_vec())) as ArrayRef;
    let long = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let int = |values: Vec<i32>| Arc::new(Int32Array::from(values)) as ArrayRef;
    let wide: ArrayRef =
        Arc::new(Int64Array::from_iter((0..64).map(|i| {
            (i != 9).then_some(if i == 3 { 999_999 } else { 1_000 + i })
        })));
    let outlier = (0..24).map(|row| if row == 1 { 90_000 } else { 3 + row % 3 });
    let examples = [
        ("plain", small(&[7, 9, 9])),
        ("row", small(&[7, 9, 9])),
        ("constant", small(&[0, 0, 5, 0])),
        ("base_delta", wide),
        ("run_length", small(&[4, 4, 4, 9])),
        ("frame_of_reference", long(vec![1_000, 1_003, 1_001])),
        ("number_dictionary(base_delta)", long(vec![7, 1_000, 7])),
        ("patched(frame_of_reference)", long(outlier.collect())),
        ("gcd(plain)", long(vec![1_000, 1_700, 1_350])),
        ("sequence", small(&[10, 20, 30, 100, 110])),
        ("bit_pack", int(vec![1_000, 1_003, 1_001])),
        ("delta(plain)", small(&[100, 103, 106, 107])),
        ("linear(plain)", small(&[100, 111, 119, 131])),
        ("varint", int(vec![1, -2, 300, 0])),
    ];
    named(examples)
}

fn floats() -> Vec<(&'static str, Chunk)> {
    let floats = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
    let examples = [
        ("decimal(plain)", floats(&[1.5, 2.25, f64::NAN])),
        ("xor", floats(&[1.0, 1.0, 1.5, -0.1])),
        ("fixed_point(0.01, plain)", floats(&[1.234, f64::NAN])),
        ("zfp(0.001)", floats(&[0.5, 0.75, 1.0, 1.25, 1.5])),
    ];
    named(examples)
}

/// Each array under its scheme, by the name of the outermost codec.
fn named<const N: usize>(examples: [(&'static str, ArrayRef); N]) -> Vec<(&'static str, Chunk)> {
    let named = examples.map(|(scheme, array)| {
        let name = scheme.split('(').next().unwrap_or(scheme);
        (name, samples::encode(scheme, array))
    });
    named.into()
}

fn texts() -> Vec<(&'static str, Chunk)> {
    let text: ArrayRef = Arc::new(StringArray::from(vec![
        Some("eu"),
        Some("us"),
        None,
        Some("eu"),
    ]));
    let links: ArrayRef = Arc::new(StringArray::from(vec![
        Some("http://ab.com"),
        None,
        Some("http://abc.com"),
        Some("ä"),
    ]));
    vec![
        (
            "dictionary",
            samples::encode("dictionary(base_delta)", text),
        ),
        (
            "symbols",
            samples::text_under("symbols(base_delta)", &links),
        ),
        ("zstd", samples::text_under("zstd(base_delta)", &links)),
    ]
}

/// Rows past the second block, and past the first unit of codecs that keep 16 blocks together.
const BLOCKS_ROWS: usize = 2_500;
const UNITS_ROWS: usize = 17_000;

/// A column whose blocks start `apart` from one another and hardly change inside, a few rows null
/// and, where wanted, far away.
fn steps(rows: usize, apart: i64, has_outliers: bool) -> ArrayRef {
    Arc::new(Int64Array::from_iter((0..rows as i64).map(|row| {
        let near = row / 1_024 * apart + i64::from(row % 301 == 0);
        let is_outlier = has_outliers && row % 1_200 == 13;
        (row % 1_500 != 77).then_some(if is_outlier { -row << 40 } else { near })
    })))
}

/// Texts that repeat, a few of them null.
fn words(rows: usize) -> ArrayRef {
    let word = |row: usize| (row % 900 != 8).then(|| format!("probe-{}", row / 90 % 30));
    Arc::new(StringArray::from_iter((0..rows).map(word)))
}

/// Chunks of several blocks or units: later offsets, patch starts, inner chunks, other types.
fn long_examples() -> Vec<(String, Chunk)> {
    let mut examples = Vec::new();
    let blocks = [
        "constant",
        "base_delta",
        "frame_of_reference",
        "patched(frame_of_reference)",
        "patched(bit_pack)",
        "run_length(varint)",
        "sequence",
        "number_dictionary(run_length)",
        "gcd(patched(bit_pack))",
        "delta(bit_pack)",
        "delta(run_length(varint))",
        "linear(bit_pack)",
        "varint",
    ];
    for scheme in blocks {
        let apart = match scheme {
            "constant" => 0,
            _ if scheme.contains("patched") => 100,
            _ => 100_000,
        };
        let keeps_apart =
            ["constant", "base_delta"].contains(&scheme) || scheme.contains("patched");
        let array = steps(BLOCKS_ROWS, apart, keeps_apart);
        examples.push((scheme.to_owned(), samples::encode(scheme, array)));
    }
    for scheme in ["pco", "lz4", "snappy", "zstd"] {
        let array = steps(UNITS_ROWS, 100_000, true);
        examples.push((scheme.to_owned(), samples::encode(scheme, array)));
    }
    let float =
        |row: usize| f64::from((row / 1_024) as u32) + f64::from(row.is_multiple_of(301)) / 4.0;
    let floats: ArrayRef = Arc::new(Float64Array::from_iter_values((0..BLOCKS_ROWS).map(float)));
    for scheme in [
        "decimal(bit_pack)",
        "xor",
        "fixed_point(0.5, bit_pack)",
        "zfp(0.5)",
    ] {
        let chunk = samples::encode(scheme, ArrayRef::clone(&floats));
        examples.push((scheme.to_owned(), chunk));
    }
    let halves = (0..BLOCKS_ROWS).map(|row| float(row) as f32);
    let halves: ArrayRef = Arc::new(Float32Array::from_iter_values(halves));
    examples.push(("xor f32".to_owned(), samples::encode("xor", halves)));
    let digits = (0..BLOCKS_ROWS).map(|row| (row % 301 == 0).then_some(1_i128 << 100));
    let digits = Decimal128Array::from_iter(digits).with_precision_and_scale(38, 4);
    let digits: ArrayRef = Arc::new(digits.unwrap());
    examples.push(("lz4 decimal".to_owned(), samples::encode("lz4", digits)));
    let text = samples::encode("dictionary(run_length)", words(BLOCKS_ROWS));
    examples.push(("dictionary(run_length)".to_owned(), text));
    for scheme in ["plain", "symbols", "lz4", "snappy", "zstd"] {
        let rows = if scheme == "zstd" { UNITS_ROWS } else { 300 };
        let chunk = samples::text_under(scheme, &words(rows));
        examples.push((format!("{scheme} text"), chunk));
    }
    examples
}

/// Lines of position and bytes; lines of zeros are left out, the last line tells the length.
fn to_hex(bytes: &[u8]) -> String {
    let mut lines = String::new();
    for (index, line) in bytes.chunks(LINE_BYTES).enumerate() {
        if line.iter().any(|byte| *byte != 0) {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            lines += &format!("{:04x}  {}\n", index * LINE_BYTES, hex.join(" "));
        }
    }
    lines + &format!("{:04x}\n", bytes.len())
}

#[test]
fn golden_bytes_are_written_and_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURES);
    let examples = examples();
    for codec in registry::CODECS {
        let found = examples.iter().find(|(name, _)| *name == codec.name());
        let (name, chunk) = found.expect("every codec has a golden example");
        assert_eq!(chunk.codec().name(), *name);
        let golden = golden(&folder.join(format!("{name}.hex")), &written(chunk));
        let (back, _) = wire::read_chunk(&golden, None).unwrap();
        assert_same(name, chunk, &back);
    }
}

/// The bytes of the file, which are `bytes`; it is written where that is wanted.
fn golden(path: &Path, bytes: &[u8]) -> Vec<u8> {
    let lines = to_hex(bytes);
    if std::env::var("TERSECADES_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(path, &lines).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    assert!(lines == golden, "{} is written differently", path.display());
    from_hex(&golden)
}

#[test]
fn golden_bytes_of_many_blocks_are_written_and_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURES);
    let name = |scheme: &str| scheme.replace(['(', ' ', ','], "_").replace(')', "");
    for (scheme, chunk) in long_examples() {
        let codec = scheme.split(['(', ' ']).next();
        assert_eq!(Some(chunk.codec().name()), codec, "{scheme}");
        let path = folder.join(format!("long_{}.hex", name(&scheme)));
        let (back, _) = wire::read_chunk(&golden(&path, &written(&chunk)), None).unwrap();
        assert_same(&scheme, &chunk, &back);
    }
}

#[test]
fn a_golden_batch_is_written_and_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/batch_v1.hex");
    let schema = Schema::new(vec![
        Field::new("step", DataType::Int64, true),
        Field::new("word", DataType::Utf8, true),
    ]);
    let columns = vec![steps(1_100, 100_000, true), words(1_100)];
    let rows = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let mut encoder = BatchEncoder::new(&rows.schema()).unwrap();
    for column in encoder.columns_mut() {
        let scheme = match column.data_type() {
            DataType::Int64 => "base_delta",
            _ => "dictionary(run_length(varint))",
        };
        column.require(scheme.parse::<Scheme>().unwrap()).unwrap();
    }
    let mut batch = Batch::empty(encoder.schema().clone());
    encoder.encode(&rows, &mut batch).unwrap();
    let mut bytes = Vec::new();
    wire::write_batch(&batch, &mut bytes).unwrap();
    let back = wire::read_batch(&golden(&path, &bytes)).unwrap();
    assert_eq!(batch.schema(), back.schema());
    for (written, read) in batch.columns().iter().zip(back.columns()) {
        assert_same("batch", written, read);
    }
}

fn from_hex(lines: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines.lines() {
        let mut words = line.split_whitespace();
        let at = usize::from_str_radix(words.next().unwrap(), 16).unwrap();
        bytes.resize(at, 0);
        bytes.extend(words.map(|word| u8::from_str_radix(word, 16).unwrap()));
    }
    bytes
}

#[test]
fn every_fixture_of_version_1_loads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURES);
    let mut loaded = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = from_hex(&std::fs::read_to_string(&path).unwrap());
        let read = wire::read_chunk(&bytes, None);
        assert!(read.is_ok(), "{}: {:?}", path.display(), read.err());
        loaded += 1;
    }
    assert!(loaded >= registry::CODECS.len());
}

#[test]
fn the_documented_example_is_what_is_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page
        .split("```hex\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let shown: String = block
        .expect("format.md shows an example")
        .lines()
        .map(|line| {
            line.split(" |")
                .next()
                .unwrap_or(line)
                .trim_end()
                .to_owned()
                + "\n"
        })
        .collect();
    let examples = examples();
    let (_, chunk) = examples
        .iter()
        .find(|(name, _)| *name == "constant")
        .unwrap();
    assert_eq!(shown, to_hex(&written(chunk)));
}
