//! What the conformance suite does not ask of patches.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array};

use super::*;
use crate::encoder::ColumnEncoder;
use crate::predicate::{Comparison, KeyRange};

fn encode(scheme: &str, values: impl Iterator<Item = Option<i32>>) -> Chunk {
    let array: ArrayRef = Arc::new(values.collect::<Int32Array>());
    let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
    encoder.pin(scheme.parse::<crate::scheme::Scheme>().unwrap());
    let chunk = encoder.encode_new(&array).unwrap();
    Patched.validate(&chunk).unwrap();
    let back = chunk.to_arrow(&Selection::all(chunk.rows()), &mut Work::default());
    assert_eq!(&back.unwrap(), &array);
    chunk
}

/// One row in ten anywhere at both ends, inside each codec that takes integers.
#[test]
fn every_inner_codec_agrees_with_decoding() {
    let value = |row: i32| match row % 20 {
        3 => i32::MIN + row % 3,
        14 => i32::MAX - row * 1_000,
        _ => row * 37 % 128,
    };
    let asked = Asked {
        sum: true,
        squares: true,
        ends: true,
    };
    let (mut work, rows) = (Work::default(), 3_000);
    let mut bits = Selection::default();
    bits.set_rows(rows)
        .extend((0..rows as u32).filter(|row| row % 20 == 3 || (900..1_100).contains(row)));
    bits.to_bits();
    for inner in [
        "plain",
        "base_delta",
        "frame_of_reference",
        "run_length",
        "constant",
    ] {
        let chunk = encode(
            &format!("patched({inner})"),
            (0..rows as i32).map(|i| Some(value(i))),
        );
        assert_eq!(chunk.codec_label(), format!("patched({inner})"));
        assert_eq!(View::of(&chunk).unwrap().patches.len(), 300);
        for within in [&Selection::all(rows), &bits] {
            let (mut direct, mut decoded) = (Fold::default(), Fold::default());
            Patched.fold(&chunk, asked, within, &mut direct, &mut work);
            fold_decoded(&Patched, &chunk, asked, within, &mut decoded, &mut work);
            assert_eq!(direct, decoded, "{inner}");
            compare_all(&chunk, within, &mut work);
            fold_ranges(&chunk, within, &mut work);
        }
    }
}

/// Folds of ranges that end at, between and beyond what is inside and what is not, against a fold
/// of one decoded value after the other.
fn fold_ranges(chunk: &Chunk, within: &Selection, work: &mut Work) {
    let mut values = Values::default();
    values.reset(chunk.physical);
    chunk.codec.decode(chunk, 0..chunk.rows, &mut values);
    let view = View::of(chunk).unwrap();
    let (inside, all) = (view.inner.stats, chunk.stats);
    let mut ends = Vec::new();
    for key in [
        all.min,
        inside.min,
        inside.min.midpoint(inside.max),
        inside.max,
        all.max,
    ] {
        ends.extend([key.saturating_sub(1), key, key.saturating_add(1)]);
    }
    let chosen = |low: u64, high: u64, row: usize| {
        (low..=high).contains(&values.keys[row]) && within.contains(row)
    };
    let fused = ["base_delta", "frame_of_reference"].contains(&view.inner.codec.name());
    for bits in 0..8 {
        let asked = Asked {
            sum: bits & 1 > 0,
            squares: bits & 2 > 0,
            ends: bits & 4 > 0,
        };
        for (low, high) in ends
            .iter()
            .flat_map(|low| ends.iter().map(move |high| (*low, *high)))
        {
            let (mut direct, mut expected) = (Fold::default(), Fold::default());
            let predicate = Predicate::Keys(vec![KeyRange { low, high }]);
            if low > high {
                continue;
            }
            let agree = view.holes_agree(&predicate, all);
            assert_eq!(chunk.folds_where(&predicate), fused && agree);
            chunk.fold_where((&predicate, within), asked, &mut direct, work);
            for row in (0..chunk.rows).filter(|row| chosen(low, high, *row)) {
                expected.add_repeats(chunk.physical, values.keys[row], 1, asked);
            }
            assert_eq!(
                direct,
                expected,
                "{} {low}..={high} {asked:?}",
                chunk.codec_label()
            );
        }
    }
}

/// More outliers than a block has rows, at one end and at both, of lanes of four and eight bytes.
#[test]
fn ranges_of_long_chunks_fold_right() {
    let mut work = Work::default();
    let rows = 12_000;
    let mut bits = Selection::default();
    let chosen = |row: &u32| row.is_multiple_of(3) || (2_000..5_000).contains(row) || *row > 11_000;
    bits.set_rows(rows).extend((0..rows as u32).filter(chosen));
    bits.to_bits();
    for (scheme, low) in [
        ("patched(frame_of_reference)", -1_i64 << 60),
        ("patched(frame_of_reference)", 1 << 60),
        ("patched(base_delta)", -1 << 60),
    ] {
        let value = |row: i64| match row % 19 {
            3 => low + row,
            14 => (1 << 50) + row % 5,
            _ => row * 37 % 128 - 40,
        };
        let array: ArrayRef = Arc::new((0..rows as i64).map(value).collect::<Int64Array>());
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        encoder.pin(scheme.parse::<crate::scheme::Scheme>().unwrap());
        let chunk = encoder.encode_new(&array).unwrap();
        assert_eq!(View::of(&chunk).unwrap().patches.len(), 2 * rows / 19);
        let cut = |row| value(row).clamp(-1 << 30, 1 << 30) as i32;
        let narrow = encode(scheme, (0..rows as i64).map(|row| Some(cut(row))));
        assert_eq!(View::of(&narrow).unwrap().patches.len(), 2 * rows / 19);
        for within in [&Selection::all(rows), &bits] {
            fold_ranges(&chunk, within, &mut work);
            fold_ranges(&narrow, within, &mut work);
        }
    }
}

fn compare_all(chunk: &Chunk, within: &Selection, work: &mut Work) {
    let constants = [
        i32::MIN,
        i32::MIN + 1,
        -70,
        0,
        5,
        127,
        190,
        i32::MAX - 14_000,
    ];
    for how in [
        Comparison::Equal,
        Comparison::Less,
        Comparison::GreaterOrEqual,
    ] {
        for constant in constants {
            let predicate = Predicate::compare(chunk.data_type(), how, &constant.into());
            let predicate = predicate.unwrap();
            let (mut found, mut expected) = Default::default();
            Patched.compare(chunk, &predicate, within, &mut found, work);
            compare_decoded(&Patched, chunk, &predicate, within, &mut expected, work);
            found.to_bits();
            expected.to_bits();
            let label = chunk.codec_label();
            assert_eq!(
                found.words(),
                expected.words(),
                "{label} {how:?} {constant}"
            );
        }
    }
}

#[test]
fn selections_of_outliers_alone_fold_right() {
    let value = |row: i32| if row % 11 == 0 { 1_000_000 } else { row % 50 };
    let chunk = encode(
        "patched(frame_of_reference)",
        (0..500).map(|row| Some(value(row))),
    );
    let mut outliers = Selection::default();
    outliers.set_rows(500).extend((0..500).step_by(11));
    outliers.to_bits();
    let ends = Asked {
        ends: true,
        ..Asked::default()
    };
    let mut fold = Fold::default();
    Patched.fold(&chunk, ends, &outliers, &mut fold, &mut Work::default());
    let key = i128::from(chunk.physical.key_of(1_000_000).unwrap());
    assert_eq!((fold.count, fold.min, fold.max), (46, key, key));
}

#[test]
fn nulls_are_no_outliers() {
    let value = |row: i32| (row % 9 > 0).then_some(if row % 31 == 7 { 1 << 30 } else { row % 60 });
    let chunk = encode("patched(frame_of_reference)", (0..2_500).map(value));
    let expected = (0..2_500).filter_map(value).filter(|value| *value > 60);
    assert_eq!(View::of(&chunk).unwrap().patches.len(), expected.count());
    encode("patched", (0..70).map(|_| None));
}

#[test]
fn outliers_move_with_the_others() {
    let values = |row: i32| match row % 20 {
        3 => i32::MIN + row,
        14 => i32::MAX - row,
        _ => row * 37 % 128,
    };
    let (mut work, mut encode_work) = (Work::default(), EncodeWork::default());
    for inner in ["bit_pack", "frame_of_reference", "base_delta"] {
        let kept = |row: i32| (row / 1_024 != 1).then(|| values(row));
        let chunk = encode(&format!("patched({inner})"), (0..5_000).map(kept));
        let mut out = Chunk::default();
        for constant in [1, -1_000_000_000_000] {
            let change = Change::Add(constant);
            let moved = chunk.map(change, &mut out, &mut work, &mut encode_work);
            moved.unwrap();
            Patched.validate(&out).unwrap();
            let sums = (0..5_000).map(|row| kept(row).map(|value| i64::from(value) + constant));
            let expected: ArrayRef = Arc::new(sums.collect::<Int64Array>());
            let back = out.to_arrow(&Selection::all(5_000), &mut Work::default());
            assert_eq!(&back.unwrap(), &expected, "{inner} {constant}");
        }
    }
    assert_eq!(work.tally.decoded, 0);
}
