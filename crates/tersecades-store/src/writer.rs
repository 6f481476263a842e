//! Appending rows: checked, encoded once, and acknowledged when they are on the device.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow_cast::CastOptions;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::Tier;
use tersecades_columnar::types::logical_type;
use tersecades_columnar::wire;

use crate::codec_policy::CodecPolicy;
use crate::encode::Encoder;
use crate::schema::{DELETED, StoreSchema};
use crate::store::Store;

/// Rows of one append; larger batches are appended in parts.
const ROWS_MAX: usize = 1 << 20;

/// Appends rows to a store; each thread takes its own.
pub struct Writer<'s> {
    store: &'s Store,
    schema: StoreSchema,
    policy: CodecPolicy,
    encoder: Encoder,
    /// Whether the rows are those of the stream that feeds the store.
    of_feed: bool,
    /// Rows that were written, from which errors count.
    rows: u64,
}

impl<'s> Writer<'s> {
    pub(crate) fn new(store: &'s Store) -> Result<Self> {
        let (schema, policy) = {
            let state = store.commit.lock();
            let catalog = &state.version.catalog;
            (catalog.schema.clone(), catalog.options.codec(0))
        };
        Ok(Writer {
            encoder: Encoder::new(&schema.stored(), policy, Tier::Hot)?,
            store,
            schema,
            policy,
            of_feed: false,
            rows: 0,
        })
    }

    /// The same, for what comes behind the first `rows` of the stream that feeds the store.
    pub(crate) fn of_feed(self, rows: u64) -> Self {
        Writer {
            of_feed: true,
            rows,
            ..self
        }
    }

    /// Appends `rows` and waits until they last; gives the number of rows acknowledged so far.
    ///
    /// Columns are found by name; those that are missing are null, and numbers and times of a type
    /// of which the column's holds every value become such. In a store with a primary key a
    /// row takes the place of the one with its key.
    ///
    /// # Errors
    /// `SchemaMismatch` for rows that do not fit, which are counted from the first that this writer
    /// was given; `LimitExceeded` on a full disk, after which it may be tried again; what the
    /// system says, after which nothing is acknowledged until the store is opened again. What
    /// writing or merging runs says comes with the next append of any writer, or when the store is
    /// closed. None of the rows is stored then, but where the hint says so of those of a batch
    /// beyond a million.
    ///
    /// # Cost
    /// Encoding, one copy to the log, and a share of a sync.
    pub fn append(&mut self, rows: &RecordBatch) -> Result<u64> {
        self.write(rows, false)
    }

    /// Deletes the rows with the keys in `keys`, which has the columns of the primary key.
    ///
    /// # Errors
    /// `InvalidArgument` for a store without a primary key; as [`Writer::append`].
    pub fn delete(&mut self, keys: &RecordBatch) -> Result<u64> {
        if !self.schema.is_primary() {
            return Err(Error::invalid("rows are deleted by their primary key")
                .hint("this store has none: every row counts"));
        }
        self.write(keys, true)
    }

    fn write(&mut self, rows: &RecordBatch, deleted: bool) -> Result<u64> {
        self.follow_schema()?;
        let rows = self.conform(rows, deleted)?;
        if rows.num_rows() == 0 {
            return Ok(self.store.commit.lock().end());
        }
        let upkeep = self.store.commit.lock().upkeep.take();
        upkeep.map_or(Ok(()), Err)?;
        let mut end = 0;
        for start in (0..rows.num_rows()).step_by(ROWS_MAX) {
            let part = rows.slice(start, ROWS_MAX.min(rows.num_rows() - start));
            end = self.write_part(&part).map_err(|error| match start {
                0 => error,
                _ => error.hint(format!(
                    "the first {start} rows of the batch are stored: append those behind them"
                )),
            })?;
            self.rows += part.num_rows() as u64;
        }
        if let Err(error) = self.store.maintain(rows.num_rows()) {
            self.store.commit.lock().upkeep = Some(error);
        }
        Ok(end)
    }

    fn write_part(&mut self, part: &RecordBatch) -> Result<u64> {
        let batch = self.encoder.encode(part)?;
        let mut bytes = Vec::new();
        wire::write_batch(&batch, &mut bytes)?;
        if self.store.failure().is_some() {
            self.store.resume()?;
        }
        let state = match self.of_feed {
            true => self.store.commit.lock(),
            false => self.store.settle_feeds()?,
        };
        let commit = &self.store.commit;
        commit.append(state, (batch, bytes), self.of_feed)
    }

    /// The times of `rows`, as the store would have them; `None` where it has no time.
    ///
    /// # Errors
    /// `SchemaMismatch` for times of another type.
    pub(crate) fn times(&self, rows: &RecordBatch) -> Result<Option<ArrayRef>> {
        let Some(time) = self.schema.time_column() else {
            return Ok(None);
        };
        let field = self.schema.fields().field(time);
        let Some(times) = rows.column_by_name(field.name()) else {
            return Ok(Some(new_null_array(field.data_type(), rows.num_rows())));
        };
        let times = widened(field, times)?;
        self.check(field, &times, true)?;
        Ok(Some(times))
    }

    /// Takes note of columns that were added meanwhile.
    fn follow_schema(&mut self) -> Result<()> {
        let schema = self.store.schema();
        if schema != self.schema {
            self.encoder = Encoder::new(&schema.stored(), self.policy, Tier::Hot)?;
            self.schema = schema;
        }
        Ok(())
    }

    /// `rows` with the columns of the store.
    fn conform(&self, rows: &RecordBatch, deleted: bool) -> Result<RecordBatch> {
        let fields = self.schema.fields();
        for field in rows.schema().fields() {
            if fields.index_of(field.name()).is_err() {
                let error = Error::schema("the store has no such column").column(field.name());
                return Err(error.hint("add it first; `store stats` shows the columns"));
            }
        }
        let count = rows.num_rows();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.fields().len() + 1);
        for (index, field) in fields.fields().iter().enumerate() {
            let is_key = self.schema.key_columns().contains(&index);
            let may_be_null = field.is_nullable() || (deleted && !is_key);
            let column = match rows.column_by_name(field.name()) {
                Some(column) => {
                    let column = widened(field, column)?;
                    self.check(field, &column, may_be_null)?;
                    column
                }
                None if may_be_null || count == 0 => new_null_array(field.data_type(), count),
                None => {
                    let error = Error::schema("the rows lack a column that may not be null");
                    return Err(error.column(field.name()));
                }
            };
            columns.push(match deleted && !field.is_nullable() && !is_key {
                // What a deleted row held is nobody's business.
                true => zeros(field, count)?,
                false => column,
            });
        }
        if self.schema.is_primary() {
            columns.push(Arc::new(BooleanArray::from(vec![deleted; count])));
        }
        with_types(&columns, &self.schema.stored())
    }

    /// Whether `column` can be `field`.
    fn check(&self, field: &Field, column: &ArrayRef, may_be_null: bool) -> Result<()> {
        let name = field.name().as_str();
        if logical_type(column.data_type()) != *field.data_type() {
            let (got, expected) = (column.data_type(), field.data_type());
            return Err(
                Error::schema(format!("expected values of {expected}, got {got}"))
                    .column(name)
                    .hint("CAST it in a query, or make the store with the type that comes"),
            );
        }
        if may_be_null || column.logical_null_count() == 0 {
            return Ok(());
        }
        let nulls = column.logical_nulls();
        let first = nulls.and_then(|nulls| nulls.iter().position(|is_valid| !is_valid));
        Err(Error::schema("a value is null, and the column may not be")
            .row(self.rows + first.unwrap_or(0) as u64 + 1)
            .column(name)
            .hint("leave such rows out, or make the store without NOT NULL"))
    }
}

/// `column`, in the type of `field` where that holds every value of its own.
///
/// # Errors
/// `SchemaMismatch` for a time that the finer unit has no number for.
fn widened(field: &Field, column: &ArrayRef) -> Result<ArrayRef> {
    let (from, to) = (column.data_type(), field.data_type());
    if from == to || !is_widening(from, to) {
        return Ok(Arc::clone(column));
    }
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    arrow_cast::cast_with_options(column, to, &strict).map_err(|_| {
        let message = format!("a value of {from} leaves the range of {to}");
        Error::schema(message).column(field.name().as_str())
    })
}

fn is_widening(from: &DataType, to: &DataType) -> bool {
    let bytes = |it: &DataType| it.primitive_width().unwrap_or(0);
    match (from, to) {
        (DataType::Timestamp(from, zone), DataType::Timestamp(to, other)) => {
            zone == other && from < to
        }
        (DataType::Float32, DataType::Float64) => true,
        _ if from.is_integer() && to.is_integer() => {
            match (from.is_signed_integer(), to.is_signed_integer()) {
                (true, false) => false,
                (false, true) => bytes(from) < bytes(to),
                _ => bytes(from) <= bytes(to),
            }
        }
        _ => false,
    }
}

/// Values that stand where there are none.
fn zeros(field: &Field, rows: usize) -> Result<ArrayRef> {
    let zero = Arc::new(arrow_array::Int64Array::from(vec![0; rows])) as ArrayRef;
    let text = Arc::new(arrow_array::StringArray::from(vec![""; rows])) as ArrayRef;
    let cast = |array: &ArrayRef| arrow_cast::cast(array, field.data_type());
    Ok(cast(&zero).or_else(|_| cast(&text))?)
}

/// A record batch of `columns`, which are those of `fields` or come as dictionaries.
fn with_types(columns: &[ArrayRef], fields: &SchemaRef) -> Result<RecordBatch> {
    let named = fields.fields().iter().zip(columns).map(|(field, column)| {
        let nullable = field.is_nullable() || field.name() == DELETED;
        Field::new(field.name(), column.data_type().clone(), nullable)
    });
    let schema = Arc::new(Schema::new(named.collect::<Vec<_>>()));
    Ok(RecordBatch::try_new(schema, columns.to_vec())?)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::option::StoreOptions;

    #[test]
    fn a_writer_does_not_wait_for_a_run_that_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let fields = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        let schema = StoreSchema::new(&fields).unwrap();
        let store = Store::create(folder.path(), schema, StoreOptions::default()).unwrap();
        let store = Arc::new(store);
        let others = Arc::clone(&store);
        let (begun, begins) = channel();
        // Held while a run is written.
        let upkeep = store.upkeep();
        let thread = std::thread::spawn(move || begun.send(others.writer().map(drop)));
        let writer = begins.recv_timeout(Duration::from_secs(10));
        drop(upkeep);
        assert!(matches!(writer, Ok(Ok(()))), "{writer:?}");
        thread.join().unwrap().unwrap();
    }
}
