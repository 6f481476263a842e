//! Where a stream's rows come from: something that can be opened, anew for every run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::Physical;

use crate::plan::{LookupTable, Query};
use crate::runtime::Retained;
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;
use crate::stream::Stream;

use super::memory::MemorySource;
use super::passing::Passing;
use super::{Source, SourceOptions, kind_of};

/// Rows with a schema, to be opened by each query that reads them.
pub trait Table: Send + Sync {
    /// The Arrow schema of its rows.
    fn schema(&self) -> SchemaRef;

    /// Operators that run to make its rows, in order, one line each.
    ///
    /// # Errors
    /// What binding says.
    fn describe(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Refuses a query that would see more than the table holds; `exact` says why it sees every
    /// value it reads as it is, if something besides its steps does.
    ///
    /// # Errors
    /// `Unsupported`, naming the column.
    fn admit(&self, _query: &Query, _exact: Option<&str>) -> Result<()> {
        Ok(())
    }

    /// How many rows there are at most, where all of them are in memory already.
    fn rows_in_memory(&self) -> Option<usize> {
        None
    }

    /// How many rows there are at most, where that is known before they are read.
    fn rows_known(&self) -> Option<usize> {
        self.rows_in_memory()
    }

    /// Whether its rows are known to end, so that an answer may wait for the last of them.
    fn ends(&self) -> bool {
        self.rows_known().is_some()
    }

    /// Whether rows can be such that they are rejected, of which reading fewer columns would miss
    /// some.
    fn may_reject(&self) -> bool {
        true
    }

    /// All its rows to look up in, put together once, where they are in memory and stay as they
    /// are.
    fn lookup_table(&self) -> Option<Arc<LookupTable>> {
        None
    }

    /// The stream whose results its rows are, if they are.
    fn stream(&self) -> Option<&Stream> {
        None
    }

    /// Whether rows may replace earlier ones: results that come more than once.
    fn has_updates(&self) -> bool {
        false
    }

    /// Whether each opening gives the same rows in the same order, from the first on.
    fn begins_again(&self) -> bool {
        true
    }

    /// Its rows, from the first; only `columns` are wanted (all when `None`), and a table that
    /// cannot leave the others out may hand them out as well.
    ///
    /// # Errors
    /// `Io` and `Corrupt` for what cannot be read; `InvalidArgument` when it is read a second time
    /// and cannot be.
    fn open(&self, columns: Option<&[String]>) -> Result<Origin>;

    /// As [`Table::open`], by a run with `options`, for tables that run queries themselves.
    ///
    /// # Errors
    /// As [`Table::open`].
    fn open_with(&self, columns: Option<&[String]>, _options: &RunOptions) -> Result<Origin> {
        self.open(columns)
    }

    /// As [`Table::open_with`], for a query that drops rows unless they pass: what need not be read
    /// for that may be left out.
    ///
    /// # Errors
    /// As [`Table::open`].
    fn open_passing(
        &self,
        columns: Option<&[String]>,
        options: &RunOptions,
        _passing: &Passing,
    ) -> Result<Origin> {
        self.open_with(columns, options)
    }
}

/// A file, read again by every query.
#[derive(Debug)]
pub struct FileTable {
    path: PathBuf,
    options: SourceOptions,
    schema: SchemaRef,
    rows: Option<usize>,
}

impl FileTable {
    /// The file at `path`, its format told by its suffix.
    ///
    /// # Errors
    /// What [`super::open`] says.
    pub fn new(path: impl Into<PathBuf>, options: &SourceOptions) -> Result<Self> {
        let path = path.into();
        let source = super::open(&path, options)?;
        let rows = source
            .rows_hint()
            .and_then(|rows| usize::try_from(rows).ok());
        let schema = source.schema();
        let mut options = options.clone();
        if may_reject(&path, &options) {
            // Text that grows would say something else of its columns when it is opened again.
            options = options.with_types(&schema);
            let names = schema.fields().iter().map(|field| field.name().clone());
            options.columns.get_or_insert_with(|| names.collect());
        }
        Ok(FileTable {
            path,
            options,
            schema,
            rows,
        })
    }

    /// Refuses a file with columns of other types than this one's.
    fn check_types(&self, found: &Schema) -> Result<()> {
        for field in found.fields() {
            let Ok(known) = self.schema.field_with_name(field.name()) else {
                continue;
            };
            let (is, was) = (field.data_type(), known.data_type());
            if is != was {
                let message = format!("a column is {is} in a file where it was {was} before");
                return Err(Error::schema(message)
                    .file(self.path.display().to_string())
                    .column(field.name())
                    .hint("the file was replaced meanwhile: open it anew"));
            }
        }
        Ok(())
    }
}

impl Table for FileTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn rows_known(&self) -> Option<usize> {
        self.rows
    }

    fn ends(&self) -> bool {
        self.path.is_file()
    }

    fn may_reject(&self) -> bool {
        may_reject(&self.path, &self.options)
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_passing(columns, &RunOptions::default(), &Passing::default())
    }

    fn open_passing(
        &self,
        columns: Option<&[String]>,
        run: &RunOptions,
        passing: &Passing,
    ) -> Result<Origin> {
        let mut options = self.options.clone();
        options.threads = options.threads_of(run);
        if let Some(columns) = columns {
            options.columns = Some(columns.to_vec());
        }
        options.passing = passing.clone();
        let source = super::open(&self.path, &options)?;
        self.check_types(&source.schema())?;
        Ok(Origin::Source(source))
    }
}

/// Record batches that are in memory.
#[derive(Debug)]
pub struct MemoryTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    looked_up: OnceLock<Option<Arc<LookupTable>>>,
}

impl MemoryTable {
    /// Rows of `schema`.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        MemoryTable {
            schema,
            batches,
            looked_up: OnceLock::new(),
        }
    }
}

impl Table for MemoryTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        let source = MemorySource::new(Arc::clone(&self.schema), self.batches.clone());
        Ok(Origin::Source(Box::new(source)))
    }

    fn may_reject(&self) -> bool {
        false
    }

    fn rows_in_memory(&self) -> Option<usize> {
        Some(self.batches.iter().map(RecordBatch::num_rows).sum())
    }

    fn lookup_table(&self) -> Option<Arc<LookupTable>> {
        let table = self.looked_up.get_or_init(|| {
            // Batches may hold text as codes that the schema calls text.
            let first = self.batches.first();
            let schema = first.map_or_else(|| Arc::clone(&self.schema), RecordBatch::schema);
            let rows = concat_batches(&schema, &self.batches).ok()?;
            Some(Arc::new(LookupTable::new("table", rows)))
        });
        table.clone()
    }
}

/// Batches that are encoded already.
#[derive(Debug)]
pub struct EncodedTable {
    schema: SchemaRef,
    batches: Vec<Arc<Batch>>,
}

impl EncodedTable {
    /// Rows of `schema`.
    pub fn new(schema: SchemaRef, batches: Vec<Arc<Batch>>) -> Self {
        EncodedTable { schema, batches }
    }
}

impl Table for EncodedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        let batches = self.batches.clone().into_iter();
        Ok(Origin::Encoded(Box::new(batches), Arc::clone(&self.schema)))
    }

    fn may_reject(&self) -> bool {
        false
    }

    fn rows_in_memory(&self) -> Option<usize> {
        Some(self.batches.iter().map(|batch| batch.rows()).sum())
    }
}

impl Table for Retained {
    fn schema(&self) -> SchemaRef {
        Arc::clone(Retained::schema(self))
    }

    fn admit(&self, query: &Query, exact: Option<&str>) -> Result<()> {
        match self.observed() {
            Some(observed) => observed.admit(query, exact),
            None => Ok(()),
        }
    }

    fn begins_again(&self) -> bool {
        false
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        let schema = Arc::clone(Retained::schema(self));
        Ok(Origin::Encoded(self.open_batches(), schema))
    }

    fn may_reject(&self) -> bool {
        false
    }

    fn rows_in_memory(&self) -> Option<usize> {
        Some(self.rows())
    }
}

/// A source that can be read once, as a pipe or a generator that runs.
pub struct OneRun {
    schema: SchemaRef,
    source: Mutex<Option<Box<dyn Source>>>,
}

impl OneRun {
    /// The rows of `source`.
    pub fn new(source: Box<dyn Source>) -> Self {
        OneRun {
            schema: source.schema(),
            source: Mutex::new(Some(source)),
        }
    }
}

impl Table for OneRun {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn begins_again(&self) -> bool {
        false
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        let mut source = self.source.lock().unwrap_or_else(|held| held.into_inner());
        match source.take() {
            Some(source) => Ok(Origin::Source(source)),
            None => Err(Error::invalid("this source was read by an earlier run")
                .hint("keep the stream, or read its rows from a file or memory")),
        }
    }
}

/// Whether rows of the file at `path` may be rejected: of text, which says anything.
pub(super) fn may_reject(path: &Path, options: &SourceOptions) -> bool {
    kind_of(path, options).is_ok_and(|kind| kind.read.is_some())
}

/// The columns of `table` that are read where only the number of rows is wanted, the one that takes
/// least where no row is rejected for the others; all of them for `None`.
pub(crate) fn fewest(table: &dyn Table) -> Option<Vec<String>> {
    if table.may_reject() {
        return None;
    }
    let schema = table.schema();
    let width = |field: &Field| match field.data_type() {
        DataType::Boolean => Some(1),
        other if Physical::of(other).is_ok() => Some(other.primitive_width().unwrap_or(usize::MAX)),
        _ => None,
    };
    let fields = schema.fields().iter();
    let widths = fields.filter_map(|field| Some((width(field)?, field.name())));
    let (_, name) = widths.min_by_key(|(width, _)| *width)?;
    Some(vec![name.clone()])
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};
    use tersecades_columnar::error::ErrorKind;

    use super::*;
    use crate::sink::{self, SinkOptions};

    fn rows() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        RecordBatch::try_from_iter([("number", numbers)]).unwrap()
    }

    fn count(table: &dyn Table) -> Result<usize> {
        match table.open(None)? {
            Origin::Source(mut source) => Ok(source.next()?.map_or(0, |batch| batch.num_rows())),
            Origin::Encoded(batches, _) => Ok(batches.rows_hint().unwrap_or(0) as usize),
        }
    }

    #[test]
    fn memory_is_read_by_any_number_of_runs_and_a_source_by_one() {
        let memory = MemoryTable::new(rows().schema(), vec![rows()]);
        assert_eq!((count(&memory).unwrap(), count(&memory).unwrap()), (3, 3));
        let source = MemorySource::new(rows().schema(), vec![rows()]);
        let once = OneRun::new(Box::new(source));
        assert_eq!(count(&once).unwrap(), 3);
        assert!(count(&once).unwrap_err().hint_text().is_some());
    }

    #[test]
    fn a_file_that_grows_or_is_replaced_keeps_the_types_that_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let read = |table: &FileTable| -> Result<usize> {
            let Origin::Source(mut source) = table.open(None)? else {
                panic!("files are not encoded");
            };
            assert_eq!(source.schema(), table.schema());
            let mut rows = 0;
            while let Some(batch) = source.next()? {
                rows += batch.num_rows();
            }
            Ok(rows)
        };
        for (name, first, fitting, other) in [
            ("a.csv", "n\n1\n", "2\n", "2.5\n"),
            (
                "a.jsonl",
                "{\"n\":1}\n",
                "{\"n\":2,\"m\":3}\n",
                "{\"n\":2.5}\n",
            ),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, first).unwrap();
            let table = FileTable::new(&path, &SourceOptions::default()).unwrap();
            std::fs::write(&path, [first, fitting].concat()).unwrap();
            assert_eq!(read(&table).unwrap(), 2, "{name}");
            std::fs::write(&path, [first, other].concat()).unwrap();
            let error = read(&table).unwrap_err();
            assert!(error.message().contains("`2.5` is a float"), "{error}");
            std::fs::write(&path, "").unwrap();
            assert_eq!(read(&table).unwrap(), 0, "{name}");
        }
        let path = folder.path().join("a.parquet");
        let write = |column: ArrayRef| {
            let rows = RecordBatch::try_from_iter([("number", column)]).unwrap();
            let mut sink = sink::create(&path, &rows.schema(), &SinkOptions::default()).unwrap();
            sink.write(&rows).unwrap();
            sink.finish().unwrap();
        };
        write(Arc::new(Int64Array::from(vec![1])));
        let table = FileTable::new(&path, &SourceOptions::default()).unwrap();
        assert_eq!(read(&table).unwrap(), 1);
        write(Arc::new(arrow_array::Float64Array::from(vec![1.5])));
        let error = read(&table).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
        assert_eq!(error.context().column.as_deref(), Some("number"), "{error}");
    }
}
