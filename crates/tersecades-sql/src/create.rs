//! `CREATE TABLE | STREAM | VIEW`: names for rows.
//!
//! ```text
//! AS query            a stream runs the query anew for each reader, a table keeps its rows
//! FROM 'file'         the rows of the file, cut to the columns that are named
//! KEEP 1 HOUR         reads the rows once; readers get the newest hour, which stays encoded
//! KEEP … INTO 'dir'   writes the rows to a store; readers get what is there, then what comes
//! ```

use std::sync::Arc;

use arrow_array::{Array as _, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion_sql::sqlparser::ast::{DataType as SqlType, Ident};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::runtime::Keep;
use tersecades_engine::source::location::{is_read_once, open_table};
use tersecades_engine::source::table::MemoryTable;
use tersecades_engine::stream::Stream;

use crate::answer::{Answer, Results};
use crate::catalog::{Relation, TableTime};
use crate::keep::KeepInto;
use crate::parse::clause::Watermark;
use crate::parse::using::letter_case::column_of;
use crate::parse::{Asked, Created, Rows, folded};
use crate::session::Session;

impl Session {
    /// Creates a table or a stream.
    ///
    /// # Errors
    /// What planning says; `InvalidArgument` when the name is taken.
    pub(crate) fn create(&mut self, created: Created) -> Result<Answer> {
        let Created {
            name,
            replace,
            is_table,
            rows,
            clauses,
        } = created;
        if self.catalog.contains(&name) && !replace {
            let error = Error::invalid(format!("there is a table `{name}` already"));
            return Err(error.hint("write CREATE OR REPLACE"));
        }
        let mark = clauses.watermark.clone();
        let keep = clauses.keep.clone();
        if is_table {
            if keep.is_some() {
                return Err(Error::invalid("a table keeps all of its rows")
                    .hint("write CREATE STREAM ... KEEP 1 HOUR"));
            }
            let results = match rows {
                Rows::Query(query) => self.results(Asked { query, clauses })?,
                Rows::File { path, columns } => Results::of(self.file(&path, &columns)?)?,
            };
            let time = self.time_of(mark.as_ref(), &results.schema())?;
            return self.keep_rows(&name, results, time);
        }
        if clauses.late_into.is_some() {
            return Err(
                Error::unsupported("LATE INTO of a stream, which runs for each reader")
                    .hint("write LATE INTO behind the SELECT that reads it"),
            );
        }
        let into = clauses.keep_into.clone();
        let stream = match rows {
            Rows::Query(query) => self.lower(Asked { query, clauses })?,
            Rows::File { path, columns } => self.file(&path, &columns)?,
        };
        let time = self.time_of(mark.as_ref(), stream.schema()?.as_ref())?;
        let Some(keep) = keep else {
            self.register_stream(&name, stream, time)?;
            return Ok(Answer::Done(format!("stream {name}")));
        };
        let Some(time) = time else {
            return Err(Error::invalid("KEEP needs an event time")
                .hint("add WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"));
        };
        if let Some(folder) = into {
            let age = (!keep.is_empty()).then(|| self.length_of(&keep, "KEEP 7 DAYS"));
            let into = KeepInto {
                folder,
                age: age.transpose()?,
            };
            return self.keep_in_store(&name, stream, &into, time);
        }
        let keep = Keep::Duration(self.length_of(&keep, "KEEP 1 HOUR")?);
        self.keep_newest(&name, stream, keep, time)
    }

    fn keep_rows(
        &mut self,
        name: &str,
        mut results: Results,
        time: Option<TableTime>,
    ) -> Result<Answer> {
        let schema = results.schema();
        let limit = self.settings.memory_limit_bytes.unwrap_or(usize::MAX);
        let (mut batches, mut bytes) = (Vec::new(), 0usize);
        for batch in results.by_ref() {
            batches.push(batch?);
            bytes += batches.last().map_or(0, byte_size);
            if bytes > limit {
                let message = format!("the rows of table {name} take more than {limit} bytes");
                return Err(Error::limit(message).hint(
                    "raise memory_limit_bytes, or keep the newest rows encoded: CREATE STREAM ... \
                     KEEP 1 HOUR",
                ));
            }
        }
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        self.register(name, Arc::new(MemoryTable::new(schema, batches)), time)?;
        let what = format!("table {name}: {rows} rows");
        Ok(Answer::done(what, results.metrics()))
    }

    /// Reads `stream` to its end and gives what is then retained the name `name`.
    fn keep_newest(
        &mut self,
        name: &str,
        stream: Stream,
        keep: Keep,
        time: TableTime,
    ) -> Result<Answer> {
        let stream = stream.as_source()?;
        let stream = stream.event_time(col(time.column.as_str()), time.lateness);
        let mut running = self.settings.apply(stream.keep(keep)).run()?;
        while running.step()? {
            while running.take_result().is_some() {}
        }
        let retained = running.retained().cloned();
        let retained = retained.ok_or_else(|| Error::internal("nothing was retained"))?;
        let (rows, bytes) = (retained.rows(), retained.byte_size());
        let relation = Relation::of_table(Arc::new(retained), Some(time))?;
        self.give_name(name, relation);
        let what = format!("stream {name}: {rows} rows kept in {bytes} bytes");
        Ok(Answer::done(what, Some(running.metrics())))
    }

    /// The event time of rows with `schema`, where it is marked.
    fn time_of(&self, mark: Option<&Watermark>, schema: &Schema) -> Result<Option<TableTime>> {
        let Some(Watermark { column, lateness }) = mark else {
            return Ok(None);
        };
        let columns = schema.fields().iter().map(|field| field.name().as_str());
        let lateness = lateness.as_deref();
        let lateness = lateness.map(|text| self.length_of(text, "a watermark"));
        Ok(Some(TableTime {
            column: column_of(column, columns),
            lateness: lateness.transpose()?.unwrap_or_default(),
        }))
    }

    /// The rows of a file, cut to `columns` and cast to their types, if any are named.
    fn file(&self, path: &str, columns: &[(Ident, SqlType)]) -> Result<Stream> {
        let mut reading = self.catalog.reading.clone();
        if columns.is_empty() {
            let table = open_table(path, &reading)?;
            return Ok(Relation::of_table(table, None)?.stream);
        }
        // What is read once cannot be looked at first: its columns are named as they are written.
        let known = match is_read_once(path) {
            true => None,
            false => Some(open_table(path, &reading)?.schema()),
        };
        let mut types = Vec::with_capacity(columns.len());
        for (name, wanted) in columns {
            let found = match &known {
                Some(known) => find_column(known, name, path)?,
                None => folded(name),
            };
            types.push((found, self.arrow_type(wanted)?));
        }
        // Text is read as the types that are asked for: '007' stays text where that is wanted.
        reading.csv.types.extend(types.iter().cloned());
        let relation = Relation::of_table(open_table(path, &reading)?, None)?;
        let mut projected: Vec<(String, Expression)> = Vec::with_capacity(types.len());
        for ((name, _), (found, wanted)) in columns.iter().zip(types) {
            let value = col(found.as_str());
            let value = match *relation.schema.field_with_name(&found)?.data_type() == wanted {
                true => value,
                false => value.cast(wanted),
            };
            projected.push((folded(name), value));
        }
        Ok(relation.stream.project(projected))
    }

    /// The engine's type for a type of SQL.
    fn arrow_type(&self, wanted: &SqlType) -> Result<DataType> {
        let stream = self.stream(&format!("SELECT CAST(NULL AS {wanted}) AS x"))?;
        Ok(stream.schema()?.field(0).data_type().clone())
    }
}

/// Bytes of the rows of a batch, of which several may share their memory.
fn byte_size(batch: &RecordBatch) -> usize {
    let sizes = batch.columns().iter();
    let sizes = sizes.map(|column| column.to_data().get_slice_memory_size().unwrap_or(0));
    sizes.sum()
}

/// The column of a file that `name` means.
fn find_column(schema: &SchemaRef, name: &Ident, path: &str) -> Result<String> {
    let fields = schema.fields().iter();
    let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
    let found = column_of(name, names.iter().copied());
    if names.contains(&found.as_str()) {
        return Ok(found);
    }
    let error = Error::invalid(format!("`{path}` has no column `{found}`")).column(&found);
    Err(match nearest(&found, &names) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("the columns are: {}", names.join(", "))),
    })
}
