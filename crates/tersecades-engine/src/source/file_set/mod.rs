//! Many files as one table: those of a folder or a glob, in the order of their paths.
//!
//! ```text
//! probes/day=2024-05-01/a.parquet   rows of the file, and day = 2024-05-01 in each
//! probes/day=2024-05-02/b.parquet
//! ```
//! The first file gives the columns and their types, but for text without rows, whose types the
//! first file with rows gives; text in later files is read as those types.
//! A file that has other columns is an error that names both; a later row of JSON that has other
//! keys is a bad row. Batches never span two files. A column is as lossy as it is in any file.

mod find;
mod partition;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;

pub(super) use self::find::find_files;
use self::partition::{Partitions, repeat};
use super::location::is_read_once;
use super::passing::Passing;
use super::table::{self, Table};
use super::{Rejected, Source, SourceOptions, kind_of, open};
use crate::error_bound::{ROWS_DEPEND_ON, of_any};
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;

/// Files of one schema, read one after the other by every query.
#[derive(Debug, Clone)]
pub struct FilesTable {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    files: Vec<PathBuf>,
    options: SourceOptions,
    /// Columns of the first file.
    file_schema: SchemaRef,
    partitions: Partitions,
    /// Columns of the files that no path overrules, then those of the paths.
    schema: SchemaRef,
}

impl FilesTable {
    /// The files of the folder `path`, or those that match the glob `path`: `*` and `?` within a
    /// name, `[a-z]`, and `**` for any folders. Hidden ones, and in folders those whose names
    /// start with `_`, are left out.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong pattern, when nothing matches, or when a folder holds several
    /// formats; what opening the first file says; `SchemaMismatch` when paths differ in their keys.
    pub fn new(path: impl AsRef<Path>, options: &SourceOptions) -> Result<Self> {
        let files = find_files(path.as_ref(), options)?;
        Self::from_files(files, options)
    }

    /// The given files, in the given order.
    ///
    /// # Errors
    /// As [`Self::new`]; `InvalidArgument` for pipes, which each query would find used up.
    pub fn from_files(files: Vec<PathBuf>, options: &SourceOptions) -> Result<Self> {
        let filled = files.iter().position(|path| !is_empty_text(path, options));
        let filled = filled.unwrap_or_default();
        let first = files
            .get(filled)
            .ok_or_else(|| Error::invalid("there are no files").hint("name one or more"))?;
        if let Some(pipe) = files.iter().find(|path| is_read_once(path)) {
            return Err(Error::invalid("it can be read once only, as a pipe is")
                .file(pipe.display().to_string())
                .hint("read it by itself: files that are one table are opened more than once"));
        }
        let whole = SourceOptions {
            columns: None,
            ..options.clone()
        };
        let columns = with_types(open(first, &whole)?.schema(), &files[filled..], &whole);
        let file_schema = with_marks(columns, &files, &whole);
        let partitions = Partitions::new(&files)?;
        let own = file_schema.fields().iter();
        let own = own.filter(|field| partitions.position(field.name()).is_none());
        let fields: Vec<Arc<Field>> = own.chain(partitions.fields()).cloned().collect();
        let rows = file_schema.metadata().get_key_value(ROWS_DEPEND_ON);
        let rows = rows.map(|(key, columns)| (key.clone(), columns.clone()));
        let schema = Arc::new(Schema::new_with_metadata(
            fields,
            rows.into_iter().collect(),
        ));
        let schema = Arc::new(schema.project(&options.project(&schema)?)?);
        Ok(FilesTable {
            inner: Arc::new(Inner {
                options: whole.with_types(&file_schema),
                files,
                file_schema,
                partitions,
                schema,
            }),
        })
    }

    /// The files, in the order in which they are read.
    pub fn files(&self) -> &[PathBuf] {
        &self.inner.files
    }

    /// The rows of all files, with `columns` alone (all when `None`).
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns.
    pub fn source(&self, columns: Option<&[String]>) -> Result<FilesSource> {
        self.source_of(0..self.inner.files.len(), columns)
    }

    /// The rows of one file, by its place in [`Self::files`]: a partition of the table.
    ///
    /// # Errors
    /// As [`Self::source`]; `InvalidArgument` when there is no such file.
    pub fn file_source(&self, file: usize, columns: Option<&[String]>) -> Result<FilesSource> {
        match file < self.inner.files.len() {
            true => self.source_of(file..file + 1, columns),
            false => Err(Error::invalid(format!("there is no file number {file}"))
                .hint(format!("the table has {} files", self.inner.files.len()))),
        }
    }

    fn source_of(
        &self,
        files: std::ops::Range<usize>,
        columns: Option<&[String]>,
    ) -> Result<FilesSource> {
        let inner = &self.inner;
        let wanted = SourceOptions {
            columns: columns.map(<[String]>::to_vec),
            ..SourceOptions::default()
        };
        let schema = Arc::new(inner.schema.project(&wanted.project(&inner.schema)?)?);
        let names = schema.fields().iter().map(|field| field.name());
        let mut file_columns: Vec<String> = names
            .filter(|name| inner.partitions.position(name).is_none())
            .cloned()
            .collect();
        if file_columns.is_empty() {
            // Rows without columns have no number in most formats.
            file_columns.extend(
                inner
                    .file_schema
                    .fields()
                    .first()
                    .map(|it| it.name().clone()),
            );
        }
        Ok(FilesSource {
            inner: Arc::clone(inner),
            schema,
            file_columns,
            waiting: files,
            passing: Passing::default(),
            threads: inner.options.threads,
            current: None,
            rejected: Rejected::default(),
            left_out: 0,
        })
    }
}

/// Whether a file of text has no byte, so that it has no columns either.
fn is_empty_text(path: &Path, options: &SourceOptions) -> bool {
    let is_empty = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0);
    is_empty && table::may_reject(path, options)
}

/// `schema`, that of the first of `files`; where these begin with text without rows, which says
/// nothing of types, under the types of the first file that has some.
fn with_types(schema: SchemaRef, files: &[PathBuf], options: &SourceOptions) -> SchemaRef {
    let one_row = SourceOptions {
        batch_rows: 1,
        threads: Some(1),
        ..options.clone()
    };
    let is_blank = |path: &&PathBuf| {
        let rows = || open(path, &one_row)?.next();
        table::may_reject(path, options) && rows().is_ok_and(|rows| rows.is_none())
    };
    let blank = files.iter().take_while(is_blank).count();
    let typed = match files.get(blank) {
        Some(path) if blank > 0 => open(path, options).map(|source| source.schema()),
        _ => return schema,
    };
    // A file that cannot be opened says why when it is read.
    let Ok(typed) = typed else {
        return schema;
    };
    let fields = schema.fields().iter().map(|field| {
        let found = typed.field_with_name(field.name()).ok();
        let data_type = found.unwrap_or(field).data_type();
        field.as_ref().clone().with_data_type(data_type.clone())
    });
    let fields: Vec<Field> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// `schema`, that of the first of `files`, whose metadata says how lossy columns are in any of
/// them; text says nothing of that, and a file that cannot be opened says why when it is read.
fn with_marks(schema: SchemaRef, files: &[PathBuf], options: &SourceOptions) -> SchemaRef {
    let others = files.iter().skip(1);
    let others = others.filter(|path| !table::may_reject(path, options));
    others.fold(schema, |schema, path| match open(path, options) {
        Ok(other) => of_any(&schema, &[other.schema()]),
        Err(_) => schema,
    })
}

impl Table for FilesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.inner.schema)
    }

    fn ends(&self) -> bool {
        true
    }

    fn may_reject(&self) -> bool {
        let mut files = self.inner.files.iter();
        files.any(|file| table::may_reject(file, &self.inner.options))
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        Ok(Origin::Source(Box::new(self.source(columns)?)))
    }

    fn open_passing(
        &self,
        columns: Option<&[String]>,
        run: &RunOptions,
        passing: &Passing,
    ) -> Result<Origin> {
        let mut source = self.source(columns)?;
        source.passing = passing.clone();
        source.threads = self.inner.options.threads_of(run);
        Ok(Origin::Source(Box::new(source)))
    }
}

/// The rows of a [`FilesTable`].
pub struct FilesSource {
    inner: Arc<Inner>,
    schema: SchemaRef,
    /// What is read of each file.
    file_columns: Vec<String>,
    waiting: std::ops::Range<usize>,
    passing: Passing,
    threads: Option<usize>,
    current: Option<OpenFile>,
    rejected: Rejected,
    /// Of the files before the current one.
    left_out: u64,
}

/// A file that is being read.
struct OpenFile {
    place: usize,
    source: Box<dyn Source>,
    /// For each column of the result, where it comes from.
    layout: Vec<Column>,
    /// Bad rows and kept originals of it that are counted already.
    counted: (u64, usize),
}

enum Column {
    /// A column of the file.
    File(usize),
    /// A value of its path, as an array of one.
    Path(ArrayRef),
}

impl FilesSource {
    /// Place in [`FilesTable::files`] of the file that the last batch came from.
    pub fn file(&self) -> Option<usize> {
        self.current.as_ref().map(|current| current.place)
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(current) = &mut self.current else {
                match self.waiting.next() {
                    Some(place) => self.current = Some(self.open_file(place)?),
                    None => return Ok(None),
                }
                continue;
            };
            let next = current.source.next();
            let file = self.inner.files.get(current.place);
            let file = file
                .map(|path| path.display().to_string())
                .unwrap_or_default();
            let found = current.source.rejected();
            let policy = self.inner.options.policy();
            self.rejected
                .absorb(found, &mut current.counted, policy, &file)?;
            match next? {
                Some(batch) => {
                    let arrays = arrange(&current.layout, &batch, &self.schema)?;
                    let sized = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                    let schema = Arc::clone(&self.schema);
                    return Ok(Some(RecordBatch::try_new_with_options(
                        schema, arrays, &sized,
                    )?));
                }
                None => {
                    self.left_out += current.source.left_out();
                    self.current = None;
                }
            }
        }
    }

    fn open_file(&self, place: usize) -> Result<OpenFile> {
        let inner = &self.inner;
        let path = inner
            .files
            .get(place)
            .ok_or_else(|| Error::internal("no such file"))?;
        let in_file = |error: Error| error.file(path.display().to_string());
        let mut options = inner.options.clone();
        options.columns = Some(self.file_columns.clone());
        let is_overruled = |column: &str| inner.partitions.position(column).is_some();
        options.passing = self.passing.without(is_overruled);
        options.threads = self.threads;
        if place > 0 {
            self.check_columns(path).map_err(in_file)?;
            // The types are given; keys of JSON that only this file has would be known by its rows.
            options.csv.infer_rows = 0;
        }
        let source = open(path, &options)?;
        let found = source.schema();
        let column = |field: &Arc<Field>| match inner.partitions.position(field.name()) {
            Some(key) => Ok(Column::Path(inner.partitions.value(place, key)?)),
            None => found.index_of(field.name()).map(Column::File).map_err(|_| {
                in_file(Error::schema("a column of the first file is missing").column(field.name()))
            }),
        };
        let layout = self.schema.fields().iter().map(column);
        Ok(OpenFile {
            place,
            layout: layout.collect::<Result<_>>()?,
            source,
            counted: (0, 0),
        })
    }

    /// Refuses a file whose columns are not those of the first one.
    fn check_columns(&self, path: &Path) -> Result<()> {
        let inner = &self.inner;
        let mut options = inner.options.clone();
        options.csv.infer_rows = 1;
        let found = open(path, &options)?.schema();
        let first = inner.files.first().map(|path| path.display().to_string());
        let first = first.unwrap_or_default();
        let hint = format!("all files have the columns of {first}; name the files that do");
        for field in found.fields() {
            let wrong = match inner.file_schema.field_with_name(field.name()) {
                Err(_) => "is not in the first file".to_owned(),
                Ok(wanted) if !are_alike(wanted.data_type(), field.data_type()) => format!(
                    "is {} here and {} in the first file",
                    field.data_type(),
                    wanted.data_type()
                ),
                Ok(_) => continue,
            };
            let message = format!("column `{}` {wrong}", field.name());
            return Err(Error::schema(message).column(field.name()).hint(hint));
        }
        let names = inner.file_schema.fields().iter().map(|field| field.name());
        let mut missing = names.filter(|name| found.field_with_name(name).is_err());
        match missing.next() {
            None => Ok(()),
            Some(name) => Err(Error::schema(format!("column `{name}` is missing"))
                .column(name)
                .hint(hint)),
        }
    }
}

/// Whether values of the types are the same, as all text is.
fn are_alike(one: &DataType, other: &DataType) -> bool {
    one == other || is_text(one) && is_text(other)
}

fn is_text(data_type: &DataType) -> bool {
    *data_type != DataType::Null && logical_type(data_type) == DataType::Utf8
}

/// The columns of the result: those of `batch`, text as `schema` has it, and values of paths
/// repeated as often as needed.
fn arrange(layout: &[Column], batch: &RecordBatch, schema: &Schema) -> Result<Vec<ArrayRef>> {
    let column = |(column, field): (&Column, &Arc<Field>)| match column {
        Column::File(position) => match is_text(field.data_type()) {
            true => Ok(cast(batch.column(*position), field.data_type())?),
            false => Ok(Arc::clone(batch.column(*position))),
        },
        Column::Path(value) => repeat(value, batch.num_rows()),
    };
    layout.iter().zip(schema.fields()).map(column).collect()
}

impl Source for FilesSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.advance().inspect_err(|_| {
            self.current = None;
            self.waiting = 0..0;
        })
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn left_out(&self) -> u64 {
        let current = self.current.as_ref();
        self.left_out + current.map_or(0, |current| current.source.left_out())
    }
}

/// The formats of `files`, each once.
fn formats(files: &[PathBuf], options: &SourceOptions) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = files
        .iter()
        .filter_map(|path| kind_of(path, options).ok())
        .map(|kind| kind.name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
