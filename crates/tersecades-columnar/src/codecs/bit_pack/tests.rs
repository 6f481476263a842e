//! What the conformance suite does not ask of packed bits.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, UInt64Array};

use super::*;
use crate::codec::compare_decoded;
use crate::encoder::ColumnEncoder;
use crate::predicate::{Comparison, KeyRange};
use crate::registry::by_id;

fn encode(array: ArrayRef) -> Chunk {
    let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
    encoder.pin(by_id(9).unwrap());
    encoder.encode_new(&array).unwrap()
}

fn noise(index: u64) -> u64 {
    let bits = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (bits ^ bits >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

#[test]
fn lanes_are_no_wider_than_the_keys_of_their_type() {
    let keys = (0..1_024).map(|row| if row == 7 { 4_000 } else { row % 2 });
    let mut chunk = encode(Arc::new(UInt64Array::from_iter_values(keys)));
    assert_eq!(View::of(&chunk).widths, [12]);
    let packed = View::of(&chunk).packed.len();
    chunk.body.add_section::<u8>(PACKED, packed).fill(0);
    chunk.body.add_section::<u64>(MAXIMA, 1)[0] = 0;
    for (bytes, fits) in [(1, false), (2, true), (8, true)] {
        chunk.physical = Physical::Integer {
            bytes,
            signed: false,
        };
        assert_eq!(BitPack.validate(&chunk).is_ok(), fits, "{bytes} bytes");
    }
}

/// Compares and folds `chunk`, whose keys are `keys`, within rows of both forms.
fn check(chunk: &Chunk, keys: &[u64]) {
    let mut half = Selection::default();
    let odd = (0..keys.len() as u32).filter(|row| noise(u64::from(*row)) % 2 == 1);
    half.set_rows(keys.len()).extend(odd);
    half.to_bits();
    let mut work = Work::default();
    let asked = Asked {
        sum: true,
        squares: true,
        ends: true,
    };
    let middle = keys[keys.len() / 2];
    let inner = KeyRange {
        low: middle.saturating_sub(3),
        high: middle.saturating_add(middle / 2),
    };
    let point = KeyRange {
        low: middle,
        high: middle,
    };
    for within in [Selection::all(keys.len()), half] {
        let (mut direct, mut decoded) = (Fold::default(), Fold::default());
        BitPack.fold(chunk, asked, &within, &mut direct, &mut work);
        fold_decoded(&BitPack, chunk, asked, &within, &mut decoded, &mut work);
        assert_eq!(direct, decoded);
        for ranges in [vec![inner], vec![point], outside(point), vec![]] {
            let predicate = Predicate::Keys(ranges);
            let (mut found, mut expected) = (Selection::default(), Selection::default());
            BitPack.compare(chunk, &predicate, &within, &mut found, &mut work);
            compare_decoded(
                &BitPack,
                chunk,
                &predicate,
                &within,
                &mut expected,
                &mut work,
            );
            found.to_bits();
            assert_eq!(found.words(), expected.words(), "{predicate:?}");
        }
    }
}

/// All keys but those of `range`.
fn outside(range: KeyRange) -> Vec<KeyRange> {
    let below = range
        .low
        .checked_sub(1)
        .map(|high| KeyRange { low: 0, high });
    let above = range.high.checked_add(1);
    let above = above.map(|low| KeyRange {
        low,
        high: u64::MAX,
    });
    below.into_iter().chain(above).collect()
}

#[test]
fn every_width_and_length_answers_as_decoding_does() {
    for width in 0..=64u32 {
        let span = u64::MAX.checked_shr(64 - width).unwrap_or(0);
        for base in [0, 1 << 63, u64::MAX - span, (u64::MAX - span) / 2] {
            for rows in [1usize, 63, 64, 65, 1_023, 1_024, 1_025] {
                let key = |row: u64| {
                    base.wrapping_add(match row % 5 {
                        0 => span,
                        1 => 0,
                        _ => noise(row) & span,
                    })
                };
                let keys: Vec<u64> = (0..rows as u64).map(key).collect();
                let chunk = encode(Arc::new(UInt64Array::from(keys.clone())));
                BitPack.validate(&chunk).unwrap();
                let mut values = Values::default();
                BitPack.decode(&chunk, 0..rows, &mut values);
                assert_eq!(values.keys, keys, "{width} bits");
                check(&chunk, &keys);
            }
        }
    }
}

#[test]
fn blocks_are_as_wide_as_their_valid_range() {
    let value = |row: i64| (row % 3 != 1).then_some(-7 + row / 1_024 * 1_000_000 + row % 8);
    let chunk = encode(Arc::new((0..3_000).map(value).collect::<Int64Array>()));
    let view = View::of(&chunk);
    assert_eq!(view.widths, [3, 3, 3]);
    assert_eq!(view.offsets, [0, 3, 6, 9]);
    assert_eq!(view.packed.len(), 3 * 3 * 128);
}

#[test]
fn blocks_outside_a_range_are_not_read() {
    let chunk = encode(Arc::new(Int64Array::from_iter_values(0..10_240)));
    let predicate = Predicate::compare(chunk.data_type(), Comparison::Less, &1_500.into());
    let (mut found, mut work) = (Selection::default(), Work::default());
    let all = Selection::all(10_240);
    chunk.compare(&predicate.unwrap(), &all, &mut found, &mut work);
    assert_eq!(found.count(), 1_500);
    assert_eq!((work.tally.direct, work.tally.skipped), (1_024, 9 * 1_024));
}

#[test]
fn blocks_are_moved_and_cut_as_they_lie() {
    let array = Int64Array::from_iter(
        (0..5_000).map(|row| (row % 2_000 > 900).then(|| i64::MIN + row * 7_919 % 1_000)),
    );
    let chunk = encode(Arc::new(array.clone()));
    let (mut work, mut encode) = (Work::default(), EncodeWork::default());
    let mut moved = Chunk::default();
    let change = Change::Add(i64::MAX);
    chunk
        .map(change, &mut moved, &mut work, &mut encode)
        .unwrap();
    BitPack.validate(&moved).unwrap();
    for rows in [0..1_024, 1_024..4_096, 4_096..5_000] {
        let mut part = Chunk::default();
        let cut = moved.slice(rows.clone(), &mut part, &mut work, &mut encode);
        cut.unwrap();
        BitPack.validate(&part).unwrap();
        assert_eq!(part.codec().id(), BitPack.id());
        let back = part.to_arrow(&Selection::all(part.rows()), &mut Work::default());
        let sums = array.iter().map(|value| Some(value? + i64::MAX));
        let expected: ArrayRef = Arc::new(Int64Array::from_iter(
            sums.skip(rows.start).take(rows.len()),
        ));
        assert_eq!(&back.unwrap(), &expected, "{rows:?}");
    }
    assert_eq!(work.tally.decoded, 0);
}
