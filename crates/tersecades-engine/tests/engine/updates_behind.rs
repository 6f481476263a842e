//! Results that come more than once: whole on any number of threads, and never counted again.

#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::error::ErrorKind;
use tersecades_engine::aggregate::count as count_rows;
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Emit, tumble};

/// So many groups in a period that workers' panes are not merged one into the other at once.
#[test]
fn updates_of_many_groups_are_whole_on_any_number_of_threads() {
    const GROUPS: i64 = 150_000;
    let column = |name: &str| Field::new(name, DataType::Int64, false);
    let schema = Arc::new(Schema::new(vec![column("time"), column("group")]));
    let batch = |first: i64| {
        let times = Int64Array::from_iter_values((first..first + 50_000).map(|row| row / 1_000));
        let groups = (first..first + 50_000).map(|row| row * 7_919 % GROUPS);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(Int64Array::from_iter_values(groups)),
        ];
        RecordBatch::try_new(schema.clone(), columns).unwrap()
    };
    let batches: Vec<RecordBatch> = (0..24).map(|index| batch(index * 50_000)).collect();
    for threads in [1, 2, 3] {
        let stream = Stream::from_batches(schema.clone(), batches.clone());
        let run = stream
            .event_time(col("time"), Duration::ZERO)
            .threads(threads)
            .emit(Emit::Every(Duration::from_millis(600)))
            .group_by(["group"])
            .aggregate([count_rows()])
            .run()
            .unwrap();
        let mut last = HashMap::new();
        for batch in run {
            let values = batch.unwrap();
            let column = |index| values.column(index).as_primitive::<Int64Type>().values();
            last.extend(column(0).iter().copied().zip(column(1).iter().copied()));
        }
        assert_eq!(last.len() as i64, GROUPS, "{threads} threads");
        assert!(last.values().all(|rows| *rows == 8), "{threads} threads");
    }
}

/// What replaces earlier results would be counted beside them.
#[test]
fn rows_that_replace_others_are_no_rows_of_a_further_window_or_join() {
    let times = Int64Array::from_iter_values(0..100);
    let batch = RecordBatch::try_from_iter([("time", Arc::new(times) as ArrayRef)]).unwrap();
    let rows = Stream::from_batches(batch.schema(), vec![batch]);
    let rows = rows.event_time(col("time"), Duration::ZERO);
    let ten = Duration::from_millis(10);
    let counted = |emit: Option<Emit>| {
        let window = tumble(ten);
        let window = emit.map_or(window, |emit| window.emit(emit));
        rows.clone()
            .window(window)
            .aggregate([count_rows().alias("n")])
    };
    let summed = |stream: Stream| {
        let timed = stream.event_time(col("window_start"), Duration::ZERO);
        timed.window(tumble(ten * 6)).aggregate([count_rows()])
    };
    let further: [fn(Stream) -> tersecades_engine::Result<Stream>; 4] = [
        |stream| Stream::union([stream.clone(), stream]),
        |stream| stream.as_source(),
        |stream| {
            let on = [("n", "n")];
            stream
                .clone()
                .join(stream, JoinKind::Inner, &on, JoinOptions::default())
        },
        |stream| stream.in_order(),
    ];
    let refused = |found: tersecades_engine::Result<Running>| match found {
        Ok(_) => None,
        Err(error) => Some(error.kind()),
    };
    let unsupported = Some(ErrorKind::Unsupported);
    for further in further {
        let run = |emit| further(counted(emit)).and_then(|stream| summed(stream).run());
        assert_eq!(refused(run(None)), None);
        assert_eq!(refused(run(Some(Emit::Update))), unsupported);
    }
    assert_eq!(
        refused(summed(counted(Some(Emit::Update))).run()),
        unsupported
    );
    // To filter them, or to put them beside others, is to see each by itself.
    let seen = Stream::union([counted(Some(Emit::Update)), counted(Some(Emit::Update))]);
    let seen = seen.unwrap().filter(col("n").gt(0));
    assert_eq!(refused(seen.run()), None);
}
