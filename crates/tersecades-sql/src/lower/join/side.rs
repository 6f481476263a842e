//! One input of a join: its rows under names of their own.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use datafusion_common::{DFSchema, DataFusionError};
use datafusion_expr::{Expr, when};
use tersecades_columnar::error::Result;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::stream::Stream;

use crate::catalog::TableTime;
use crate::error::of_datafusion;
use crate::function::window::Edge;
use crate::lower::aggregate::ANY_LATENESS;
use crate::lower::rows::{Column, Rows, free_name};
use crate::lower::window::{EdgeColumn, TimeWindow};
use crate::scalar::PlannedFunction;

/// One input of a join.
pub(super) struct Side {
    /// Its rows, with a column for each that the plan or the join reads.
    pub(super) stream: Stream,
    /// What gives each field of its plan, over the joined rows.
    pub(super) columns: Vec<Column>,
    /// Names of the columns of its keys.
    pub(super) keys: Vec<String>,
    /// Its declared event time, under its name here.
    pub(super) time: Option<TableTime>,
    /// Windows by which nothing has gone yet.
    pub(super) pending: Vec<TimeWindow>,
}

/// Columns that are being given names which differ from all others of the join.
struct Names<'t> {
    taken: &'t mut Vec<String>,
    projected: Vec<(String, Expression)>,
}

impl Names<'_> {
    fn add(&mut self, wanted: &str, value: Expression) -> String {
        let name = free_name(wanted, |name| self.taken.iter().any(|known| known == name));
        self.taken.push(name.clone());
        self.projected.push((name.clone(), value));
        name
    }

    /// The name of a column with this value.
    fn of(&mut self, wanted: &str, value: Expression) -> String {
        let known = self.projected.iter().find(|(_, known)| *known == value);
        match known {
            Some((name, _)) => name.clone(),
            None => self.add(wanted, value),
        }
    }
}

impl Side {
    /// Settles `rows` under names that `taken` does not hold, with a column for each key.
    ///
    /// # Errors
    /// What lowering the keys says.
    pub(super) fn of<'k>(
        rows: Rows,
        schema: &DFSchema,
        keys: impl IntoIterator<Item = &'k Expr>,
        taken: &mut Vec<String>,
    ) -> Result<Self> {
        let projected = Vec::new();
        let mut names = Names { taken, projected };
        let mut columns = Vec::with_capacity(schema.fields().len());
        let renamed = |window: &TimeWindow, names: &mut Names<'_>| TimeWindow {
            time: col(names.of("time", window.time.clone())),
            ..window.clone()
        };
        let pending = rows.pending.iter();
        let pending = pending.map(|window| renamed(window, &mut names)).collect();
        for (column, field) in rows.columns.iter().zip(schema.fields()) {
            columns.push(match column {
                Column::Value(value) => Column::Value(col(names.add(field.name(), value.clone()))),
                Column::Edge(edge) => Column::Edge(EdgeColumn {
                    edge: edge.edge,
                    window: renamed(&edge.window, &mut names),
                }),
            });
        }
        let lowerer = rows.lowerer(schema)?;
        let mut key_names = Vec::new();
        for key in keys {
            reads_no_edge(key, schema, &rows.columns)?;
            key_names.push(names.of("key", lowerer.typed_value(key)?));
        }
        let time = rows.time.as_ref().map(|time| TableTime {
            column: names.of("time", col(time.column.as_str())),
            lateness: time.lateness,
        });
        Ok(Side {
            stream: rows.stream.project(names.projected),
            columns,
            keys: key_names,
            time,
            pending,
        })
    }

    /// Makes the edges of windows null in rows of `joined` whose `time` is: those without a pair.
    ///
    /// # Errors
    /// What planning says.
    pub(super) fn edges_of_pairs(&mut self, time: &str, joined: &Stream) -> Result<()> {
        let schema = joined.schema()?;
        for edge in Edge::BOTH {
            let plain = Column::Value(edge.value());
            let fields = [edge.column(), time].map(|name| schema.field_with_name(name).cloned());
            let fields: Vec<Field> = fields.into_iter().collect::<std::result::Result<_, _>>()?;
            let paired = when_present(fields)?;
            for column in self.columns.iter_mut().filter(|column| **column == plain) {
                *column = Column::Value(paired.clone());
            }
        }
        Ok(())
    }

    /// The stream with the column `time` as its event time; rows of any lateness count, unless
    /// that is the declared time of the table.
    ///
    /// # Errors
    /// What binding says.
    pub(super) fn timed(&self, time: &str) -> Result<Stream> {
        let declared = self.time.as_ref().filter(|known| known.column == time);
        let lateness = declared.map_or(ANY_LATENESS, |known| known.lateness);
        Ok(self
            .stream
            .clone()
            .as_source()?
            .event_time(col(time), lateness))
    }
}

/// Refuses a condition of a join that reads the window of a row which may be in several.
///
/// # Errors
/// `Unsupported` where it does.
pub(super) fn reads_no_edge(condition: &Expr, schema: &DFSchema, columns: &[Column]) -> Result<()> {
    for column in condition.column_refs() {
        let index = schema.index_of_column(column);
        let index = index.map_err(|error| of_datafusion(&error))?;
        if let Some(Column::Edge(edge)) = columns.get(index) {
            return Err(edge.in_condition());
        }
    }
    Ok(())
}

/// The first of two columns where the second is not null.
fn when_present(fields: Vec<Field>) -> Result<Expression> {
    let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    let [value, present] = [names[0], names[1]].map(|name| Expr::Column(name.into()));
    let arguments = names.iter().map(|name| col(*name)).collect();
    let planned = || {
        let schema = DFSchema::try_from(Schema::new(fields.clone()))?;
        Ok((schema, when(present.is_not_null(), value).end()?))
    };
    let (schema, case) = planned().map_err(|error: DataFusionError| of_datafusion(&error))?;
    let function = PlannedFunction::new(&case, &schema, &[0, 1])?;
    Ok(Expression::call(Arc::new(function), arguments))
}
