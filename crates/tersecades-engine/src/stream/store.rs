//! Streams that are kept in a store, and the rows of a store as streams.

use std::sync::Arc;
use std::time::Duration;

use tersecades_columnar::error::{Error, Result};
use tersecades_store::Store;

use crate::error_bound::bound_lines;
use crate::expression::col;
use crate::runtime::feed::Feed;
use crate::source::live::LiveTable;

use super::Stream;

impl Stream {
    /// What is in `store` when the query starts, then what arrives, as one stream: every row once.
    ///
    /// It ends when the stream that feeds the store does. Event time is the time column of the
    /// store, in order; rows of history are never late.
    ///
    /// # Errors
    /// `Unsupported` for a store with a primary key.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// use tersecades_engine::stream::Stream;
    /// use tersecades_store::{Store, StoreOptions, StoreSchema};
    /// let folder = tempfile::tempdir()?;
    /// let ticks: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
    /// let rows = RecordBatch::try_from_iter([("tick", ticks)])?;
    /// let schema = StoreSchema::new(&rows.schema())?.time("tick")?;
    /// let store = Arc::new(Store::create(folder.path(), schema, StoreOptions::default())?);
    /// let ticks = Stream::from_batches(rows.schema(), vec![rows]);
    /// let feeding = ticks.feed("ticks", &store)?.start()?;
    /// let mut seen = 0;
    /// for batch in Stream::from_store(&store)?.run()? {
    ///     seen += batch?.num_rows();
    /// }
    /// assert_eq!((seen, feeding.finish()?), (1_000, 1_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_store(store: &Arc<Store>) -> Result<Self> {
        let stream = Stream::from_table(LiveTable::new(store)?);
        let schema = store.schema();
        Ok(match schema.time_column() {
            Some(time) => {
                let name = schema.fields().field(time).name();
                stream.event_time(col(name.as_str()), Duration::ZERO)
            }
            None => stream,
        })
    }

    /// Whether each run of it gives the same rows in the same order: not so of pipes, and of
    /// partitions, which take turns.
    pub fn begins_again(&self) -> bool {
        self.table.begins_again()
    }

    /// Keeps the results of this stream in `store`, which knows it as `name`: they are written as
    /// they flow, and a stream that begins again leaves out what is there.
    ///
    /// While it runs nobody else writes to the store.
    ///
    /// # Errors
    /// What binding says; a store without one of its columns refuses the first rows.
    /// `Unsupported` for results that depend on lossy columns, which a store cannot say of them.
    pub fn feed(self, name: impl Into<String>, store: &Arc<Store>) -> Result<Feed> {
        let begins_again = self.begins_again();
        let rows = self.run()?;
        match bound_lines(&rows.schema()).first() {
            None => Ok(Feed::new(name.into(), store, rows, begins_again)),
            Some(bound) => Err(lossy(bound)),
        }
    }
}

fn lossy(bound: &str) -> Error {
    let message = format!("a store would hand out as exact what is not: {bound}");
    Error::unsupported(message)
        .hint("leave out the lossy encoding of the stream, or round its values by a projection")
}
