//! Rows come out by time and number, whatever order and batches they came in.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};

use super::*;
use crate::operator::join::side::bind_keys;

/// The keys of rows of texts, or of codes of them; null equals nothing.
fn keyed(keys: &[Option<String>], coded: bool) -> Keyed {
    let texts = keys.iter().map(Option::as_deref);
    let column: ArrayRef = match coded {
        true => Arc::new(texts.collect::<DictionaryArray<Int32Type>>()),
        false => Arc::new(texts.collect::<StringArray>()),
    };
    let batch = RecordBatch::try_from_iter_with_nullable([("k", column, true)]).unwrap();
    let on = [(String::from("k"), String::from("k"))];
    let (side, _) = bind_keys((&batch.schema(), &batch.schema()), &on, false).unwrap();
    side.of(&batch).unwrap()
}

#[test]
fn rows_come_out_by_time_and_number_with_their_keys() {
    let (mut waiting, mut model) = (Waiting::default(), BTreeMap::new());
    let (mut state, mut row) = (7u64, 0);
    let mut below = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % bound
    };
    for turn in 0..600 {
        // Numbers that far more rows lie between than halves of them tell apart.
        row += if turn % 50 == 49 { 5 << 32 } else { 0 };
        // Few rows and many, near the newest time and far behind it.
        let count = below([2, 40, 900][turn as usize % 3]) as usize;
        let texts = (0..count).map(|_| (below(9) > 0).then(|| format!("key {}", below(50))));
        let texts: Vec<Option<String>> = texts.collect();
        let keys = keyed(&texts, turn % 2 == 0);
        let (first, mut rows) = (row, Vec::new());
        for (index, text) in texts.iter().enumerate() {
            let behind = if below(50) == 0 { 2_000 } else { 30 };
            let place = (turn * 10 - below(behind) as i64, row);
            row += 1;
            // Late rows are left out.
            if below(20) > 0 {
                let key = keys.key(index).map(<[u8]>::to_vec);
                assert_eq!(key.is_some(), text.is_some());
                model.insert(place, key);
                rows.push((place.0, index as u32));
            }
        }
        waiting.add((first, count), rows, &keys);
        if turn % 100 == 50 {
            let mut out = StateWriter::default();
            waiting.snapshot(&mut out);
            let bytes = out.seal();
            waiting = Waiting::default();
            let from = &mut StateReader::open(&bytes).unwrap();
            waiting.restore(from).unwrap();
        }
        for _ in 0..below(600) {
            let first = model.pop_first();
            let wanted = first
                .as_ref()
                .map(|((time, _), key)| (*time, key.as_deref()));
            assert_eq!(waiting.first(), wanted);
            assert_eq!(waiting.pop(), first.map(|((_, row), _)| row));
        }
    }
    while let Some(((time, row), key)) = model.pop_first() {
        assert_eq!(waiting.first(), Some((time, key.as_deref())));
        assert_eq!(waiting.pop(), Some(row));
    }
    assert!(waiting.first().is_none() && waiting.pop().is_none());
}
