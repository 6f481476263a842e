//! Rows that are kept come back by their numbers, and take the memory of those that are wanted.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{DictionaryArray, Int32Array, Int64Array, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::error::ErrorKind;
use tersecades_testkit::random::Random;

use super::*;

#[test]
fn ranks_are_those_of_sorted_distinct_rows() {
    let mixed = |count: u32, len: u32| (0..count).map(|row| row * 7919 % len).collect();
    let cases: [(Vec<u32>, usize); 5] = [
        (Vec::new(), 10),
        (vec![0, 0, 3, 9], 10),
        (vec![9, 0, 9, 3], 10),
        (mixed(100, 65_000), 65_000),
        (mixed(60_000, 65_000), 65_000),
    ];
    for (rows, len) in cases {
        let mut distinct = Vec::new();
        let within = rank(&rows, len, &mut distinct);
        let wanted: std::collections::BTreeSet<u32> = rows.iter().copied().collect();
        assert!(distinct.iter().eq(wanted.iter()));
        let found: Vec<u32> = within.iter().map(|at| distinct[*at as usize]).collect();
        assert_eq!(found, rows);
    }
}

#[test]
fn rows_that_wait_hold_no_texts_of_others() {
    let names = StringArray::from_iter_values((0..20_000).map(|row| format!("host-{row:020}")));
    let names: ArrayRef = Arc::new(names);
    let schema = Schema::new(vec![Field::new("host", DataType::Utf8, true)]);
    let mut rows = KeptRows::new(&Arc::new(schema)).unwrap();
    for row in 0..500 {
        let host = DictionaryArray::new(Int32Array::from(vec![row * 40]), Arc::clone(&names));
        let host: ArrayRef = Arc::new(host);
        rows.push(RecordBatch::try_from_iter([("host", host)]).unwrap())
            .unwrap();
    }
    assert!(rows.byte_size() < 100_000, "{} bytes", rows.byte_size());
    let picked = cast(&rows.pick(&[499, 1]).unwrap()[0], &DataType::Utf8);
    let wanted = [19_960, 40].map(|row| format!("host-{row:020}"));
    assert_eq!(*picked.unwrap(), StringArray::from(wanted.to_vec()));
}

/// A row as the model knows it.
type Kept = (Option<i64>, Option<String>);

fn numbers_and_names() -> SchemaRef {
    let number = Field::new("number", DataType::Int64, true);
    let name = Field::new("name", DataType::Utf8, true);
    Arc::new(Schema::new(vec![number, name]))
}

fn batch_of_kept(rows: &[Kept], coded: bool) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.0)));
    let names = rows.iter().map(|row| row.1.as_deref());
    let mut names: ArrayRef = Arc::new(StringArray::from_iter(names));
    if coded {
        names = cast(&names, &crate::source::text_type()).unwrap();
    }
    RecordBatch::try_from_iter([("number", numbers), ("name", names)]).unwrap()
}

fn picked(rows: &KeptRows, numbers: &[u64]) -> Vec<Kept> {
    let columns = rows.pick(numbers).unwrap();
    let names = cast(&columns[1], &DataType::Utf8).unwrap();
    let names = names.as_string::<i32>().iter();
    let numbers = columns[0].as_primitive::<Int64Type>().iter();
    let names = names.map(|name| name.map(str::to_owned));
    numbers.zip(names).collect()
}

/// What a snapshot of `rows` gives back.
fn restored(rows: &mut KeptRows) -> KeptRows {
    let mut out = StateWriter::default();
    rows.snapshot_numbered(&mut out).unwrap();
    let mut back = KeptRows::new(&numbers_and_names()).unwrap();
    let sealed = out.seal();
    let mut from = StateReader::open(&sealed).unwrap();
    back.restore_numbered(&mut from).unwrap();
    back
}

/// Two million rows, of which one in two thousand is wanted.
#[test]
fn few_rows_of_a_long_stream_take_no_memory_of_the_others() {
    let mut rows = KeptRows::new(&numbers_and_names()).unwrap();
    let row_at = |number: u64| -> Kept {
        let name = format!("a name for eight rows: {}", number / 8);
        (Some((number * 7_919 % 1_000_003) as i64), Some(name))
    };
    let (mut wanted, mut first, mut most) = (Vec::new(), 0, 0);
    while rows.next() < 2_000_000 {
        let numbers = rows.next()..rows.next() + 65_536;
        let batch: Vec<Kept> = numbers.clone().map(row_at).collect();
        rows.push(batch_of_kept(&batch, false)).unwrap();
        most = most.max(rows.byte_size());
        if first == 0 {
            first = most;
        }
        for number in numbers {
            match number % 2_000 {
                7 => wanted.push(number),
                _ => rows.release(number),
            }
        }
    }
    assert!(
        most < 5 * first,
        "{first} bytes of 65,536 rows, {most} later"
    );
    let names: Vec<Kept> = wanted.iter().map(|number| row_at(*number)).collect();
    assert_eq!(picked(&rows, &wanted), names);
    rows.repack().unwrap();
    assert_eq!(picked(&rows, &wanted), names);
    assert!(rows.byte_size() < first / 5, "{} bytes", rows.byte_size());
    let mut back = restored(&mut rows);
    assert_eq!(picked(&back, &wanted), names);
    assert!(back.byte_size() < 200_000, "{} bytes", back.byte_size());
    wanted.iter().for_each(|number| back.release(*number));
    assert_eq!((back.byte_size(), back.next()), (0, rows.next()));
}

/// Two thousand batches, of which each leaves one row.
#[test]
fn rows_of_small_batches_are_put_together() {
    let mut rows = KeptRows::new(&numbers_and_names()).unwrap();
    let batch: Vec<Kept> = (0..500).map(|row| (Some(row), None)).collect();
    let batch = batch_of_kept(&batch, false);
    let mut most = 0;
    for _ in 0..2_000 {
        let first = rows.push(batch.clone()).unwrap();
        (first + 1..first + 500).for_each(|row| rows.release(row));
        most = most.max(rows.segments.len());
    }
    assert!(most < 60, "{most} segments");
    let wanted: Vec<u64> = (0..2_000).map(|batch| batch * 500).collect();
    let found = picked(&rows, &wanted);
    assert!(found.iter().all(|row| *row == (Some(0), None)));
}

#[test]
fn texts_of_rows_that_came_and_went_go_too() {
    let mut rows = KeptRows::new(&numbers_and_names()).unwrap();
    let mut most = [0; 2];
    for batch in 0..200 {
        let name = |row| format!("{:0100}", (batch * 5_000 + row) / 2);
        let batch_rows: Vec<Kept> = (0..5_000).map(|row| (None, Some(name(row)))).collect();
        let first = rows.push(batch_of_kept(&batch_rows, true)).unwrap();
        let held = &mut most[usize::from(batch >= 60)];
        *held = rows.byte_size().max(*held);
        (first..first + 5_000).for_each(|row| rows.release(row));
    }
    assert!(most[1] < 2 * most[0], "{most:?} bytes");
}

#[test]
fn rows_come_back_by_number_whatever_is_released_and_put_together() {
    for seed in 0..30 {
        let random = &mut Random::new(seed);
        let mut rows = KeptRows::new(&numbers_and_names()).unwrap();
        let mut known: BTreeMap<u64, Kept> = BTreeMap::new();
        let stays = *random.pick(&[2, 10, 500]);
        for _ in 0..30 {
            let most = *random.pick(&[1, 100, 6_000]);
            let new = (0..random.below(most + 1)).map(|_| {
                let number = (!random.one_in(9)).then(|| random.between(-50, 50_000));
                let name = (!random.one_in(9)).then(|| format!("n{}", random.below(3_000)));
                (number, name)
            });
            let new: Vec<Kept> = new.collect();
            let first = rows.push(batch_of_kept(&new, random.one_in(2))).unwrap();
            known.extend((first..).zip(new));
            known.retain(|number, _| {
                let is_kept = random.one_in(stays) || random.one_in(3);
                if !is_kept {
                    rows.release(*number);
                }
                is_kept
            });
            match random.below(6) {
                0 => rows.repack().unwrap(),
                1 => rows = restored(&mut rows),
                _ => {}
            }
            let mut asked: Vec<u64> = known.keys().copied().collect();
            if random.one_in(2) {
                asked.reverse();
                asked.push(NO_ROW);
            }
            let none = (None, None);
            let wanted = asked.iter().map(|row| known.get(row).unwrap_or(&none));
            let wanted: Vec<Kept> = wanted.cloned().collect();
            assert_eq!(picked(&rows, &asked), wanted, "seed {seed}");
        }
    }
}

#[test]
fn a_released_row_is_not_to_be_had_and_released_but_once() {
    let mut rows = KeptRows::new(&numbers_and_names()).unwrap();
    let batch: Vec<Kept> = (0..10).map(|row| (Some(row), None)).collect();
    rows.push(batch_of_kept(&batch, false)).unwrap();
    for row in [3, 3, 3, 4, 4, 99, NO_ROW] {
        rows.release(row);
    }
    rows.repack().unwrap();
    let error = rows.pick(&[2, 3]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    let left = [0, 1, 2, 5, 6, 7, 8, 9];
    let found = picked(&rows, &left);
    assert!(
        found
            .iter()
            .map(|row| row.0)
            .eq(left.map(|row| Some(row as i64)))
    );
    assert_eq!(rows.push(batch_of_kept(&batch, false)).unwrap(), 10);
}

#[test]
fn a_snapshot_of_rows_out_of_order_is_refused() {
    let runs: [&[(u64, u64)]; 6] = [
        &[(0, 2), (2, 1)],
        &[(5, 2), (4, 1)],
        &[(5, 2), (6, 1)],
        &[(5, 3), (8, 0)],
        &[(18, 3)],
        &[(5, 2)],
    ];
    for (case, runs) in runs.into_iter().enumerate() {
        let mut out = StateWriter::default();
        out.u64(20);
        out.u64(1);
        out.list(runs.iter(), |out, (number, count)| {
            out.u64(*number);
            out.u64(*count);
        });
        let batch: Vec<Kept> = (0..3).map(|row| (Some(row), None)).collect();
        write_rows(&batch_of_kept(&batch, false), &mut out).unwrap();
        let sealed = out.seal();
        let mut from = StateReader::open(&sealed).unwrap();
        let mut rows = KeptRows::new(&numbers_and_names()).unwrap();
        let read = rows.restore_numbered(&mut from);
        let kind = read.err().map(|error| error.kind());
        assert_eq!(kind, (case > 0).then_some(ErrorKind::Corrupt), "{case}");
    }
}
