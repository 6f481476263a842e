//! A retained range while its stream flows: read from other threads, and shortened at a limit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampSecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::event_time::TestClock;
use tersecades_engine::expression::{col, lit};
use tersecades_engine::runtime::{Keep, OnLimit, Retained};
use tersecades_engine::source::table::{MemoryTable, Table};
use tersecades_engine::source::{Rejected, Source};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;
use tersecades_engine::{ErrorKind, Result};

const BATCH: i64 = 100;

/// The numbers from 0, one each millisecond, until it is told to stop.
struct Counting {
    next: i64,
    stop: Arc<AtomicBool>,
    rejected: Rejected,
}

impl Source for Counting {
    fn schema(&self) -> SchemaRef {
        let fields = ["timestamp", "value"].map(|name| Field::new(name, DataType::Int64, false));
        Arc::new(Schema::new(fields.to_vec()))
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.stop.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let numbers = self.next..self.next + BATCH;
        self.next += BATCH;
        let column = |numbers| Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef;
        let columns = vec![column(numbers.clone()), column(numbers)];
        Ok(Some(RecordBatch::try_new(self.schema(), columns)?))
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

fn counting(stop: &Arc<AtomicBool>) -> Stream {
    Stream::from_source(Box::new(Counting {
        next: 0,
        stop: Arc::clone(stop),
        rejected: Rejected::default(),
    }))
}

/// Rows, least and largest value of a retained range, found by a query.
fn extent(retained: &Retained) -> (i64, i64, i64) {
    let stream = Stream::from_retained(retained);
    let value = || col("value");
    let calls = [count(), call("min", value()), call("max", value())];
    let batch = stream
        .aggregate(calls)
        .run()
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let [rows, least, most] =
        [0, 1, 2].map(|column| batch.column(column).as_primitive::<Int64Type>().value(0));
    (rows, least, most)
}

#[test]
fn queries_of_other_threads_see_whole_batches_while_the_stream_flows() {
    let (stop, queries) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
    let mut run = counting(&stop)
        .keep(Keep::Duration(Duration::from_millis(2_500)))
        .window(tumble(Duration::from_secs(1)))
        .aggregate([count()])
        .run()
        .unwrap();
    run.step().unwrap();
    let retained = run.retained().unwrap().clone();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut newest = 0;
                for _ in 0..60 {
                    let (rows, least, most) = extent(&retained);
                    assert_eq!((rows % BATCH, least % BATCH), (0, 0));
                    assert_eq!(most - least + 1, rows, "no batch is missing between them");
                    assert!(rows <= 2_600, "{rows}");
                    assert!(most >= newest, "it does not go back");
                    newest = most;
                    queries.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let mut seen = 0;
        while queries.load(Ordering::SeqCst) < 120 {
            run.step().unwrap();
            while let Some(window) = run.take_result() {
                seen += window.column(2).as_primitive::<Int64Type>().value(0);
            }
        }
        stop.store(true, Ordering::SeqCst);
        while run.step().unwrap() {}
        while let Some(window) = run.take_result() {
            seen += window.column(2).as_primitive::<Int64Type>().value(0);
        }
        assert_eq!(seen, run.metrics().rows as i64);
    });
}

#[test]
fn at_the_limit_a_retained_range_is_refused_or_shortens_itself() {
    let start = |on_limit, limit| {
        counting(&Arc::new(AtomicBool::new(false)))
            .keep(Keep::Duration(Duration::from_secs(1_000_000)))
            .memory_limit(limit)
            .on_limit(on_limit)
            .filter(col("value").lt(0))
            .run()
            .unwrap()
    };
    let mut refusing = start(OnLimit::Refuse, 20_000);
    let error = (0..10_000).find_map(|_| refusing.step().err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    let mut shortening = start(OnLimit::Shorten, 20_000);
    (0..500).for_each(|_| assert!(shortening.step().unwrap()));
    let retained = shortening.retained().unwrap();
    let (rows, least, most) = extent(retained);
    assert!(retained.byte_size() <= 20_000 && rows > 0);
    assert_eq!((most, most - least + 1), (500 * BATCH - 1, rows));
    let dropped = shortening.metrics().shortened_rows;
    assert_eq!(dropped as i64 + rows, 500 * BATCH);
    let mut small = start(OnLimit::Shorten, 10);
    let error = (0..10).find_map(|_| small.step().err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
}

#[test]
fn a_range_that_spills_stays_below_its_limit_and_answers_as_one_in_memory() {
    const LIMIT: usize = 20_000;
    let start = |limit| {
        counting(&Arc::new(AtomicBool::new(false)))
            .keep(Keep::Duration(Duration::from_secs(40)))
            .memory_limit(limit)
            .on_limit(OnLimit::Spill)
            .filter(col("value").lt(0))
            .run()
            .unwrap()
    };
    let (mut spilling, mut in_memory) = (start(LIMIT), start(usize::MAX));
    let windows = |retained: &Retained| {
        let windows = Stream::from_retained(retained).window(tumble(Duration::from_secs(7)));
        let calls = [
            count(),
            call("sum", col("value")),
            call("max", col("value")),
        ];
        let run = windows.aggregate(calls).run().unwrap();
        run.collect::<Result<Vec<RecordBatch>>>().unwrap()
    };
    let mut open = None;
    for step in 0..600 {
        assert!(spilling.step().unwrap() && in_memory.step().unwrap());
        assert!(spilling.state().bytes <= LIMIT, "step {step}");
        if step == 300 {
            // Its first batches are dropped, and their files with them, before it is read.
            open = Some(
                Stream::from_retained(spilling.retained().unwrap())
                    .run()
                    .unwrap(),
            );
        }
    }
    let (spilled, whole) = (spilling.retained().unwrap(), in_memory.retained().unwrap());
    assert!(spilled.byte_size() <= LIMIT && spilled.spilled_bytes() > 0);
    assert_eq!(
        spilled.byte_size() + spilled.spilled_bytes(),
        whole.byte_size()
    );
    assert_eq!(
        spilling.metrics().spilled_bytes as usize,
        spilled.spilled_bytes()
    );
    assert_eq!(
        (whole.spilled_bytes(), spilling.metrics().shortened_rows),
        (0, 0)
    );
    let files = format!("{} bytes in files", spilled.spilled_bytes());
    let lines = spilling.describe();
    assert!(lines.iter().any(|line| line.contains(&files)), "{lines:?}");
    let lines = in_memory.describe();
    assert!(!lines.iter().any(|line| line.contains("in files")));
    assert_eq!(spilled.rows(), whole.rows());
    assert_eq!(extent(spilled), extent(whole));
    assert_eq!(windows(spilled), windows(whole));
    let seen: usize = open.unwrap().map(|rows| rows.unwrap().num_rows()).sum();
    assert_eq!(seen as i64, 301 * BATCH);
    let mut small = start(10);
    let error = (0..10).find_map(|_| small.step().err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
}

/// One row of the far future neither drops what is kept nor keeps what comes behind it for ever.
#[test]
fn a_row_of_the_far_future_does_not_move_the_range() {
    let clock = TestClock::at(Duration::from_secs(1_000));
    let times: Vec<i64> = (0..600)
        .map(|n| if n == 300 { 9_000_000 } else { n })
        .collect();
    let batch = |seconds: &[i64]| {
        let times: ArrayRef = Arc::new(TimestampSecondArray::from(seconds.to_vec()));
        RecordBatch::try_from_iter([("timestamp", times)]).unwrap()
    };
    let batches: Vec<RecordBatch> = times.chunks(10).map(batch).collect();
    let kept = |stream: Stream| {
        let mut run = stream.run().unwrap();
        while run.step().unwrap() {}
        run.retained().unwrap().rows()
    };
    let stream = Stream::from_batches(batches[0].schema(), batches)
        .event_time(col("timestamp"), Duration::ZERO)
        .keep(Keep::Duration(Duration::from_secs(100)));
    let careful = stream
        .clone()
        .clock(clock)
        .future_limit(Duration::from_secs(60));
    assert_eq!(kept(careful), 110);
    // Without a limit time has come there, and everything behind is older than is kept.
    assert_eq!(kept(stream), 10);
}

#[test]
fn a_stream_without_event_time_is_kept_by_bytes_and_by_them_only() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
    let rows = RecordBatch::try_from_iter([("value", numbers)]).unwrap();
    let stream = || Stream::from_batches(rows.schema(), vec![rows.clone(), rows.clone()]);
    let mut run = stream().keep(Keep::Bytes(1 << 20)).run().unwrap();
    while run.step().unwrap() {}
    let retained = run.retained().unwrap();
    assert_eq!(extent(retained), (2_000, 0, 999));
    assert_eq!(
        Stream::from_retained(retained).rows_in_memory(),
        Some(2_000)
    );
    let by_time = stream().keep(Keep::Duration(Duration::from_secs(1)));
    assert!(by_time.run().is_err());
}

/// Batches that were encoded when a dictionary was small are asked about texts that came later.
#[test]
fn batches_of_a_dictionary_that_grew_keep_their_answers() {
    let batch = |first: usize, texts: usize| {
        let text = |row: usize| format!("{:03}", (first + row) * 7919 % 1_000);
        let column: ArrayRef = Arc::new(StringArray::from_iter_values((0..texts).map(text)));
        RecordBatch::try_from_iter([("text", column)]).unwrap()
    };
    let batches = vec![batch(0, 100), batch(100, 500), batch(600, 300)];
    let rows = || Stream::from_batches(batches[0].schema(), batches.clone());
    let mut kept = rows().keep(Keep::Bytes(usize::MAX)).run().unwrap();
    while kept.step().unwrap() {}
    let kept = kept.retained().unwrap().clone();
    for limit in ["050", "500", "777", "999"] {
        let below = |stream: Stream| {
            let run = stream.filter(col("text").lt(limit)).aggregate([count()]);
            let results: Vec<RecordBatch> = run.run().unwrap().map(Result::unwrap).collect();
            results[0].column(0).as_primitive::<Int64Type>().value(0)
        };
        let texts = batches.iter().flat_map(|b| b.column(0).as_string::<i32>());
        let expected = texts.filter(|text| text.unwrap() < limit).count();
        assert_eq!(below(Stream::from_retained(&kept)), expected as i64);
        assert_eq!(below(rows()), expected as i64);
    }
}

/// Count and late rows of each minute.
fn minutes(stream: Stream) -> (Vec<RecordBatch>, u64) {
    let minutes = stream.window(tumble(Duration::from_secs(60)));
    let mut run = minutes.aggregate([count()]).run().unwrap();
    let windows = run.by_ref().collect::<Result<_>>().unwrap();
    (windows, run.metrics().late_rows)
}

/// What `stream` keeps of itself, when it has ended.
fn range_of(stream: Stream) -> Retained {
    let mut run = stream.filter(lit(false)).run().unwrap();
    while run.step().unwrap() {}
    run.retained().unwrap().clone()
}

fn seconds_of(seconds: impl IntoIterator<Item = i64>) -> RecordBatch {
    let times: ArrayRef = Arc::new(TimestampSecondArray::from_iter_values(seconds));
    RecordBatch::try_from_iter([("timestamp", times)]).unwrap()
}

#[test]
fn rows_of_partitions_are_no_later_over_the_range_than_they_were() {
    let table = || -> Arc<dyn Table> {
        let rows = seconds_of(0..300);
        Arc::new(MemoryTable::new(rows.schema(), vec![rows]))
    };
    let stream = Stream::from_partitions(vec![table(), table()]).unwrap();
    let stream = stream.keep(Keep::Bytes(usize::MAX));
    let (windows, late) = minutes(stream.clone());
    assert_eq!((windows.len(), late), (5, 0));
    let retained = range_of(stream.clone());
    let range = Stream::from_retained(&retained);
    assert_eq!(minutes(range.clone()), (windows.clone(), 0));
    // So they are for queries that run together, and in a range of the range.
    let queries = [("both", range.clone())].map(|(name, range)| {
        let windows = range.window(tumble(Duration::from_secs(60)));
        (name, windows.aggregate([count()]))
    });
    let together = range.clone().standing(queries).unwrap();
    let found: Vec<RecordBatch> = together.map(|found| found.unwrap().1).collect();
    assert_eq!(found, windows);
    let again = range_of(range.keep(Keep::Bytes(usize::MAX)));
    assert_eq!(minutes(Stream::from_retained(&again)), (windows, 0));
}

/// What is too far in the future, the clock says at which rows came.
#[test]
fn rows_of_the_far_future_make_no_row_of_the_range_late() {
    let clock = TestClock::at(Duration::from_secs(1_000));
    let far = |row| if row == 150 { 9_000_000 } else { row };
    let batches: Vec<RecordBatch> = (0..30)
        .map(|batch| seconds_of((batch * 10..batch * 10 + 10).map(far)))
        .collect();
    let stream = Stream::from_batches(batches[0].schema(), batches)
        .event_time(col("timestamp"), Duration::ZERO)
        .clock(clock.clone())
        .future_limit(Duration::from_secs(60));
    let expected = minutes(stream.clone());
    assert_eq!((expected.0.len(), expected.1), (6, 0));
    let kept = range_of(stream.clone().keep(Keep::Bytes(usize::MAX)));
    let asked = stream.clone().window(tumble(Duration::from_secs(60)));
    let asked = [("minutes", asked.aggregate([count()]))];
    let some = range_of(stream.keep_for(Keep::Bytes(usize::MAX), asked).unwrap());
    // By then it is no future any more.
    clock.advance(Duration::from_secs(10_000_000));
    assert_eq!(minutes(Stream::from_retained(&kept)), expected);
    let mut run = some.query("minutes").unwrap().run().unwrap();
    let windows: Vec<RecordBatch> = run.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!((windows, run.metrics().late_rows), expected);
}
