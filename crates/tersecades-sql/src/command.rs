//! Statements, each to its answer.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion_expr::Expr;
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::sink::{self, Sink, SinkOptions, Target};
use tersecades_engine::source::table::MemoryTable;

use crate::answer::{Answer, Results};
use crate::catalog::TableTime;
use crate::lower::window::length;
use crate::parse::{Command, Created, Watermark};
use crate::session::Session;

impl Session {
    /// Runs a statement.
    ///
    /// # Errors
    /// What planning and running say.
    pub(crate) fn run_command(&mut self, command: Command) -> Result<Answer> {
        match command {
            Command::Query(query) => Ok(Answer::Rows(Results::of(self.lower(query)?)?)),
            Command::Set(option, value) => {
                self.set(&option, &value)?;
                Ok(Answer::Done(format!("{option} = {value}")))
            }
            Command::ShowTables => {
                let names = self.catalog.names().into_iter().map(str::to_owned);
                text_rows([("table_name", names.collect())])
            }
            Command::Describe(query) => {
                let schema = self.lower(query)?.schema()?;
                let names = schema.fields().iter().map(|field| field.name().clone());
                let types = schema
                    .fields()
                    .iter()
                    .map(|field| field.data_type().to_string());
                text_rows([
                    ("column_name", names.collect()),
                    ("column_type", types.collect()),
                ])
            }
            Command::Explain(explained, query) => self.explain(explained, query),
            Command::Summarize(query) => self.summarize(query),
            Command::Copy {
                query,
                path,
                format,
            } => {
                let results = Results::of(self.lower(query)?)?;
                copy(results, Path::new(&path), format.as_deref())
            }
            Command::CreateTable(created) => self.create_table(created),
            Command::CreateStream(created) => self.create_stream(created),
        }
    }

    fn create_table(&mut self, created: Created) -> Result<Answer> {
        self.check_free(&created)?;
        let time = created
            .watermark
            .as_ref()
            .map(|mark| self.time_of(mark))
            .transpose()?;
        let results = Results::of(self.lower(created.query)?)?;
        let schema = results.schema();
        let batches: Result<Vec<RecordBatch>> = results.collect();
        let batches = batches?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let table = Arc::new(MemoryTable::new(schema, batches));
        self.register(&created.name, table, time)?;
        Ok(Answer::Done(format!("table {}: {rows} rows", created.name)))
    }

    fn create_stream(&mut self, created: Created) -> Result<Answer> {
        self.check_free(&created)?;
        let time = created
            .watermark
            .as_ref()
            .map(|mark| self.time_of(mark))
            .transpose()?;
        let stream = self.lower(created.query)?;
        self.register_stream(&created.name, stream, time)?;
        Ok(Answer::Done(format!("stream {}", created.name)))
    }

    fn check_free(&self, created: &Created) -> Result<()> {
        match self.catalog.contains(&created.name) && !created.replace {
            true => Err(
                Error::invalid(format!("there is a table `{}` already", created.name))
                    .hint("write CREATE OR REPLACE"),
            ),
            false => Ok(()),
        }
    }

    fn time_of(&self, mark: &Watermark) -> Result<TableTime> {
        let column = mark.column.clone();
        let Some(lateness) = &mark.lateness else {
            return Ok(TableTime {
                column,
                ..TableTime::default()
            });
        };
        let interval: Expr = self.constant(lateness)?;
        Ok(TableTime {
            column,
            lateness: length(&interval, "a watermark")?,
        })
    }
}

fn copy(results: Results, path: &Path, format: Option<&str>) -> Result<Answer> {
    let (schema, options) = (results.schema(), SinkOptions::default());
    let mut sink: Box<dyn Sink> = match format {
        None => sink::create(path, &schema, &options)?,
        Some(format) => {
            (sink::find_kind(format)?.create)(Target::File(path.to_path_buf()), &schema, &options)?
        }
    };
    let mut rows = 0;
    for batch in results {
        let batch = batch?;
        rows += batch.num_rows();
        sink.write(&batch)?;
    }
    sink.finish()?;
    Ok(Answer::Done(format!("{}: {rows} rows", path.display())))
}

/// Columns of text as an answer; empty cells are null.
///
/// # Errors
/// When the columns differ in length.
pub(crate) fn text_rows<const N: usize>(columns: [(&str, Vec<String>); N]) -> Result<Answer> {
    let fields = columns
        .each_ref()
        .map(|(name, _)| Field::new(*name, DataType::Utf8, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let arrays = columns.into_iter().map(|(_, values)| -> ArrayRef {
        let values = values
            .into_iter()
            .map(|value| (!value.is_empty()).then_some(value));
        Arc::new(values.collect::<StringArray>())
    });
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays.collect())?;
    Ok(Answer::Rows(Results::ready(schema, vec![batch])))
}

/// A number for reading.
pub(crate) fn number(value: f64) -> String {
    format!("{value:.3}")
}
