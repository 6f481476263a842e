//! Row groups that several threads read, beside one that reads them all.

use super::*;

/// A file of row groups of `rows` rows each.
fn groups_of(batch: &RecordBatch, rows: usize) -> Bytes {
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(130)
        .set_write_batch_size(50)
        .set_max_row_group_row_count(Some(rows))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap().into()
}

/// The batches up to the end or an error, and what was left out.
fn read_by(threads: usize, mut source: ParquetSource) -> (Vec<RecordBatch>, Option<Error>, u64) {
    assert!(source.ahead.is_none());
    let tested = !source.wanted.passing.tests.is_empty();
    let (mut batches, mut error, mut ahead) = (Vec::new(), None, false);
    loop {
        match source.next() {
            Ok(Some(batch)) => batches.push(batch),
            Ok(None) => break,
            Err(found) => assert!(error.replace(found).is_none(), "an error is the last thing"),
        }
        ahead |= source.ahead.is_some();
    }
    // By two threads only once most rows of a group were left out.
    match (tested, threads) {
        (_, 1) => assert!(!ahead),
        (false, _) | (true, 3..) => assert!(ahead),
        _ => {}
    }
    let left_out = source.left_out();
    (batches, error, left_out)
}

/// Options of readers by `threads`; with a test that few rows pass, or without, where one thread
/// more does something else.
fn options_of(
    batch: &RecordBatch,
    tested: bool,
    (threads, batch_rows): (usize, usize),
) -> SourceOptions {
    let mut values = (0..ROWS).filter_map(|row| int(batch, "i32", row));
    let some = values.next().unwrap();
    let equal = Predicate::compare(&DataType::Int32, Comparison::Equal, &some.into()).unwrap();
    let tests = vec![("i32".to_owned(), DataType::Int32, Arc::new(equal))];
    SourceOptions {
        threads: Some(threads + usize::from(!tested)),
        passing: Passing {
            tests: if tested { tests } else { Vec::new() },
            failing: Failing::Nothing,
            of_all: vec!["time".to_owned()],
            ..Passing::default()
        },
        ..options(batch_rows)
    }
}

#[test]
fn all_threads_read_where_little_is_done_with_rows() {
    let batch = batch(&mut Random::new(22), 200, 3, 5);
    let bytes = groups_of(&batch, 300);
    for is_light in [false, true] {
        let mut options = options_of(&batch, true, (2, 64));
        options.passing.tests.clear();
        options.passing.is_light = is_light;
        let mut source = ParquetSource::from_bytes(bytes.clone(), &options).unwrap();
        let mut rows = 0;
        while let Some(batch) = source.next().unwrap() {
            assert_eq!(source.ahead.is_some(), is_light);
            rows += batch.num_rows();
        }
        assert_eq!(rows, ROWS);
    }
}

#[test]
fn batches_come_in_the_order_of_the_file() {
    let batch = batch(&mut Random::new(21), 200, 3, 5);
    let (mut left_out_rows, mut began) = (0, 0);
    for group_rows in [90, 300, 2_400] {
        let bytes = groups_of(&batch, group_rows);
        for (tested, batch_rows) in [(false, 64), (true, 64), (true, 1_000), (false, 1_000)] {
            let read = |threads: usize| {
                let options = options_of(&batch, tested, (threads, batch_rows));
                let source = ParquetSource::from_bytes(bytes.clone(), &options).unwrap();
                read_by(threads, source)
            };
            let (whole, error, left_out) = read(1);
            assert_eq!(error, None);
            if tested && left_out > ROWS as u64 / 4 * 3 {
                let options = options_of(&batch, tested, (2, batch_rows));
                let mut source = ParquetSource::from_bytes(bytes.clone(), &options).unwrap();
                while source.ahead.is_none() && source.next().unwrap().is_some() {}
                began += usize::from(source.ahead.is_some());
            }
            let rows: usize = whole.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(rows as u64 + left_out, ROWS as u64);
            assert!(tested || left_out == 0);
            left_out_rows += left_out;
            for threads in [2, 3, 9] {
                let found = read(threads);
                assert_eq!((&found.0, found.1, found.2), (&whole, None, left_out));
            }
        }
    }
    assert!(left_out_rows > 1_000, "{left_out_rows}");
    assert!(began > 0, "two threads read where few rows are wanted");
}

#[test]
fn what_stands_before_damage_is_given_and_then_the_error() {
    let batch = batch(&mut Random::new(22), 200, 3, 5);
    let mut bytes = groups_of(&batch, 300).to_vec();
    let start = bytes.len() / 2;
    bytes[start..start + 400].fill(0xA7);
    let bytes = Bytes::from(bytes);
    let read = |threads: usize| {
        let options = options_of(&batch, false, (threads, 100));
        read_by(
            threads,
            ParquetSource::from_bytes(bytes.clone(), &options).unwrap(),
        )
    };
    let (whole, error, _) = read(1);
    assert!(!whole.is_empty() && error.is_some());
    for threads in [2, 5] {
        let found = read(threads);
        assert_eq!((&found.0, &found.1), (&whole, &error));
    }
}

#[test]
fn a_reader_that_is_given_up_leaves_no_thread_behind() {
    let batch = batch(&mut Random::new(23), 200, 3, 5);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    std::fs::write(&path, groups_of(&batch, 500)).unwrap();
    for batches in [0, 1, 30] {
        let options = options_of(&batch, true, (4, 10));
        let mut source = ParquetSource::open(&path, &options).unwrap();
        (0..batches).for_each(|_| _ = source.next().unwrap());
        assert_eq!(source.ahead.is_some(), batches > 0);
        let wanted = Arc::clone(&source.wanted);
        drop(source);
        assert_eq!(Arc::strong_count(&wanted), 1, "threads have ended");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_was_replaced_is_not_read_beside_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    std::fs::write(&path, b"old").unwrap();
    let input = Input::File(File::open(&path).unwrap(), Some(path.clone()));
    assert!(input.again().is_some());
    std::fs::write(folder.path().join("new"), b"new").unwrap();
    std::fs::rename(folder.path().join("new"), &path).unwrap();
    assert!(input.again().is_none());
}
