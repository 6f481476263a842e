//! Float codecs on values around which rounding goes wrong: every comparison at, just below and
//! just above values that are there, sums that cancel out, bits that arithmetic does not keep.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array};
use arrow_schema::DataType;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::ErrorKind;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::registry;
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::float_key;
use tersecades_columnar::values::Values;

const SCHEMES: &[&str] = &[
    "decimal",
    "decimal(plain)",
    "decimal(constant)",
    "decimal(base_delta)",
    "decimal(run_length)",
    "xor",
    "fixed_point(0.01)",
    "fixed_point(0.3, base_delta)",
    "zfp(0.001)",
];

/// A fixed sequence of numbers without a pattern.
fn noise(index: usize) -> u64 {
    let mut bits = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits ^ (bits >> 32)
}

/// Columns of 0 to about a thousand rows.
fn columns() -> Vec<(&'static str, Vec<f64>)> {
    let of = |rows: usize, value: &dyn Fn(usize) -> f64| (0..rows).map(value).collect();
    let odd = [
        0.0,
        -0.0,
        f64::NAN,
        f64::from_bits(0x7FF8_0000_0000_1234),
        f64::from_bits(0xFFF0_0000_0000_0001),
        f64::INFINITY,
        f64::NEG_INFINITY,
        5e-324,
        -2.2e-308,
        f64::MAX,
        f64::MIN,
        0.1 + 0.2,
        0.3,
        (1u64 << 51) as f64,
        -((1u64 << 51) as f64) - 1.0,
        (1u64 << 53) as f64,
        1e22,
        1e23,
        0.1,
        2251799813685.247,
    ];
    vec![
        ("none", vec![]),
        ("one", vec![21.5]),
        ("odd", odd.to_vec()),
        (
            "odd among decimals",
            of(1_025, &|row| {
                if row % 9 == 4 {
                    odd[row / 9 % odd.len()]
                } else {
                    (row % 777) as f64 / 100.0
                }
            }),
        ),
        (
            "prices",
            of(1_023, &|row| (noise(row) % 100_000) as f64 / 100.0),
        ),
        (
            "fine",
            of(500, &|row| (noise(row) % 10_000_000_000_000) as f64 / 1e13),
        ),
        (
            "signed",
            of(777, &|row| (noise(row) as i64 % 5_000) as f64 / 10.0),
        ),
        ("large", of(300, &|row| (noise(row) >> 12) as f64)),
        (
            "cancelling",
            of(1_000, &|row| {
                let size = (noise(row / 2) % 1_000_000_000) as f64 / 1000.0;
                if row % 2 == 0 { size } else { -size }
            }),
        ),
        ("waves", of(900, &|row| (row as f64 / 20.0).sin() * 30.0)),
        ("bits", of(200, &|row| f64::from_bits(noise(row)))),
        (
            "late decimals",
            of(1_100, &|row| if row < 900 { f64::NAN } else { row as f64 }),
        ),
    ]
}

fn encode(scheme: &str, array: &ArrayRef) -> Chunk {
    let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
    encoder.pin(scheme.parse::<Scheme>().unwrap());
    encoder.encode_new(array).unwrap()
}

fn arrays() -> Vec<(String, ArrayRef)> {
    let mut arrays: Vec<(String, ArrayRef)> = Vec::new();
    for (name, values) in columns() {
        let singles = values.iter().map(|value| *value as f32);
        arrays.push((
            format!("{name} f32"),
            Arc::new(Float32Array::from_iter_values(singles)),
        ));
        let holes = values.iter().enumerate();
        let holes = holes.map(|(row, value)| (row % 3 > 0).then_some(*value));
        arrays.push((
            format!("{name} with nulls"),
            Arc::new(holes.collect::<Float64Array>()),
        ));
        arrays.push((name.to_owned(), Arc::new(Float64Array::from(values))));
    }
    arrays
}

fn values_of(chunk: &Chunk) -> Values {
    let mut values = Values::default();
    chunk.gather(
        &Selection::all(chunk.rows()),
        &mut values,
        &mut Work::default(),
    );
    values
}

#[test]
fn comparisons_are_right_at_every_neighbour_of_a_value() {
    for (name, array) in arrays() {
        for scheme in SCHEMES {
            let chunk = encode(scheme, &array);
            chunk.codec().validate(&chunk).unwrap();
            let values = values_of(&chunk);
            let keys: Vec<u64> = (0..values.len())
                .map(|row| float_key(values.float(row)))
                .collect();
            for row in (0..keys.len()).step_by(1 + keys.len() / 12) {
                for low in [
                    keys[row].saturating_sub(1),
                    keys[row],
                    keys[row].saturating_add(1),
                ] {
                    let high = low.saturating_add(noise(row) >> (noise(row + 1) % 64));
                    check_compare(
                        &format!("{name} {scheme}"),
                        &chunk,
                        &keys,
                        &values,
                        low..=high,
                    );
                    check_compare(
                        &format!("{name} {scheme}"),
                        &chunk,
                        &keys,
                        &values,
                        low..=low,
                    );
                }
            }
        }
    }
}

fn check_compare(
    name: &str,
    chunk: &Chunk,
    keys: &[u64],
    values: &Values,
    range: std::ops::RangeInclusive<u64>,
) {
    let predicate = Predicate::key_range(*range.start(), *range.end());
    let (mut found, mut work) = (Selection::default(), Work::default());
    let mut half = Selection::default();
    half.set_rows(keys.len())
        .extend((0..keys.len() as u32).step_by(2));
    let mut half_bits = half.clone();
    half_bits.to_bits();
    for within in [Selection::all(keys.len()), half, half_bits] {
        chunk.compare(&predicate, &within, &mut found, &mut work);
        for (row, key) in keys.iter().enumerate() {
            let passes = range.contains(key) && values.is_valid(row) && within.contains(row);
            assert_eq!(found.contains(row), passes, "{name} {range:?} row {row}");
        }
    }
}

#[test]
fn sums_agree_with_the_values_that_come_back() {
    let sum = Asked {
        sum: true,
        ..Asked::default()
    };
    for (name, array) in arrays() {
        for scheme in SCHEMES {
            let chunk = encode(scheme, &array);
            let values = values_of(&chunk);
            let rows = || (0..values.len()).filter(|row| values.is_valid(*row));
            let mut fold = Fold::default();
            chunk.fold(
                sum,
                &Selection::all(chunk.rows()),
                &mut fold,
                &mut Work::default(),
            );
            let mut plain = Fold::default();
            rows().for_each(|row| plain.float_sum.add(values.float(row)));
            let (got, expected) = (fold.float_sum.total(), plain.float_sum.total());
            assert_eq!(fold.count, rows().count() as u64, "{name} {scheme}");
            let near = (got - expected).abs() <= 1e-9 * expected.abs();
            let near =
                near || got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
            assert!(near, "{name} {scheme}: {got} instead of {expected}");
        }
    }
}

#[test]
fn exact_codecs_return_every_bit() {
    for (name, array) in arrays() {
        let plain = values_of(&encode("plain", &array));
        for scheme in SCHEMES.iter().filter(|scheme| !scheme.contains("0.")) {
            let values = values_of(&encode(scheme, &array));
            for row in (0..plain.len()).filter(|row| plain.is_valid(*row)) {
                assert_eq!(
                    values.keys[row], plain.keys[row],
                    "{name} {scheme} row {row}"
                );
            }
        }
    }
}

#[test]
fn fixed_point_keeps_half_a_scale() {
    for (name, values) in columns() {
        let array: ArrayRef = Arc::new(Float64Array::from(values.clone()));
        for scale in [0.01, 0.3, 1e-7, 1024.0] {
            let chunk = encode(&format!("fixed_point({scale})"), &array);
            let back = values_of(&chunk);
            for (row, value) in values.iter().enumerate() {
                let back = back.float(row);
                let near = (value - back).abs() <= scale / 2.0;
                assert!(
                    near || value.to_bits() == back.to_bits(),
                    "{name} {scale}: {value} {back}"
                );
            }
        }
    }
}

#[test]
fn lossy_codecs_need_a_number() {
    let array: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    for scheme in [
        "zfp",
        "zfp(0)",
        "zfp(-1)",
        "zfp(inf)",
        "fixed_point",
        "fixed_point(NaN)",
    ] {
        let mut encoder = ColumnEncoder::new(&DataType::Float64).unwrap();
        encoder.pin(scheme.parse::<Scheme>().unwrap());
        let error = encoder.encode_new(&array).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{scheme}");
    }
}

#[test]
fn only_decimals_are_chosen_as_decimals_and_lossy_codecs_never() {
    let name = |tier: Tier, value: &dyn Fn(usize) -> f64| {
        let array: ArrayRef = Arc::new(Float64Array::from_iter_values((0..4_000).map(value)));
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        encoder.aim(Goal {
            tier,
            ..Goal::default()
        });
        let chunk = encoder.encode_new(&array).unwrap();
        let lossy = |name| registry::by_name(name).unwrap().is_lossy();
        let mut candidates = chunk.candidates().iter();
        assert!(candidates.all(|candidate| !lossy(candidate.codec.name())));
        chunk.codec().name()
    };
    let price = |row: usize| (noise(row) % 5_000) as f64 / 100.0;
    let measured = |row: usize| (row as f64).sqrt() * 1.000_000_123;
    assert_eq!(name(Tier::Hot, &price), "decimal");
    assert_eq!(name(Tier::Hot, &measured), "plain");
    assert_ne!(name(Tier::Cold, &measured), "decimal");
}
