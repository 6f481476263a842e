//! What time rows have, what is kept of them, and how a stream is run.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tersecades::columnar::batch::Layout;
use tersecades::columnar::goal::Tier;
use tersecades::engine::stream;
use tersecades::prelude::OnLimit;

use crate::clock::TestClock;
use crate::cost::CostTable;
use crate::data_type::NamedUnit;
use crate::duration::{Bytes, Length};
use crate::error::invalid;
use crate::expression::Column;
use crate::lossy::{self, extent};
use crate::number;

use super::{Stream, timed};

/// What `name` stands for among `known`.
fn named<T: Copy>(what: &str, name: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        invalid(format!("there is no {what} `{name}`"), &names.join(" or "))
    })
}

#[pymethods]
impl Stream {
    /// Says what the event time is, and how late rows may come.
    ///
    /// `unit` is that of an integer time: `s`, `ms` (the default), `us` or `ns`. Behind a group-by
    /// it is the time of the groups, where they have such columns; else that of the rows.
    #[pyo3(signature = (time, lateness=None, *, unit=None))]
    fn event_time(
        &self,
        time: Column,
        lateness: Option<Length>,
        unit: Option<NamedUnit>,
    ) -> PyResult<Self> {
        let stream = timed(self.stream.clone(), Some(time), lateness)?;
        Ok(match unit {
            Some(unit) => stream.event_time_unit(unit.0),
            None => stream,
        }
        .into())
    }

    /// Takes the time at which rows arrive, in the column `arrival_time`, as event time; no row
    /// is late.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> stream = tc.from_arrow(pa.table({"n": [1, 2]})).ingestion_time()
    /// >>> windows = stream.clock(tc.TestClock("90s")).window(tc.tumble("1m"))
    /// >>> windows.agg(n=tc.sum("n")).to_pylist()[0]["window_start"]
    /// datetime.datetime(1970, 1, 1, 0, 1)
    fn ingestion_time(&self) -> Self {
        self.change(stream::Stream::ingestion_time)
    }

    /// As `ingestion_time`, and windows close by the clock when nothing arrives.
    fn processing_time(&self) -> Self {
        self.change(stream::Stream::processing_time)
    }

    /// Takes the time from a clock that tests move instead of the system's.
    fn clock(&self, clock: &TestClock) -> Self {
        self.change(|stream| stream.clock(clock.clock.clone()))
    }

    /// Rows further than that ahead of the clock do not move the watermark; else a single row
    /// with a time in the far future makes all rows behind it late.
    fn future_limit(&self, limit: Length) -> Self {
        self.change(|stream| stream.future_limit(limit.0))
    }

    /// A partition that gives nothing for so long (30 seconds unless said) no longer holds the
    /// watermark back.
    fn idle_timeout(&self, timeout: Length) -> Self {
        self.change(|stream| stream.idle_timeout(timeout.0))
    }

    /// Keeps the newest part of the stream, encoded, for `Running.retained()`: a length of event
    /// time, or at most so many bytes. Its rows are those of the source, as they come: what filters
    /// and other steps make of them is not kept.
    #[pyo3(signature = (duration=None, *, bytes=None))]
    fn keep(&self, duration: Option<Length>, bytes: Option<Bytes>) -> PyResult<Self> {
        let keep = extent(duration, bytes)?;
        Ok(self.change(|stream| stream.keep(keep)))
    }

    /// Keeps of the newest part of the stream what `queries` can observe, and no more; each is
    /// made of this stream. `explain()` says what is kept of each column, and why.
    #[pyo3(signature = (queries, duration=None, *, bytes=None))]
    fn keep_for(
        &self,
        queries: &Bound<'_, PyDict>,
        duration: Option<Length>,
        bytes: Option<Bytes>,
    ) -> PyResult<Self> {
        let kept = lossy::keep_for(&self.stream, queries, extent(duration, bytes)?)?;
        Ok(kept.into())
    }

    /// Keeps late rows, for `Table.late` and `Running.take_late()`; else they are only counted.
    ///
    /// They have the columns that the query reads, or all of the stream when `whole`.
    #[pyo3(signature = (*, whole=false))]
    fn keep_late(&self, whole: bool) -> Self {
        self.change(|stream| match whole {
            true => stream.keep_late_whole(),
            false => stream.keep_late(),
        })
    }

    /// Runs on so many worker threads; answers do not depend on it.
    fn threads(&self, #[pyo3(from_py_with = number::size)] threads: usize) -> Self {
        self.change(|stream| stream.threads(threads))
    }

    /// Holds no more than so many bytes of windows and kept rows: `"512MiB"`, `"4GiB"`.
    ///
    /// At the limit a query stops with `LimitExceeded`; with `on_limit="shorten"` it drops the
    /// oldest kept rows first, with `on_limit="spill"` it puts them into temporary files.
    #[pyo3(signature = (bytes, *, on_limit="refuse"))]
    fn memory_limit(&self, bytes: Bytes, on_limit: &str) -> PyResult<Self> {
        let known = [
            ("refuse", OnLimit::Refuse),
            ("shorten", OnLimit::Shorten),
            ("spill", OnLimit::Spill),
        ];
        let on_limit = named("way to meet a limit called", on_limit, &known)?;
        Ok(self.change(|stream| stream.memory_limit(bytes.0).on_limit(on_limit)))
    }

    /// Encodes a column by a scheme such as `"delta(bit_pack)"` instead of a choice, or several:
    /// `encoding({"rtt": "zfp(0.01)"})`.
    ///
    /// What a lossy scheme does to results is in their schema's metadata and in `explain()`.
    #[pyo3(signature = (column, scheme=None))]
    fn encoding(&self, column: &Bound<'_, PyAny>, scheme: Option<String>) -> PyResult<Self> {
        let schemes = lossy::schemes(column, scheme)?;
        let encoded = |stream: stream::Stream, (column, scheme)| stream.encoding(column, scheme);
        Ok(self.change(|stream| schemes.into_iter().fold(stream, encoded)))
    }

    /// Encodes what is kept for `"hot"` use, the default, or for `"cold"`: smaller and slower.
    fn tier(&self, tier: &str) -> PyResult<Self> {
        let tier = named("tier", tier, &[("hot", Tier::Hot), ("cold", Tier::Cold)])?;
        Ok(self.change(|stream| stream.tier(tier)))
    }

    /// Encodes for so many reads of what is kept, at least one, instead of the 32 that are assumed.
    fn reads(&self, times: f64) -> PyResult<Self> {
        if times.is_nan() || times < 1.0 {
            let message = format!("what is kept cannot be read {times} times");
            return Err(invalid(message, "1 or more"));
        }
        Ok(self.change(|stream| stream.reads(times)))
    }

    /// Lays what is kept out by `"column"`, the default, or by `"row"`: not encoded but for text,
    /// for queries that touch whole rows.
    fn layout(&self, layout: &str) -> PyResult<Self> {
        let known = [("column", Layout::Column), ("row", Layout::Row)];
        let layout = named("layout", layout, &known)?;
        Ok(self.change(|stream| stream.layout(layout)))
    }

    /// Chooses codecs by what they cost on this machine instead of by the table that ships.
    fn costs(&self, table: &CostTable) -> Self {
        self.change(|stream| stream.costs(table.table.clone()))
    }
}
