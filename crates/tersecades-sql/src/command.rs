//! Statements, each to its answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::{Expr, LogicalPlan};
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::sink::{self, Sink, Target};
use tersecades_engine::stream::Stream;

use crate::answer::{Answer, Results};
use crate::catalog::logical_schema;
use crate::function::window::WindowEdge;
use crate::late::LateRows;
use crate::parse::{Asked, Command};
use crate::session::Session;

impl Session {
    /// Runs a statement.
    ///
    /// # Errors
    /// What planning and running say.
    pub(crate) fn run_command(&mut self, command: Command) -> Result<Answer> {
        self.catalog.look_anew();
        self.stop_unread();
        match command {
            Command::Query(asked) => Ok(Answer::Rows(self.results(asked)?)),
            Command::Set(option, value) => {
                self.set(&option, &value)?;
                Ok(Answer::Done(format!("{option} = {value}")))
            }
            Command::ShowTables => {
                let names = self.catalog.names().into_iter().map(str::to_owned);
                text_rows([("table_name", names.collect::<Vec<String>>())])
            }
            Command::Describe(asked) => {
                let schema = self.lower(asked)?.schema()?;
                let names = schema.fields().iter().map(|field| field.name().clone());
                let types = schema
                    .fields()
                    .iter()
                    .map(|field| field.data_type().to_string());
                text_rows([
                    ("column_name", names.collect::<Vec<String>>()),
                    ("column_type", types.collect()),
                ])
            }
            Command::Explain(explained, asked) => self.explain(explained, asked),
            Command::Summarize(asked) => self.summarize(asked),
            Command::Copy {
                asked,
                path,
                format,
                replace,
            } => {
                if !replace && Path::new(&path).is_file() {
                    return Err(no_append(&path));
                }
                let results = self.results(asked)?;
                results.require_apart(Path::new(&path))?;
                copy(results, Path::new(&path), format.as_deref())
            }
            Command::Create(created) => self.create(created),
        }
    }

    /// The running results of a query; its late rows go where it says.
    ///
    /// # Errors
    /// What planning and starting say.
    pub(crate) fn results(&self, asked: Asked) -> Result<Results> {
        let late_into = asked.clauses.late_into.clone();
        let (plan, stream) = self.planned_once(asked)?;
        let (stream, late) = keeping_late(&plan, stream, late_into)?;
        Ok(Results::of(stream)?.with_late(late))
    }
}

/// The stream of a query, which keeps its late rows where they go into a file, and these.
///
/// # Errors
/// `Unsupported` for late rows of a query without windows, `InvalidArgument` for a file that is
/// there, which may be one that is read.
pub(crate) fn keeping_late(
    plan: &LogicalPlan,
    stream: Stream,
    late_into: Option<String>,
) -> Result<(Stream, Option<LateRows>)> {
    let Some(path) = late_into else {
        return Ok((stream, None));
    };
    if !cuts_windows(plan) {
        let message = "LATE INTO of a query without windows, for which no row is late";
        return Err(
            Error::unsupported(message).hint("GROUP BY a window: tumble(ts, INTERVAL '1' MINUTE)")
        );
    }
    let schema = logical_schema(&stream.source_schema());
    let late = LateRows::new(PathBuf::from(path), schema)?;
    Ok((stream.keep_late_whole(), Some(late)))
}

/// Whether some step of `plan` has a window of time.
fn cuts_windows(plan: &LogicalPlan) -> bool {
    let is_edge = |part: &Expr| {
        Ok(matches!(part, Expr::ScalarFunction(call)
            if call.func.inner().as_ref().downcast_ref::<WindowEdge>().is_some()))
    };
    let found = plan.exists(|node| {
        let expressions = node.expressions();
        let mut found = expressions.iter().map(|value| value.exists(is_edge));
        Ok(found.any(|found| found.unwrap_or(true)))
    });
    found.unwrap_or(true)
}

fn no_append(path: &str) -> Error {
    Error::unsupported("INSERT INTO a file that is there: rows are not appended to files")
        .file(path)
        .hint("COPY (SELECT ...) TO 'file' replaces it; a store takes more rows")
}

fn copy(mut results: Results, path: &Path, format: Option<&str>) -> Result<Answer> {
    let (schema, options) = (results.schema(), results.sink_options());
    let mut sink: Box<dyn Sink> = match format {
        None => sink::create(path, &schema, &options)?,
        Some(format) => {
            (sink::find_kind(format)?.create)(Target::File(path.to_path_buf()), &schema, &options)?
        }
    };
    let mut rows = 0;
    for batch in results.by_ref() {
        let batch = batch?;
        rows += batch.num_rows();
        sink.write(&batch)?;
    }
    sink.finish()?;
    let what = format!("{}: {rows} rows", path.display());
    Ok(Answer::done(what, results.metrics()))
}

/// Columns of text as an answer.
///
/// # Errors
/// When the columns differ in length.
pub(crate) fn text_rows<const N: usize>(
    columns: [(&str, Vec<impl Into<Option<String>>>); N],
) -> Result<Answer> {
    text_results(columns).map(Answer::Rows)
}

/// Columns of text.
///
/// # Errors
/// When the columns differ in length.
pub(crate) fn text_results<const N: usize>(
    columns: [(&str, Vec<impl Into<Option<String>>>); N],
) -> Result<Results> {
    let fields = columns
        .each_ref()
        .map(|(name, _)| Field::new(*name, DataType::Utf8, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let arrays = columns.into_iter().map(|(_, values)| -> ArrayRef {
        let values = values.into_iter().map(Into::into);
        Arc::new(values.collect::<StringArray>())
    });
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays.collect())?;
    Ok(Results::ready(schema, vec![batch]))
}

/// A number for reading.
pub(crate) fn number(value: f64) -> String {
    format!("{value:.3}")
}
