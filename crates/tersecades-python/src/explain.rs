//! What a stream will do, and what it did.

use std::fmt::Write as _;
use std::time::Instant;

use pyo3::prelude::*;
use tersecades::engine::runtime::Metrics;

use crate::error::OrRaise;
use crate::running::Drive;
use crate::schema::ColumnSchema;
use crate::stream::Stream;
use crate::table::escape;

/// The operators of a stream, and what they counted when it ran.
#[pyclass(name = "Explanation", module = "tersecades", frozen)]
pub(crate) struct Explanation {
    text: String,
}

impl Explanation {
    /// Explains `stream`; with `analyze` it runs to its end.
    pub(crate) fn of(py: Python<'_>, stream: &Stream, analyze: bool) -> PyResult<Self> {
        let mut text = operators(stream)?;
        if analyze {
            let mut drive = Drive::start(py, stream)?;
            let began = Instant::now();
            while drive.next(py)?.is_some() {}
            let seconds = began.elapsed().as_secs_f64();
            push_metrics(&mut text, &drive.running().metrics(), seconds);
        }
        Ok(Explanation { text })
    }

    /// Operators and columns of `stream`.
    pub(crate) fn describe(stream: &Stream) -> PyResult<String> {
        let columns = ColumnSchema::lines(&*stream.output()?).join("\n  ");
        let operators = operators(stream)?;
        match operators.is_empty() {
            true => Ok(format!("Stream\n  {columns}")),
            false => Ok(format!("Stream\n  {columns}\n{}", operators.trim_end())),
        }
    }
}

fn operators(stream: &Stream) -> PyResult<String> {
    let lines = stream.stream.describe().or_raise()?;
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

/// Writing to a string cannot fail, so the results of `writeln!` say nothing.
fn push_metrics(text: &mut String, metrics: &Metrics, seconds: f64) {
    let Metrics { rows, batches, .. } = metrics;
    let _ = writeln!(text, "\n{rows} rows in {batches} batches, {seconds:.3} s");
    let _ = writeln!(
        text,
        "{} result rows in {} windows",
        metrics.result_rows, metrics.windows
    );
    let left_out = [
        ("late", metrics.late_rows),
        ("without event time", metrics.untimed_rows),
        ("between windows", metrics.skipped_rows),
        ("unreadable", metrics.rejected_rows),
        ("passed over by the source", metrics.left_out_rows),
    ];
    for (what, rows) in left_out.into_iter().filter(|(_, rows)| *rows > 0) {
        let _ = writeln!(text, "{rows} rows {what}");
    }
    let tally = &metrics.tally;
    let _ = writeln!(
        text,
        "values: {} skipped by statistics, {} computed on encoded, {} decoded, {} fetched",
        tally.skipped, tally.direct, tally.decoded, tally.gathered
    );
    push_columns(text, metrics);
}

fn push_columns(text: &mut String, metrics: &Metrics) {
    let names = metrics
        .columns
        .iter()
        .map(|column| column.name.chars().count());
    let width = names.max().unwrap_or(0).max("column".len());
    let _ = writeln!(
        text,
        "\n{:<width$}  Arrow B/row  kept B/row  codec",
        "column"
    );
    let given = metrics.rows - metrics.left_out_rows;
    for column in &metrics.columns {
        let per_row = |bytes: u64| bytes as f64 / given.max(1) as f64;
        let _ = writeln!(
            text,
            "{:<width$}  {:>11.3}  {:>10.3}  {}",
            column.name,
            per_row(column.raw_bytes),
            per_row(column.encoded_bytes),
            column.codec
        );
        for candidate in column.candidates.iter() {
            let _ = writeln!(
                text,
                "{:<width$}    {}: {:.3} B/row, {:.3} ns/row",
                "",
                candidate.codec.name(),
                candidate.bytes_per_row,
                candidate.scan_ns
            );
        }
    }
}

#[pymethods]
impl Explanation {
    fn __str__(&self) -> &str {
        self.text.trim_end()
    }

    fn __repr__(&self) -> &str {
        self.text.trim_end()
    }

    fn _repr_html_(&self) -> String {
        format!("<pre>{}</pre>", escape(&self.text))
    }
}
