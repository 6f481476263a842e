//! ZFP streams against the reference library: its bytes for small arrays, kept as a file, and the
//! library itself on random ones where there is a Python that has it.
//!
//! `python tests/zfp/reference.py > tests/zfp/golden.txt` writes the file anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use std::io::Write;

mod random;
mod reference;

use tersecades_columnar::codecs::zfp::{Format, decode, encode};

/// One array and what the library makes of it.
struct Example {
    name: String,
    format: Format,
    tolerance: f64,
    values: Vec<f64>,
    stream: Vec<u8>,
    decoded: Vec<f64>,
}

impl Example {
    /// Reads a line of `name format tolerance values stream decoded`.
    fn read(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, format, tolerance, values, stream, decoded] = words[..] else {
            panic!("a line of six words: {line}");
        };
        let format = match format {
            "single" => Format::SINGLE,
            _ => Format::DOUBLE,
        };
        Self {
            name: format!("{name} {format:?}"),
            format,
            tolerance: f64::from_bits(u64::from_str_radix(tolerance, 16).unwrap()),
            values: values_of(values, format),
            stream: bytes_of(stream),
            decoded: values_of(decoded, format),
        }
    }

    fn check(&self) {
        let mut stream = Vec::new();
        let mut decoded = vec![f64::NAN; self.values.len()];
        let mut told = decoded.clone();
        let (format, tolerance) = (self.format, self.tolerance);
        encode(&self.values, format, tolerance, &mut stream, &mut told);
        assert_eq!(stream, self.stream, "stream of {}", self.name);
        decode(&stream, self.format, self.tolerance, &mut decoded);
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(
            bits(&decoded),
            bits(&self.decoded),
            "values of {}",
            self.name
        );
        assert_eq!(bits(&told), bits(&decoded), "told of {}", self.name);
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn values_of(hex: &str, format: Format) -> Vec<f64> {
    let bytes = bytes_of(hex);
    match format {
        Format::SINGLE => {
            let values = bytes.chunks(4).map(|lane| lane.try_into().unwrap());
            values
                .map(|lane| f64::from(f32::from_le_bytes(lane)))
                .collect()
        }
        _ => {
            let values = bytes.chunks(8).map(|lane| lane.try_into().unwrap());
            values.map(f64::from_le_bytes).collect()
        }
    }
}

#[test]
fn streams_are_those_of_the_reference_library() {
    let golden = include_str!("golden.txt");
    let examples: Vec<Example> = golden.lines().map(Example::read).collect();
    assert_eq!(examples.len(), 24);
    examples.iter().for_each(Example::check);
}

#[test]
fn random_arrays_match_the_library_itself() {
    let Some(python) = reference::python() else {
        // Past the harness, which captures what a passing test prints.
        let skipped =
            "*** SKIPPED: no Python with zfpy: only kept streams are compared (make venv)";
        writeln!(std::io::stderr(), "{skipped}").unwrap();
        return;
    };
    let lines = reference::compress(&python, &random::lines());
    assert!(lines.len() > 500, "every array has an answer");
    lines.iter().for_each(|line| Example::read(line).check());
}

#[test]
fn values_come_back_within_the_tolerance() {
    for array in random::arrays() {
        let mut stream = Vec::new();
        let mut back = vec![f64::NAN; array.values.len()];
        let mut told = back.clone();
        let (format, tolerance) = (array.format, array.tolerance);
        encode(&array.values, format, tolerance, &mut stream, &mut told);
        assert_eq!(stream.len() % 8, 0);
        decode(&stream, format, tolerance, &mut back);
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&told), bits(&back), "{array:?}");
        // What the integers cannot hold beside the block's largest value.
        let lost = if array.format == Format::SINGLE {
            2f64.powi(-22)
        } else {
            2f64.powi(-50)
        };
        for (values, back) in array.values.chunks(4).zip(back.chunks(4)) {
            let largest = values
                .iter()
                .fold(0.0, |max: f64, value| max.max(value.abs()));
            let bound = array.tolerance.max(largest * lost);
            for (value, back) in values.iter().zip(back) {
                assert!((value - back).abs() <= bound, "{array:?}: {value} {back}");
            }
        }
    }
}

#[test]
fn any_bytes_are_values_and_never_a_panic() {
    let mut state = random::Random::new(3);
    for round in 0..4_000 {
        let length = state.next() as usize % 40;
        let keep = if round % 2 == 0 {
            u64::MAX
        } else {
            state.next()
        };
        let bytes: Vec<u8> = (0..length).map(|_| (state.next() & keep) as u8).collect();
        let count = state.next() as usize % 50;
        let tolerance = f64::from_bits(state.next());
        for format in [Format::SINGLE, Format::DOUBLE] {
            decode(&bytes, format, tolerance, &mut vec![0.0; count]);
        }
    }
    let mut back = [1.0; 9];
    decode(&[], Format::DOUBLE, 1e-3, &mut back);
    assert_eq!(back, [0.0; 9], "missing bits are zero");
}

#[test]
fn values_that_are_not_finite_are_written_as_zero() {
    let (mut odd, mut even) = (Vec::new(), Vec::new());
    let values = [f64::NAN, 1.0, f64::INFINITY, f64::NEG_INFINITY, 2.0];
    let mut back = [[f64::NAN; 5]; 2];
    encode(&values, Format::DOUBLE, 1e-3, &mut odd, &mut back[0]);
    let zeros = [0.0, 1.0, 0.0, 0.0, 2.0];
    encode(&zeros, Format::DOUBLE, 1e-3, &mut even, &mut back[1]);
    assert_eq!(odd, even);
    assert_eq!(back[0], back[1]);
}

#[test]
fn magnitudes_that_the_library_overflows_on_are_kept() {
    for scale in [2f64.powi(-970), 2f64.powi(-1_010)] {
        let values = [1.0, 2.0, -3.0, 0.5].map(|value| value * scale);
        let (mut stream, mut back) = (Vec::new(), [0.0; 4]);
        let mut told = [0.0; 4];
        encode(&values, Format::DOUBLE, 0.0, &mut stream, &mut told);
        decode(&stream, Format::DOUBLE, 0.0, &mut back);
        assert_eq!(told, back);
        for (value, back) in values.iter().zip(back) {
            assert!(
                (value - back).abs() <= scale * 2f64.powi(-50),
                "{value} {back}"
            );
        }
    }
}
