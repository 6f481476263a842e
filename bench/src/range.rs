//! Retained ranges that benches query.

use arrow_array::RecordBatch;
use tersecades_columnar::{Error, Result};
use tersecades_engine::aggregate::count;
use tersecades_engine::runtime::{Keep, Retained};
use tersecades_engine::stream::Stream;

/// All of `stream`, kept as it says, by default exact and encoded by choice.
///
/// # Errors
/// What the engine says.
pub(crate) fn retained(stream: Stream) -> Result<Retained> {
    retained_as(stream.keep(Keep::Bytes(usize::MAX)))
}

/// All of `stream`, which says what it keeps.
///
/// # Errors
/// What the engine says.
pub(crate) fn retained_as(stream: Stream) -> Result<Retained> {
    let mut run = stream.aggregate([count()]).run()?;
    while run.step()? {}
    let retained = run.retained().cloned();
    retained.ok_or_else(|| Error::internal("the stream was to be kept"))
}

/// The whole result of a query.
///
/// # Errors
/// What the engine says.
pub(crate) fn answer(stream: Stream) -> Result<Vec<RecordBatch>> {
    stream.run()?.collect()
}
