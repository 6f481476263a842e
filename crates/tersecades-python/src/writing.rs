//! Results into files, by the engine's sinks.

use std::path::Path;

use pyo3::prelude::*;
use tersecades::engine::sink::{self, SinkOptions, Target};

use crate::error::OrRaise;
use crate::metrics::Metrics;
use crate::running::{Drive, logical};
use crate::stream::Stream;

/// Runs `stream` into `path`, in the named format or the one its suffix names.
pub(crate) fn write(
    py: Python<'_>,
    stream: &Stream,
    path: &Path,
    format: Option<&str>,
) -> PyResult<Metrics> {
    let mut drive = Drive::start(py, stream)?;
    let schema = drive.running().schema();
    let options = SinkOptions {
        threads: drive.running().threads(),
        ..SinkOptions::default()
    };
    let shown = path.display().to_string();
    let sink = match format {
        None => sink::create(path, &schema, &options),
        Some(name) => sink::find_kind(name).and_then(|kind| {
            (kind.create)(Target::File(path.to_path_buf()), &schema, &options)
                .map_err(|error| error.file(&shown))
        }),
    };
    let mut sink = sink.or_raise()?;
    while let Some(batch) = drive.next(py)? {
        let written = py.detach(|| sink.write(&logical(&batch, &schema)?));
        written.map_err(|error| error.file(&shown)).or_raise()?;
    }
    let finished = py.detach(|| sink.finish());
    finished.map_err(|error| error.file(&shown)).or_raise()?;
    Ok(Metrics::of(drive.running()))
}
