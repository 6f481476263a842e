//! Bytes that must not change unnoticed: one small chunk per codec, and the example of the docs.
//!
//! `TERSECADES_GOLDEN=write cargo test -p tersecades-columnar --test wire` writes them anew.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringArray, UInt8Array};
use tersecades_columnar::chunk::Chunk;
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
        let path = folder.join(format!("{name}.hex"));
        let bytes = written(chunk);
        if std::env::var("TERSECADES_GOLDEN").as_deref() == Ok("write") {
            std::fs::write(&path, to_hex(&bytes)).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap();
        assert_eq!(to_hex(&bytes), golden, "{name} is written differently");
        let (back, _) = wire::read_chunk(&from_hex(&golden), None).unwrap();
        assert_same(name, chunk, &back);
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
