//! Retained ranges that benches query.

use arrow_array::RecordBatch;
use tersecades_columnar::{Error, Result};
use tersecades_engine::aggregate::count;
use tersecades_engine::runtime::{Keep, Retained, Running};
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
    kept_by(&run_through(stream.aggregate([count()]))?)
}

/// Runs `stream` to its end, without its results.
///
/// # Errors
/// What the engine says.
pub(crate) fn run_through(stream: Stream) -> Result<Running> {
    let mut running = stream.run()?;
    while running.step()? {
        while running.take_result().is_some() {}
    }
    Ok(running)
}

/// What a run of a stream that is kept holds.
///
/// # Errors
/// `Internal` when it is not kept.
pub(crate) fn kept_by(running: &Running) -> Result<Retained> {
    let retained = running.retained().cloned();
    retained.ok_or_else(|| Error::internal("the stream is to be kept"))
}

/// The whole result of a query.
///
/// # Errors
/// What the engine says.
pub(crate) fn answer(stream: Stream) -> Result<Vec<RecordBatch>> {
    stream.run()?.collect()
}
