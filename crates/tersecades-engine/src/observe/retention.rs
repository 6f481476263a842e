//! What a retained range keeps for its queries, and what it refuses to later ones.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::Selection;

use super::mask::{Kept, is_maskable, keep_only, overwrite};
use super::need::{Classes, Need};
use super::passed::{Passed, Passing};
use super::reduce::{Reducer, newest};
use super::sight::{Glimpse, sight, whole_sight};
use crate::expression::Expression;
use crate::plan::Query;
use crate::runtime::option::TimeOptions;

/// A query for which a range is retained.
#[derive(Debug, Clone)]
pub struct Registered {
    /// What `explain` calls it.
    pub name: String,
    /// What it asks.
    pub query: Query,
    /// Why it must see every column that it reads as it is, if something besides its steps says
    /// so: late rows that are handed out, a clock.
    pub exact: Option<String>,
    /// What moves its time, over rows that have come.
    pub time: TimeOptions,
}

/// What is kept of one column.
#[derive(Debug)]
struct Column {
    /// What is kept of the rows that queries let through.
    need: Need,
    /// What is kept of all rows.
    everywhere: Need,
    /// The rows that queries let through; every row where there are none.
    passed: Vec<Passed>,
    /// What each query does with it.
    why: Vec<(String, Vec<String>)>,
    reducer: Option<Reducer>,
    /// The reducer of all rows.
    coarser: Option<Reducer>,
}

/// What is kept of each column of a stream, and for which queries.
#[derive(Debug)]
pub struct Observed {
    schema: SchemaRef,
    columns: Vec<Column>,
    queries: Vec<Registered>,
    /// The column whose newest value says how old rows are, where one is reduced.
    time: Option<usize>,
}

impl PartialEq for Observed {
    fn eq(&self, other: &Self) -> bool {
        self.lines() == other.lines()
    }
}

impl Observed {
    /// What `queries` can see of a stream of `schema` whose age goes by `event_time`.
    ///
    /// # Errors
    /// What binding the queries says.
    pub fn of(
        schema: &SchemaRef,
        event_time: &Expression,
        queries: Vec<Registered>,
    ) -> Result<Self> {
        let schema = logical(schema);
        let mut columns: Vec<Column> = schema.fields().iter().map(|_| Column::new()).collect();
        for query in &queries {
            let asked = (&query.query, query.exact.as_deref());
            let glimpses = glimpses(&query.name, asked, &schema)?;
            for (column, glimpse) in columns.iter_mut().zip(glimpses) {
                column.add(&query.name, glimpse);
            }
        }
        let own = |name: &String| event_time == &Expression::Column(name.clone());
        let fields = schema.fields();
        let time = fields.iter().position(|field| own(field.name()));
        for (index, field) in fields.iter().enumerate() {
            let column = &mut columns[index];
            match time {
                Some(time) if time == index => {
                    column.everywhere.merge(Need::Class(Classes::default()));
                }
                None if event_time.columns().contains(&field.name().as_str()) => {
                    let why = vec!["event time".to_owned()];
                    let needs = vec![(Passed::default(), Need::Exact)];
                    column.add("the age of rows", Glimpse { needs, why });
                }
                _ => {}
            }
            column.settle(field.data_type())?;
        }
        Ok(Observed {
            time: time.filter(|time| columns[*time].reducer.is_some()),
            schema,
            columns,
            queries,
        })
    }

    /// The columns that are kept.
    pub fn kept(&self) -> Vec<String> {
        let columns = self.schema.fields().iter().zip(&self.columns);
        let kept = columns.filter(|(_, column)| column.need != Need::Nothing);
        kept.map(|(field, _)| field.name().clone()).collect()
    }

    /// What is kept of the column named `name`.
    pub fn need(&self, name: &str) -> Option<&Need> {
        let index = self.schema.index_of(name).ok()?;
        Some(&self.columns[index].need)
    }

    /// Whether values of the column named `name` are kept as their class.
    pub fn is_class(&self, name: &str) -> bool {
        matches!(self.need(name), Some(Need::Class(_)))
    }

    /// The query registered as `name`.
    pub fn query(&self, name: &str) -> Option<&Registered> {
        self.queries.iter().find(|known| known.name == name)
    }

    /// Names of the registered queries.
    pub fn query_names(&self) -> Vec<&str> {
        self.queries
            .iter()
            .map(|known| known.name.as_str())
            .collect()
    }

    /// Refuses a query that would see more than is kept.
    ///
    /// # Errors
    /// `Unsupported`, naming column, use and what is kept; what binding says.
    pub fn admit(&self, query: &Query, exact: Option<&str>) -> Result<()> {
        let columns = self.schema.fields().iter().zip(&self.columns);
        let glimpses = glimpses("", (query, exact), &self.schema)?;
        for ((field, column), glimpse) in columns.zip(glimpses) {
            if !column.covers(&glimpse) {
                return Err(refusal(field, column, &glimpse));
            }
        }
        Ok(())
    }

    /// For each column what is kept, by what proof and for which queries; one line each.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.schema.fields().iter().zip(&self.columns);
        columns
            .map(|(field, column)| format!("keep {}: {}", field.name(), column.describe(field)))
            .collect()
    }
}

impl Column {
    fn new() -> Self {
        Column {
            need: Need::Nothing,
            everywhere: Need::Nothing,
            passed: Vec::new(),
            why: Vec::new(),
            reducer: None,
            coarser: None,
        }
    }

    fn add(&mut self, query: &str, glimpse: Glimpse) {
        for (passed, need) in glimpse.needs {
            if need == Need::Nothing {
                continue;
            }
            if passed.is_every_row() {
                self.everywhere.merge(need);
                continue;
            }
            self.need.merge(need);
            if !self.passed.iter().any(|known| known.holds(&passed)) {
                self.passed.retain(|known| !passed.holds(known));
                self.passed.push(passed);
            }
        }
        if !glimpse.why.is_empty() {
            self.why.push((query.to_owned(), glimpse.why));
        }
    }

    /// Decides what is kept, when all queries have been added.
    fn settle(&mut self, data_type: &DataType) -> Result<()> {
        let apart = match self.everywhere {
            Need::Nothing => true,
            _ => is_maskable(data_type),
        };
        if !apart || self.everywhere.covers(&self.need) {
            self.passed.clear();
        }
        self.need.merge(self.everywhere.clone());
        if self.passed.is_empty() {
            self.everywhere = self.need.clone();
        }
        let reducer = |need: &Need| match need {
            Need::Class(classes) => Reducer::new(data_type, classes).map(Some),
            Need::Nothing | Need::Exact => Ok(None),
        };
        self.reducer = reducer(&self.need)?;
        if !self.passed.is_empty() {
            self.coarser = reducer(&self.everywhere)?;
        }
        Ok(())
    }

    /// Whether what is kept answers all that is asked.
    fn covers(&self, asked: &Glimpse) -> bool {
        asked.needs.iter().all(|(rows, need)| {
            let kept = self.passed.iter().any(|passed| passed.holds(rows));
            self.everywhere.covers(need) || kept && self.need.covers(need)
        })
    }

    /// What is kept of `array`, of which the rows of `passed` are let through.
    fn reduce(&self, array: &ArrayRef, passed: Option<Selection>) -> Result<Kept> {
        let reduced = |array: &ArrayRef| match &self.reducer {
            Some(reducer) => reducer.reduce(array),
            None => Ok(Arc::clone(array)),
        };
        match (passed, &self.coarser) {
            (None, _) => reduced(array).map(Kept::Whole),
            (Some(passed), Some(coarser)) => {
                overwrite(&coarser.reduce(array)?, &reduced(array)?, &passed).map(Kept::Whole)
            }
            (Some(passed), None) => keep_only(array, passed, reduced),
        }
    }

    fn describe(&self, field: &Field) -> String {
        let kept = self.what(field.data_type());
        let why = self
            .why
            .iter()
            .map(|(query, why)| format!("{query}: {}", why.join(", ")));
        let why: Vec<String> = why.collect();
        match (&self.need, why.is_empty()) {
            (Need::Nothing, _) => format!("{kept}, no registered query reads it"),
            (_, true) => format!("{kept}, for the age of rows alone"),
            (Need::Class(_), _) => format!("{kept}, all that is seen of it ({})", why.join("; ")),
            (Need::Exact, _) => format!("{kept} ({})", why.join("; ")),
        }
    }

    /// What is kept, and of which rows.
    fn what(&self, data_type: &DataType) -> String {
        let kept = self.need.describe(data_type);
        if self.passed.is_empty() {
            return kept;
        }
        let passed: Vec<String> = self.passed.iter().map(Passed::to_string).collect();
        let elsewhere = self.everywhere.describe(data_type);
        format!(
            "{kept} where {}, elsewhere {elsewhere}",
            passed.join(" or ")
        )
    }
}

/// Brings arriving rows down to what is kept of them.
pub struct Reduction {
    observed: Arc<Observed>,
    passing: Passing,
    /// For each column, the conditions that let its rows through.
    conditions: Vec<Vec<usize>>,
}

impl Reduction {
    /// For record batches of `schema`.
    ///
    /// # Errors
    /// What binding the conditions says.
    pub fn new(observed: &Arc<Observed>, schema: &Schema) -> Result<Self> {
        let mut all: Vec<Passed> = Vec::new();
        let mut conditions = Vec::new();
        for column in &observed.columns {
            let mut own = Vec::new();
            for passed in &column.passed {
                let known = all.iter().position(|known| known == passed);
                own.push(known.unwrap_or(all.len()));
                if known.is_none() {
                    all.push(passed.clone());
                }
            }
            conditions.push(own);
        }
        Ok(Reduction {
            observed: Arc::clone(observed),
            passing: Passing::new(schema, &all)?,
            conditions,
        })
    }

    /// What is kept of each column of `rows`.
    ///
    /// # Errors
    /// `SchemaMismatch` for columns of other types.
    pub fn reduce(&mut self, rows: &RecordBatch) -> Result<Reduced> {
        let observed = &*self.observed;
        let found = self.passing.find(rows)?;
        let mut reduced = Reduced {
            columns: Vec::with_capacity(rows.num_columns()),
            newest: None,
        };
        for (field, array) in rows.schema().fields().iter().zip(rows.columns()) {
            let index = observed.schema.index_of(field.name()).ok();
            reduced.columns.push(match index {
                Some(index) => {
                    let passed = union(&found, &self.conditions[index]);
                    let kept = observed.columns[index].reduce(array, passed);
                    kept.map_err(|error| error.column(field.name().as_str()))?
                }
                None => Kept::Whole(Arc::clone(array)),
            });
            if index.is_some() && index == observed.time {
                reduced.newest = newest(array.as_ref());
            }
        }
        Ok(reduced)
    }
}

/// What is kept of rows.
pub struct Reduced {
    /// Each column.
    pub columns: Vec<Kept>,
    /// The newest event time before it was reduced, where it is.
    pub newest: Option<i64>,
}

/// The rows of any of the `wanted`; `None` where there are no conditions.
fn union(found: &[Selection], wanted: &[usize]) -> Option<Selection> {
    let mut wanted = wanted.iter().map(|index| &found[*index]);
    let mut all = Selection::default();
    all.copy_from(wanted.next()?);
    wanted.for_each(|more| all.unite(more));
    Some(all)
}

/// What a query sees of each column, by its steps, or all of what it reads for a reason; errors
/// say its name, if it has one.
fn glimpses(
    name: &str,
    (query, exact): (&Query, Option<&str>),
    schema: &Schema,
) -> Result<Vec<Glimpse>> {
    let found = match exact {
        Some(why) => whole_sight(query, schema, why),
        None => sight(query, schema),
    };
    found.map_err(|error| match name.is_empty() {
        true => error,
        false => {
            let message = format!("registered query `{name}`: {}", error.message());
            let hint = error.hint_text().map(str::to_owned);
            let placed = Error::new(error.kind(), message);
            match hint {
                Some(hint) => placed.hint(hint),
                None => placed,
            }
        }
    })
}

fn refusal(field: &Field, column: &Column, glimpse: &Glimpse) -> Error {
    let name = field.name().as_str();
    let kept = match column.need {
        Need::Nothing => "not kept".to_owned(),
        _ => format!("only {}", column.what(field.data_type())),
    };
    let why = glimpse.why.join(", ");
    let message = format!("the retained range cannot answer {why}: `{name}` is {kept}");
    Error::unsupported(message)
        .column(name)
        .hint("register the query where the range is kept, or keep the range exact")
}

/// The same columns, in the types the engine computes with.
fn logical(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let logical = tersecades_columnar::types::logical_type(field.data_type());
        Field::new(field.name(), logical, field.is_nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
