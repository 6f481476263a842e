//! Comparisons over listed rows, whose deltas have one width or several.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};

use super::*;
use crate::codec::compare_decoded;
use crate::encoder::ColumnEncoder;
use crate::registry::by_id;

const ROWS: i64 = 5_000;

fn encode(value: impl Fn(i64) -> i64) -> Chunk {
    let array: ArrayRef = Arc::new((0..ROWS).map(value).collect::<Int64Array>());
    let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
    encoder.pin(by_id(5).unwrap());
    encoder.encode_new(&array).unwrap()
}

#[test]
fn listed_rows_compare_as_decoded_ones() {
    let drift = |row: i64| row / 1_024 * 1_000_000_007;
    let spread = |row: i64, count: i64| row * 7_919 % ROWS * (count / ROWS);
    let chunks = [
        (1, encode(|row| drift(row) + row * 37 % 256)),
        (2, encode(|row| drift(row) + spread(row, 60_000))),
        (4, encode(|row| drift(row) + spread(row, 1 << 31))),
        (8, encode(|row| i64::MIN + spread(row, i64::MAX))),
        (
            0,
            encode(|row| if row < 1_024 { 5 } else { row * row * row }),
        ),
    ];
    let mut work = Work::default();
    for (width, chunk) in &chunks {
        let uniform = View::of(chunk).deltas.uniform_width();
        assert_eq!(
            if [1, 2, 4, 8].contains(&uniform) {
                uniform
            } else {
                0
            },
            *width
        );
        for step in [1, 3, 61, 100, 5_000] {
            let mut listed = Selection::default();
            listed
                .set_rows(chunk.rows)
                .extend((1..ROWS as u32).step_by(step));
            compare_listed(chunk, &listed, &mut work);
        }
    }
}

fn compare_listed(chunk: &Chunk, listed: &Selection, work: &mut Work) {
    let mut keys = Values::default();
    keys.reset(chunk.physical);
    FrameOfReference.decode(chunk, 0..chunk.rows, &mut keys);
    for row in (0..chunk.rows).step_by(311) {
        let key = keys.keys[row];
        for (low, high) in [
            (key, key),
            (0, key),
            (key, u64::MAX),
            (key.saturating_sub(1), key.saturating_add(90)),
        ] {
            let predicate = Predicate::Keys(vec![KeyRange { low, high }]);
            let (mut found, mut expected) = (Selection::default(), Selection::default());
            let codec = &FrameOfReference;
            codec.compare(chunk, &predicate, listed, &mut found, work);
            compare_decoded(codec, chunk, &predicate, listed, &mut expected, work);
            assert_eq!(
                found.list(),
                expected.list(),
                "{} rows, {low}..={high}",
                listed.count()
            );
        }
    }
}
