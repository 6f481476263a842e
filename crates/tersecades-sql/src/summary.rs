//! `SUMMARIZE`: one row for each column.

use arrow_array::{Array as _, RecordBatch};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Field};
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::aggregate::{call, count, find, quantile};
use tersecades_engine::expression::col;
use tersecades_engine::plan::AggregateCall;

use crate::answer::Answer;
use crate::command::text_rows;
use crate::parse::Asked;
use crate::session::Session;

/// What is said of a column besides its name, type and nulls: heading, aggregate, parameter.
const STATISTICS: [(&str, &str, Option<f64>); 8] = [
    ("min", "min", None),
    ("max", "max", None),
    ("unique", "count_distinct", None),
    ("avg", "mean", None),
    ("std", "stddev", None),
    ("q25", "quantile", Some(0.25)),
    ("q50", "quantile", Some(0.5)),
    ("q75", "quantile", Some(0.75)),
];

impl Session {
    /// Summarises the columns of a query.
    ///
    /// # Errors
    /// What planning and running say.
    pub(crate) fn summarize(&self, asked: Asked) -> Result<Answer> {
        let stream = self.lower(asked)?;
        let schema = stream.schema()?;
        let mut calls = vec![count().alias("rows")];
        for (index, field) in schema.fields().iter().enumerate() {
            calls.push(call("count", col(field.name().as_str())).alias(cell_name(index, "count")));
            calls.extend(statistics(index, field));
        }
        let mut found: Option<RecordBatch> = None;
        for batch in stream.aggregate(calls).run()? {
            found = Some(batch?);
        }
        let found = found.ok_or_else(|| Error::internal("a whole stream has one result"))?;
        let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); STATISTICS.len() + 4];
        for (index, field) in schema.fields().iter().enumerate() {
            let rows = cell(&found, "rows")?;
            let filled = cell(&found, &cell_name(index, "count"))?;
            let nulls = nulls_percent(rows.as_deref(), filled.as_deref());
            let head = [field.name().clone(), field.data_type().to_string()].map(Some);
            let statistics = STATISTICS
                .iter()
                .map(|(name, ..)| cell(&found, &cell_name(index, name)));
            let statistics: Result<Vec<Option<String>>> = statistics.collect();
            let row = head.into_iter().chain(statistics?).chain([rows, nulls]);
            columns
                .iter_mut()
                .zip(row)
                .for_each(|(column, cell)| column.push(cell));
        }
        let mut columns = columns.into_iter();
        let mut next = || columns.next().unwrap_or_default();
        text_rows([
            ("column_name", next()),
            ("column_type", next()),
            ("min", next()),
            ("max", next()),
            ("unique", next()),
            ("avg", next()),
            ("std", next()),
            ("q25", next()),
            ("q50", next()),
            ("q75", next()),
            ("count", next()),
            ("null_percentage", next()),
        ])
    }
}

fn cell_name(index: usize, statistic: &str) -> String {
    format!("{index} {statistic}")
}

/// The statistics that a column of this type has.
fn statistics(index: usize, field: &Field) -> Vec<AggregateCall> {
    let argument = || col(field.name().as_str());
    let has = |function: &str| {
        let data_type: &DataType = field.data_type();
        find(function).is_ok_and(|aggregate| aggregate.result_type(data_type).is_ok())
    };
    let known = STATISTICS.iter().filter(|(_, function, _)| has(function));
    known
        .map(|(name, function, parameter)| {
            let statistic = match parameter {
                Some(fraction) => quantile(argument(), *fraction),
                None => call(function, argument()),
            };
            statistic.alias(cell_name(index, name))
        })
        .collect()
}

/// A value of the only row; `None` where it is null or the column has no such statistic.
fn cell(row: &RecordBatch, name: &str) -> Result<Option<String>> {
    let column = row.column_by_name(name);
    let filled = column.filter(|column| column.is_valid(0));
    Ok(filled
        .map(|column| array_value_to_string(column, 0))
        .transpose()?)
}

fn nulls_percent(rows: Option<&str>, filled: Option<&str>) -> Option<String> {
    let (rows, filled) = (rows?.parse::<f64>().ok()?, filled?.parse::<f64>().ok()?);
    (rows > 0.0).then(|| format!("{:.2}", 100.0 * (1.0 - filled / rows)))
}
