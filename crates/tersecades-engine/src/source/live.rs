//! A store that is written to, as a table: what is there when a query starts, then what arrives.

use std::sync::{Arc, Weak};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::error::{Error, Result};
use tersecades_store::{Arrival, Arrivals, Bookmark, Scan, Scanned, Store};

use crate::runtime::ingest::{EncodedSource, Origin};
use crate::runtime::option::RunOptions;
use crate::runtime::state::{StateReader, StateWriter};

use super::passing::{Failing, Passing};
use super::table::Table;

/// How long a query waits for rows before it looks whether it may go on.
const WAIT: Duration = Duration::from_millis(20);

/// History and what arrives as one table: each query sees every row once, and ends when the stream
/// that feeds the store does, or the store is closed, which a query that runs does not hinder.
pub struct LiveTable {
    store: Arc<Store>,
    /// Held by this and by each query over it.
    readers: Arc<()>,
}

impl LiveTable {
    /// The rows of `store`, those to come included.
    ///
    /// # Errors
    /// `Unsupported` for a store with a primary key, where rows take the place of others.
    pub fn new(store: &Arc<Store>) -> Result<Self> {
        if store.schema().is_primary() {
            return Err(Error::unsupported(
                "following a store with a primary key: rows that were counted would be replaced",
            )
            .hint(
                "query it as it is, as often as wanted; or keep the stream in a store without a \
                 primary key, follow that, and take the newest row of each key: arg_max(v, ts)",
            ));
        }
        Ok(LiveTable {
            store: Arc::clone(store),
            readers: Arc::default(),
        })
    }

    /// What is there as long as this is, or a query over it.
    pub fn readers(&self) -> Weak<()> {
        Arc::downgrade(&self.readers)
    }
}

impl Table for LiveTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.store.schema().fields())
    }

    fn begins_again(&self) -> bool {
        false
    }

    fn may_reject(&self) -> bool {
        false
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_passing(columns, &RunOptions::default(), &Passing::default())
    }

    fn open_passing(
        &self,
        columns: Option<&[String]>,
        _options: &RunOptions,
        passing: &Passing,
    ) -> Result<Origin> {
        // A column that is added meanwhile is none of this table's.
        let schema = self.store.schema();
        let all = || schema.fields().fields().iter().map(|field| field.name());
        let all: Vec<String> = all().cloned().collect();
        let mut scan = Scan::default().some_columns(&schema, columns.or(Some(&all)));
        if passing.failing == Failing::Nothing {
            scan.passing = passing.predicates();
        }
        let (snapshot, arrivals) = self.store.follow()?;
        let time = snapshot.schema().time_column();
        let history = snapshot.scan(&scan)?;
        let schema = history.schema()?;
        let fields = snapshot.schema().fields();
        let nothing =
            BatchEncoder::new(&schema)?.encode_new(&RecordBatch::new_empty(Arc::clone(&schema)))?;
        let live = LiveSource {
            store: Some(Arc::clone(&self.store)),
            time: time.map(|time| fields.field(time).name().clone()),
            history: Some(history),
            arrivals,
            nothing: Arc::new(nothing),
            _reader: Arc::clone(&self.readers),
        };
        Ok(Origin::Encoded(Box::new(live), schema))
    }
}

struct LiveSource {
    /// Until rows are read: a run that begins may go on where another has stopped.
    store: Option<Arc<Store>>,
    /// Column by whose order history is read.
    time: Option<String>,
    /// `None` when it was read.
    history: Option<Scanned>,
    arrivals: Arrivals,
    /// A batch without rows.
    nothing: Arc<Batch>,
    _reader: Arc<()>,
}

impl LiveSource {
    /// The columns of `batch` that are read.
    fn cut(&self, batch: Arc<Batch>) -> Result<Arc<Batch>> {
        let schema = self.nothing.schema();
        if batch.schema() == schema {
            return Ok(batch);
        }
        let columns = schema.fields().iter().map(|field| {
            let index = batch.schema().index_of(field.name())?;
            Ok(batch.column(index).clone())
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(Arc::new(Batch::new(Arc::clone(schema), columns)?))
    }
}

impl EncodedSource for LiveSource {
    fn next_batch(&mut self) -> Result<Option<Arc<Batch>>> {
        self.store = None;
        if let Some(history) = &mut self.history {
            if let Some(found) = history.next() {
                return found?.into_batch().map(Some);
            }
            self.history = None;
        }
        match self.arrivals.next(WAIT)? {
            Arrival::Rows(batch) => self.cut(batch).map(Some),
            Arrival::Nothing => Ok(Some(Arc::clone(&self.nothing))),
            Arrival::End => Ok(None),
        }
    }

    fn rows_hint(&self) -> Option<u64> {
        None
    }

    fn oldest_to_come(&self, time: Option<&str>) -> Option<i64> {
        let history = self.history.as_ref()?;
        Some(match self.time.as_deref() == time {
            true => history.oldest_to_come(),
            false => i64::MIN,
        })
    }

    fn goes_on(&self) -> bool {
        true
    }

    fn reads_history(&self) -> bool {
        self.history.is_some()
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        out.blob(&self.arrivals.bookmark()?.to_bytes());
        Ok(())
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let bookmark = Bookmark::from_bytes(from.blob()?)?;
        self.history = None;
        let running = || Error::internal("rows of the store were read before a snapshot was");
        let store = self.store.take().ok_or_else(running)?;
        self.arrivals = store.follow_from(&bookmark)?;
        Ok(())
    }
}
