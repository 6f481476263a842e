//! Predicates against values compared one by one.

use super::*;

fn rows(data_type: &DataType, how: Comparison, constant: Value) -> Vec<i128> {
    let physical = Physical::of(data_type).unwrap();
    let predicate = Predicate::compare(data_type, how, &constant).unwrap();
    (-130i128..260)
        .filter(|v| {
            physical
                .key_of(*v)
                .is_some_and(|key| predicate.matches_key(key))
        })
        .collect()
}

#[test]
fn every_comparison_equals_plain_arithmetic() {
    let constants = [
        -200.0, -128.5, -128.0, -0.5, 0.0, 2.5, 100.0, 127.0, 127.5, 255.0, 256.0, 1e30,
    ];
    for data_type in [DataType::Int8, DataType::UInt8] {
        let domain = rows(&data_type, Comparison::LessOrEqual, Value::Float(1e30));
        for constant in constants {
            let expect = |keep: fn(f64, f64) -> bool| -> Vec<i128> {
                domain
                    .iter()
                    .copied()
                    .filter(|v| keep(*v as f64, constant))
                    .collect()
            };
            let got = |how| rows(&data_type, how, Value::Float(constant));
            assert_eq!(got(Comparison::Equal), expect(|v, c| v == c), "{constant}");
            assert_eq!(
                got(Comparison::NotEqual),
                expect(|v, c| v != c),
                "{constant}"
            );
            assert_eq!(got(Comparison::Less), expect(|v, c| v < c), "{constant}");
            assert_eq!(
                got(Comparison::LessOrEqual),
                expect(|v, c| v <= c),
                "{constant}"
            );
            assert_eq!(got(Comparison::Greater), expect(|v, c| v > c), "{constant}");
            assert_eq!(
                got(Comparison::GreaterOrEqual),
                expect(|v, c| v >= c),
                "{constant}"
            );
        }
    }
}

#[test]
fn nan_is_above_every_integer_and_null_matches_nothing() {
    assert_eq!(
        rows(&DataType::Int8, Comparison::Less, f64::NAN.into()).len(),
        256
    );
    assert!(rows(&DataType::Int8, Comparison::GreaterOrEqual, f64::NAN.into()).is_empty());
    assert!(rows(&DataType::Int8, Comparison::NotEqual, Value::Null).is_empty());
}

#[test]
fn texts_are_compared_once_per_distinct_value() {
    let dictionary = Dictionary::new();
    for text in ["b", "a", "c", "d"] {
        dictionary.intern(text.as_bytes()).unwrap();
    }
    let predicate = Predicate::compare(&DataType::Utf8, Comparison::Greater, &"a".into());
    let predicate = predicate.unwrap();
    let codes = predicate.over_codes(&dictionary);
    assert_eq!(
        (0..4)
            .filter(|c| codes.matches_key(*c))
            .collect::<Vec<u64>>(),
        [0, 2, 3]
    );
    dictionary.intern(b"zz").unwrap();
    assert!(predicate.over_codes(&dictionary).matches_key(4));
}

#[test]
fn decimals_compare_at_the_columns_scale() {
    let decimal = DataType::Decimal128(10, 2);
    let predicate = Predicate::compare(
        &decimal,
        Comparison::GreaterOrEqual,
        &Value::Decimal(12345, 3),
    );
    let predicate = predicate.unwrap();
    assert!(predicate.matches_wide(1235) && !predicate.matches_wide(1234));
}
