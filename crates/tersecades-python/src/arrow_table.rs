//! Rows from Python's other libraries: tables in memory, readers, iterators of batches.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_array::ffi_stream::ArrowArrayStreamReader;
use arrow_array::{RecordBatch, RecordBatchReader as _};
use arrow_schema::{Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyWeakrefReference};
use tersecades::engine::runtime::ingest::Origin;
use tersecades::engine::source::table::Table;
use tersecades::engine::source::{BATCH_ROWS_DEFAULT, Rejected};
use tersecades::{Error, Result, prelude::Source};

use crate::capsule::{exchange_error, import_batch, import_stream};
use crate::error::{carry, raise};
use crate::turn::call_in_query;

/// Whether `object` hands out Arrow data.
pub(crate) fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")?)
}

/// The schema and the batches of an object that hands out Arrow data.
pub(crate) fn read_batches(object: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let py = object.py();
    if object.hasattr("__arrow_c_stream__")? {
        let reader = import_stream(object)?;
        let schema = reader.schema();
        let batches: std::result::Result<Vec<_>, _> = reader.collect();
        let batches = batches.map_err(|error| exchange_error(py, &error))?;
        return Ok((schema, batches));
    }
    if object.hasattr("__arrow_c_array__")? {
        let batch = import_batch(object)?;
        return Ok((batch.schema(), vec![batch]));
    }
    let class = object.get_type();
    let error = Error::schema(format!("{class} hands out no Arrow data"));
    let hint = "give a pyarrow, Polars or pandas table, or anything else with \
                __arrow_c_stream__ or __arrow_c_array__; lists of batches go to from_batches";
    Err(raise(py, &error.hint(hint)))
}

/// Appends `batch` in pieces of the size that the engine works on.
pub(crate) fn push_pieces(batch: &RecordBatch, pieces: &mut impl Extend<RecordBatch>) {
    let rows = batch.num_rows();
    let starts = (0..rows).step_by(BATCH_ROWS_DEFAULT);
    pieces.extend(starts.map(|start| batch.slice(start, BATCH_ROWS_DEFAULT.min(rows - start))));
}

/// Rows of a reader, pulled from it while the query runs.
pub(crate) struct ReaderSource {
    reader: ArrowArrayStreamReader,
    pending: VecDeque<RecordBatch>,
    rejected: Rejected,
}

impl ReaderSource {
    /// The rows that `reader` has left.
    pub(crate) fn new(reader: ArrowArrayStreamReader) -> Self {
        ReaderSource {
            reader,
            pending: VecDeque::new(),
            rejected: Rejected::default(),
        }
    }
}

impl Source for ReaderSource {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(piece) = self.pending.pop_front() {
                return Ok(Some(piece));
            }
            match self.reader.next() {
                Some(batch) => push_pieces(&batch?, &mut self.pending),
                None => return Ok(None),
            }
        }
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

/// Batches of an iterable of Python; each run iterates anew where that is possible.
pub(crate) struct IterableTable {
    iterable: Py<PyAny>,
    schema: SchemaRef,
    /// What was begun to learn the schema, for the first run.
    begun: Mutex<Option<IteratorSource>>,
    /// Whether the iterable is its own iterator, which cannot begin again.
    once: bool,
}

impl IterableTable {
    /// The batches of `iterable`; without a `schema`, the first batch tells it.
    pub(crate) fn new(iterable: &Bound<'_, PyAny>, schema: Option<Schema>) -> PyResult<Self> {
        let py = iterable.py();
        let iterator = iterable.try_iter()?;
        let once = iterator.is(iterable);
        let mut source = IteratorSource {
            iterator: iterator.unbind(),
            schema: Arc::new(schema.clone().unwrap_or_else(Schema::empty)),
            pending: VecDeque::new(),
            rejected: Rejected::default(),
        };
        if schema.is_none() {
            let Some(item) = source.iterator.bind(py).clone().next() else {
                let error = Error::invalid("there is no batch that could tell the columns");
                return Err(raise(py, &error.hint("give schema=")));
            };
            let (schema, batches) = read_batches(&item?)?;
            source.schema = schema;
            let pieces = &mut source.pending;
            batches.iter().for_each(|batch| push_pieces(batch, pieces));
        }
        Ok(IterableTable {
            iterable: iterable.clone().unbind(),
            schema: Arc::clone(&source.schema),
            begun: Mutex::new(Some(source)),
            once,
        })
    }
}

impl Table for IterableTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn begins_again(&self) -> bool {
        !self.once
    }

    fn may_reject(&self) -> bool {
        false
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        let begun = match self.begun.lock() {
            Ok(mut begun) => begun.take(),
            Err(held) => held.into_inner().take(),
        };
        let has_ended =
            || call_in_query(|py| -> Result<bool> { Ok(has_ended(self.iterable.bind(py))) });
        if self.once && (begun.is_none() || has_ended()?) {
            let error = Error::invalid("this iterator was read by an earlier run");
            return Err(error.hint("give a list, or an object whose __iter__ begins anew"));
        }
        if let Some(source) = begun {
            return Ok(Origin::Source(Box::new(source)));
        }
        call_in_query(|py| {
            let iterator = self.iterable.bind(py).try_iter();
            let iterator = iterator.map_err(|raised| carry(py, raised))?;
            Ok(Origin::Source(Box::new(IteratorSource {
                iterator: iterator.unbind(),
                schema: Arc::clone(&self.schema),
                pending: VecDeque::new(),
                rejected: Rejected::default(),
            })))
        })
    }
}

/// Iterators that were read to their end, as far as they are still there.
static ENDED: Mutex<Vec<Py<PyWeakrefReference>>> = Mutex::new(Vec::new());

fn ended() -> MutexGuard<'static, Vec<Py<PyWeakrefReference>>> {
    ENDED.lock().unwrap_or_else(|held| held.into_inner())
}

/// Notes that `iterator` was read to its end; one without weak references is forgotten.
fn note_end(iterator: &Bound<'_, PyIterator>) {
    let py = iterator.py();
    // Before the lock: making one may collect garbage, which may run what asks for it.
    let noted = PyWeakrefReference::new(iterator).map(Bound::unbind);
    let mut ended = ended();
    ended.retain(|known| known.bind(py).upgrade().is_some());
    ended.extend(noted);
}

/// Whether `object` is an iterator that was read to its end: it would give no row again.
fn has_ended(object: &Bound<'_, PyAny>) -> bool {
    let is_object = |known: Bound<'_, PyAny>| known.is(object);
    let ended = ended();
    let mut known = ended.iter();
    known.any(|known| known.bind(object.py()).upgrade().is_some_and(is_object))
}

/// Batches of an iterator of Python.
struct IteratorSource {
    iterator: Py<PyIterator>,
    schema: SchemaRef,
    pending: VecDeque<RecordBatch>,
    rejected: Rejected,
}

impl IteratorSource {
    /// Asks for one more item; false at the end.
    fn pull(&mut self) -> Result<bool> {
        call_in_query(|py| {
            let item = self.iterator.bind(py).clone().next().transpose();
            let read = item.and_then(|item| item.map(|item| read_batches(&item)).transpose());
            let Some((schema, batches)) = read.map_err(|raised| carry(py, raised))? else {
                note_end(self.iterator.bind(py));
                return Ok(false);
            };
            let types = |schema: &Schema| -> Vec<_> {
                let fields = schema.fields().iter();
                fields
                    .map(|field| (field.name().clone(), field.data_type().clone()))
                    .collect()
            };
            if types(&schema) != types(&self.schema) {
                let error = Error::schema("a batch has other columns than the first one");
                return Err(error.hint("cast the batches to one schema before they are yielded"));
            }
            let pieces = &mut self.pending;
            batches.iter().for_each(|batch| push_pieces(batch, pieces));
            Ok(true)
        })
    }
}

impl Source for IteratorSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(piece) = self.pending.pop_front() {
                return Ok(Some(piece));
            }
            if !self.pull()? {
                return Ok(None);
            }
            if self.pending.is_empty() {
                return Ok(Some(RecordBatch::new_empty(Arc::clone(&self.schema))));
            }
        }
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

/// Whether each batch of `object` can be had only once.
pub(crate) fn is_reader(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(is_arrow(object)? && object.hasattr("__next__")?)
}
