//! `global`: no windows; one result at the end of the stream.

use super::{Boundaries, Shape, Span, Window, WindowKind};

/// What users see of the kind.
pub const KIND: WindowKind = WindowKind {
    name: "global",
    arguments: "",
    summary: "the whole stream: one result at its end, no event time needed",
};

/// The whole stream, whose groups come out at its end, without window columns.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use tersecades_engine::aggregate::{call, count};
/// use tersecades_engine::{expression::col, stream::Stream};
/// let key: ArrayRef = Arc::new(Int64Array::from(vec![2, 1, 2]));
/// let rows = RecordBatch::try_from_iter([("key", key)]).unwrap();
/// let groups: Vec<RecordBatch> = Stream::from_batches(rows.schema(), vec![rows])
///     .group_by(["key"])
///     .aggregate([count()])
///     .run().unwrap()
///     .collect::<Result<_, _>>().unwrap();
/// let expected: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
/// assert_eq!(groups[0].column(0), &expected); // keys 1 and 2 ...
/// assert_eq!(groups[0].column(1), &expected); // ... with as many rows
/// ```
pub fn global() -> Window {
    Shape::Global.into()
}

/// All of time as one window, which never ends.
#[derive(Debug)]
pub struct Forever;

const ALWAYS: Span = Span {
    start: i128::MIN,
    end: i128::MAX,
};

impl Boundaries for Forever {
    fn pane(&self, _: i64) -> Span {
        ALWAYS
    }

    fn ending_after(&self, _: i64) -> Span {
        ALWAYS
    }

    fn last_end(&self, _: i64) -> i128 {
        ALWAYS.start
    }
}
