//! Numbers are those of keys one by one, of whatever types and however far apart.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Array, Int64Array,
    StringArray, TimestampMillisecondArray, UInt16Array,
};
use tersecades_testkit::random::Random;

use super::*;

fn values<T>(random: &mut Random, rows: usize, value: impl Fn(&mut Random) -> T) -> Vec<Option<T>> {
    let nulls = *random.pick(&[3, 50, 1_000_000]);
    (0..rows)
        .map(|_| (!random.one_in(nulls)).then(|| value(random)))
        .collect()
}

/// A column of some kind, of values about `centre`, `spread` apart.
fn column(random: &mut Random, kind: usize, rows: usize, (centre, spread): (i64, i64)) -> ArrayRef {
    let near = |random: &mut Random| centre.wrapping_add(random.between(-spread, spread));
    let float = |random: &mut Random| {
        let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY];
        if random.one_in(5) {
            *random.pick(&special)
        } else {
            near(random) as f64
        }
    };
    match kind {
        0 => Arc::new(Int64Array::from(values(random, rows, near))),
        1 => Arc::new(Int32Array::from(values(random, rows, |r| near(r) as i32))),
        2 => Arc::new(UInt16Array::from(values(random, rows, |r| near(r) as u16))),
        3 => Arc::new(TimestampMillisecondArray::from(values(random, rows, near))),
        4 => Arc::new(Float64Array::from(values(random, rows, float))),
        5 => Arc::new(Float32Array::from(values(random, rows, |r| {
            float(r) as f32
        }))),
        6 => Arc::new(BooleanArray::from(values(random, rows, |r| r.one_in(2)))),
        7 => Arc::new(Int8Array::from(values(random, rows, |r| near(r) as i8))),
        8 => {
            let wide = |r: &mut Random| i128::from(near(r)) << r.below(3);
            Arc::new(Decimal128Array::from(values(random, rows, wide)))
        }
        _ => Arc::new(StringArray::from(values(random, rows, |r| {
            near(r).to_string()
        }))),
    }
}

/// Keys of the rows as byte strings.
fn known_keys(keys: &RowKeys, columns: &[ArrayRef]) -> Vec<Vec<u8>> {
    let keys = keys.of(columns).unwrap();
    keys.iter().map(|key| key.data().to_vec()).collect()
}

#[test]
fn numbers_are_those_of_keys_one_by_one() {
    let mut random = Random::new(0x6e75);
    for turn in 0..120 {
        let kinds: Vec<usize> = (0..1 + turn % 4).map(|_| random.below(10)).collect();
        let mut spread = *random.pick(&[3, 900, 1 << 20, i64::MAX / 4]);
        let mut centre = *random.pick(&[0, -7, i64::MAX - 5]);
        let types = kinds
            .iter()
            .map(|kind| column(&mut random, *kind, 0, (0, 1)));
        let types: Vec<DataType> = types.map(|column| column.data_type().clone()).collect();
        let order = RowKeys::unordered(types.clone()).unwrap();
        let mut numbers = KeyNumbers::new(types).unwrap();
        let mut model: HashMap<Vec<u8>, u32> = HashMap::new();
        assert_eq!(numbers.is_words(), !kinds.contains(&9));
        for rows in [0, 1, 40, 3_000, 3_000, 9] {
            let make = |random: &mut Random| -> Vec<ArrayRef> {
                let columns = kinds.iter();
                columns
                    .map(|kind| column(random, *kind, rows, (centre, spread)))
                    .collect()
            };
            let (known, others) = (make(&mut random), make(&mut random));
            let wanted: Vec<u32> = known_keys(&order, &known)
                .into_iter()
                .map(|key| {
                    let next = model.len() as u32;
                    *model.entry(key).or_insert(next)
                })
                .collect();
            assert_eq!(numbers.assign(&known, rows).unwrap(), wanted, "{kinds:?}");
            assert_eq!(numbers.len(), model.len());
            let keys = known_keys(&order, &others).into_iter();
            let wanted: Vec<u32> = keys
                .map(|key| model.get(&key).copied().unwrap_or(ABSENT))
                .collect();
            assert_eq!(numbers.find(&others, rows).unwrap(), wanted, "{kinds:?}");
            // Spans that grow, or move away.
            spread = spread
                .saturating_mul(*random.pick(&[1, 4]))
                .min(i64::MAX / 4);
            centre = centre.wrapping_add(*random.pick(&[0, spread, i64::MAX / 2]));
        }
        let mut sorted: Vec<&Vec<u8>> = model.keys().collect();
        sorted.sort();
        let wanted: Vec<u32> = sorted.into_iter().map(|key| model[key]).collect();
        let found = numbers.sorted(&Interrupt::default());
        assert_eq!(found.unwrap(), wanted, "{kinds:?}");
        let mut out = StateWriter::default();
        numbers.snapshot(&mut out);
        let bytes = out.seal();
        let mut again = KeyNumbers::new(numbers.types.clone()).unwrap();
        again
            .restore(&mut StateReader::open(&bytes).unwrap())
            .unwrap();
        assert_eq!(again.len(), model.len());
        let rows = 500;
        let columns = kinds
            .iter()
            .map(|kind| column(&mut random, *kind, rows, (centre, 9)));
        let columns: Vec<ArrayRef> = columns.collect();
        let found = again.find(&columns, rows).unwrap();
        assert_eq!(found, numbers.find(&columns, rows).unwrap());
    }
}

#[test]
fn many_keys_are_told_apart_by_slots_and_by_cells() {
    let rows = 150_000;
    for (step, base) in [(1, 0), (1 << 40, 9), (7, -1_000_000), (9, i64::MIN)] {
        for columns in 1..=3 {
            let key = |row: i64, at: usize| match at {
                0 => base + row * step,
                at => row % (3 + at as i64),
            };
            let column = |first: i64, at| {
                let values = (first..first + rows).map(|row| key(row, at));
                Arc::new(Int64Array::from_iter_values(values)) as ArrayRef
            };
            let types = vec![DataType::Int64; columns];
            let mut numbers = KeyNumbers::new(types).unwrap();
            for first in [0, rows / 2, 0] {
                let of_rows: Vec<ArrayRef> = (0..columns).map(|at| column(first, at)).collect();
                let wanted: Vec<u32> = (first as u32..(first + rows) as u32).collect();
                assert!(numbers.assign(&of_rows, rows as usize).unwrap() == wanted);
                assert!(numbers.find(&of_rows, rows as usize).unwrap() == wanted);
            }
            let off: Vec<ArrayRef> = (0..columns).map(|at| column(rows * 2, at)).collect();
            let found = numbers.find(&off, rows as usize).unwrap();
            assert!(found.iter().all(|number| *number == ABSENT));
        }
    }
}
