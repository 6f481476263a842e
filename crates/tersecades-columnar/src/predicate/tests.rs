//! Predicates against values compared one by one.

use super::*;
use crate::dictionary::Dictionary;

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
fn codes_that_pass_follow_a_dictionary_that_grows() {
    let over_a = Predicate::compare(&DataType::Utf8, Comparison::Greater, &"a".into()).unwrap();
    let even: Vec<Value> = (0..400)
        .step_by(2)
        .map(|i| format!("{i}").as_str().into())
        .collect();
    let even = Predicate::one_of(&DataType::Utf8, &even).unwrap();
    let dictionary = Dictionary::new();
    for text in (0..400).map(|i| {
        if i % 20 == 7 {
            format!("b{i}")
        } else {
            i.to_string()
        }
    }) {
        let code = u64::from(dictionary.intern(text.as_bytes()).unwrap());
        if code.is_multiple_of(3) {
            continue;
        }
        for predicate in [&over_a, &even] {
            let passing = predicate.over_codes(&dictionary);
            let reader = dictionary.read();
            for code in 0..=code {
                let passes = predicate.matches_text(reader.get(code as u32));
                assert_eq!(passing.contains(code), passes, "{code}");
                let ranged = passing.ranges().map(|ranges| ranges.matches_key(code));
                assert_eq!(ranged.unwrap_or(passes), passes, "{code}");
            }
            assert!(!passing.contains(code + 1) && !passing.contains(u64::MAX));
        }
    }
    assert!(
        over_a.over_codes(&dictionary).ranges().is_none(),
        "many ranges"
    );
    let other = Dictionary::new();
    other.intern(b"z").unwrap();
    let passing = over_a.over_codes(&other);
    assert!(passing.contains(0) && passing.ranges().is_some());
    assert!(over_a.over_codes(&dictionary).contains(7));
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

#[test]
fn decimals_beside_floats_are_floats() {
    let decimal = DataType::Decimal128(10, 2);
    let float = |digits: i128| digits as f64 / 100.0;
    for constant in (0..2_000)
        .map(float)
        .chain([0.071, -0.07, 1e300, f64::NEG_INFINITY])
    {
        for how in [
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
        ] {
            let expected = |a: f64, b: f64| match how {
                Comparison::Equal => a == b,
                Comparison::NotEqual => a != b,
                Comparison::Less => a < b,
                Comparison::LessOrEqual => a <= b,
                Comparison::Greater => a > b,
                Comparison::GreaterOrEqual => a >= b,
            };
            let predicate = Predicate::compare(&decimal, how, &constant.into()).unwrap();
            let near = (constant * 100.0).clamp(-2_000.0, 2_000.0) as i128;
            for digits in (near - 3..near + 3).chain([-1, 0, 1]) {
                let wanted = expected(float(digits), constant);
                assert_eq!(
                    predicate.matches_wide(digits),
                    wanted,
                    "{digits} {how:?} {constant}"
                );
            }
        }
        let listed = Predicate::one_of(&decimal, &[constant.into()]).unwrap();
        let between = Predicate::between(&decimal, &constant.into(), &constant.into()).unwrap();
        for digits in -1..2_001 {
            let equal = float(digits) == constant;
            assert_eq!(listed.matches_wide(digits), equal, "{digits} in {constant}");
            assert_eq!(
                between.matches_wide(digits),
                equal,
                "{digits} at {constant}"
            );
        }
    }
}
