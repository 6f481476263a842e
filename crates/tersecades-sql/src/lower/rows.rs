//! Rows on their way through the lowering: a stream, and what computes each column of the plan.
//!
//! Projections are not steps of the stream: they replace what the columns are computed by, and
//! are written down where something needs named columns (a group-by, a join, the result).

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion_common::DFSchema;
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::stream::Stream;

use super::expression::Lowerer;
use super::window::{EdgeColumn, TimeWindow, outside};
use crate::catalog::TableTime;
use crate::function::window::Edge;

/// What gives a column of the logical plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Column {
    /// An expression over the columns of the stream.
    Value(Expression),
    /// An edge of the window that a group-by will cut.
    Edge(EdgeColumn),
}

/// What the last step of a stream was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its rows are those of a table; filters at most have been applied.
    Table,
    /// Its rows are results of a windowed group-by.
    Windows {
        /// Whether they come in the order of `window_start`, which no two windows share.
        in_order: bool,
    },
    /// Anything else.
    Other,
}

/// A stream and the columns of the plan over it.
pub(crate) struct Rows {
    /// The stream.
    pub(crate) stream: Stream,
    /// One for each field of the logical plan.
    pub(crate) columns: Vec<Column>,
    /// The declared event time, while the rows are still those of the table.
    pub(crate) time: Option<TableTime>,
    /// How far the stream has come.
    pub(crate) reach: Reach,
    /// Windows of window tables by which no group-by or join has gone yet, over the columns of the
    /// stream: a row stands for itself in each window that it is in.
    pub(crate) pending: Vec<TimeWindow>,
}

impl Rows {
    /// The expression of the column at `index`.
    ///
    /// # Errors
    /// `Unsupported` for an edge of a window outside of a group-by.
    pub(crate) fn value(&self, index: usize) -> Result<&Expression> {
        value_of(&self.columns, index)
    }

    /// The rows as they stand in windows by which nothing groups or joins.
    ///
    /// # Errors
    /// `Unsupported` for windows of which a row is in several, or that depend on other rows.
    pub(crate) fn spread(mut self) -> Result<Rows> {
        for window in std::mem::take(&mut self.pending) {
            if !window.holds_each_once() {
                return Err(outside(window.kind));
            }
            self.stream = self.stream.filter(!window.time.is_null());
        }
        Ok(self)
    }

    /// The rows that `change` makes of the stream's, with its columns, but in no order of windows.
    pub(crate) fn with_stream(self, change: impl FnOnce(Stream) -> Stream) -> Rows {
        Rows {
            stream: change(self.stream),
            time: None,
            reach: Reach::Other,
            ..self
        }
    }

    /// The rows as those of a side that an outer join fills with nulls.
    pub(crate) fn filled(mut self) -> Rows {
        for column in &mut self.columns {
            if let Column::Edge(edge) = column {
                edge.window.filled = true;
            }
        }
        self
    }

    /// The rows with a column of the stream for each of `columns`, which read it from then on: what
    /// would differ wherever it is read is computed once.
    ///
    /// # Errors
    /// What binding the stream says.
    pub(crate) fn drawn<'c>(
        mut self,
        columns: impl Iterator<Item = &'c mut Column>,
    ) -> Result<Rows> {
        let schema = self.stream.schema()?;
        let own = schema.fields().iter().map(|field| field.name());
        let own = own.map(|name| (name.clone(), col(name.as_str())));
        let mut named: Vec<(String, Expression)> = own.collect();
        for column in columns {
            if let Column::Value(value) = column {
                let taken = |name: &str| named.iter().any(|(known, _)| known == name);
                let name = free_name("drawn", taken);
                let value = std::mem::replace(value, col(name.as_str()));
                named.push((name, value));
            }
        }
        if named.len() > schema.fields().len() {
            self.stream = self.stream.project(named);
        }
        Ok(self)
    }

    /// What lowers expressions over these rows, whose plan has the fields of `schema`.
    ///
    /// # Errors
    /// What binding the stream says.
    pub(crate) fn lowerer<'a>(&'a self, schema: &'a DFSchema) -> Result<Lowerer<'a>> {
        let (columns, stream) = (self.columns.as_slice(), self.stream.schema()?);
        Ok(Lowerer {
            schema,
            columns,
            stream,
        })
    }

    /// The same rows with a column of the stream for each field of `schema` and no others.
    ///
    /// # Errors
    /// What binding says; `Unsupported` for edges of windows.
    pub(crate) fn settled(self, schema: &DFSchema) -> Result<Rows> {
        let names = unique_names(schema);
        let (time, mut reach) = (self.time.clone(), self.reach);
        let start = Edge::Start.column();
        let of_window = |(name, column): (&String, &Column)| {
            name == start && matches!(column, Column::Value(value) if *value == col(start))
        };
        if let Reach::Windows { in_order } = &mut reach {
            *in_order &= names.iter().zip(&self.columns).any(of_window);
        }
        let stream = self.named(schema, &names)?;
        let columns = names
            .into_iter()
            .map(|name| Column::Value(col(name)))
            .collect();
        Ok(Rows {
            stream,
            columns,
            time,
            reach,
            pending: Vec::new(),
        })
    }

    /// The stream with one column for each field of `schema`, under names that are all different,
    /// and those names.
    ///
    /// # Errors
    /// What binding says; `Unsupported` for edges of windows.
    pub(crate) fn materialise(self, schema: &DFSchema) -> Result<(Stream, Vec<String>)> {
        let names = unique_names(schema);
        let named = self.named(schema, &names)?;
        Ok((named, names))
    }

    /// As [`Rows::materialise`], with a last column `change` that says what each row changes.
    ///
    /// # Errors
    /// What binding says; `Unsupported` for edges of windows.
    pub(crate) fn with_change(
        self,
        schema: &DFSchema,
        change: &str,
    ) -> Result<(Stream, Vec<String>)> {
        let rows = self.spread()?;
        let mut names = unique_names(schema);
        let mut columns = Vec::with_capacity(names.len() + 1);
        for (index, name) in names.iter().enumerate() {
            columns.push((name.clone(), rows.value(index)?.clone()));
        }
        let name = free_name(change, |name| names.iter().any(|known| known == name));
        columns.push((name.clone(), col(change)));
        names.push(name);
        Ok((rows.stream.project(columns), names))
    }

    /// The stream with the columns of `schema` under `names`.
    ///
    /// # Errors
    /// What binding says; `Unsupported` for edges of windows.
    pub(crate) fn named(self, schema: &DFSchema, names: &[String]) -> Result<Stream> {
        let rows = self.spread()?;
        let mut columns = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            columns.push((name.clone(), rows.value(index)?.clone()));
        }
        let before = rows.stream.schema()?;
        let same = before.fields().len() == columns.len()
            && before
                .fields()
                .iter()
                .zip(&columns)
                .all(|(field, (name, value))| field.name() == name && *value == col(name.as_str()));
        if same || schema.fields().is_empty() {
            return Ok(rows.stream);
        }
        Ok(rows.stream.project(columns))
    }
}

/// The expression of the column at `index`.
///
/// # Errors
/// `Unsupported` for an edge of a window outside of a group-by.
pub(crate) fn value_of(columns: &[Column], index: usize) -> Result<&Expression> {
    match columns.get(index) {
        Some(Column::Value(value)) => Ok(value),
        Some(Column::Edge(edge)) => Err(edge.outside()),
        None => Err(Error::internal("a plan reads a column it does not have")),
    }
}

/// Names of the fields of `schema`, made different from each other.
pub(crate) fn unique_names(schema: &DFSchema) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for field in schema.fields() {
        let name = free_name(field.name(), |name| names.iter().any(|known| known == name));
        names.push(name);
    }
    names
}

/// `wanted`, or the first of `wanted_1`, `wanted_2`, … that is not taken.
pub(crate) fn free_name(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(wanted) {
        return wanted.to_owned();
    }
    let mut number = 1u32;
    loop {
        let name = format!("{wanted}_{number}");
        if !taken(&name) {
            return name;
        }
        number += 1;
    }
}

/// The type of `value` over columns of `schema`; `None` where it does not bind.
pub(crate) fn type_of(value: &Expression, schema: &Schema) -> Result<DataType> {
    let scope = tersecades_engine::frame::Scope::of_schema(schema);
    let bound = tersecades_engine::expression::BoundExpression::bind(value, &scope)?;
    Ok(bound.data_type().clone())
}

/// A schema of these columns, all nullable.
pub(crate) fn nullable(fields: impl IntoIterator<Item = (String, DataType)>) -> SchemaRef {
    let fields = fields
        .into_iter()
        .map(|(name, kind)| Field::new(name, kind, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
