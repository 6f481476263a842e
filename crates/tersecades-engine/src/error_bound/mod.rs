//! How far results may be from what they are without lossy encoding.
//!
//! ```text
//! .encoding("rtt", "zfp(0.01)") ──▶ field metadata of the stream: error_bound = 0.01
//!    expressions: interval rules ──▶ aggregates ──▶ field metadata of the results
//! ```
//! Bounds are absolute, hold for the rows that the result is made of, and leave aside the rounding
//! of float arithmetic itself. Where a lossy column decides *which* rows there are (a filter, a
//! key), the results say so: values within the bound of a constant may fall on either side of it.
//! A row that may be of several streams has the widest of their bounds; what a lossy key, time or
//! condition finds in another stream or table has none.

mod expression;
mod join;
mod query;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use tersecades_columnar::error::Result;
use tersecades_columnar::scheme::Scheme;

use expression::{names_of, of_all};
pub use join::{Pairing, bounds_of_join};
pub use query::bounds_of;

/// Metadata of a field: how far its values may be off, as [`ErrorBound`] is written.
pub const ERROR_BOUND: &str = "tersecades.error_bound";

/// Metadata of a field: the lossy columns that its values depend on, separated by commas.
pub const LOSSY_COLUMNS: &str = "tersecades.lossy_columns";

/// Metadata of a schema: the lossy columns that decide which rows there are.
pub const ROWS_DEPEND_ON: &str = "tersecades.rows_depend_on";

/// How far a value may be from what it is without lossy encoding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ErrorBound {
    /// No further than this.
    Within(f64),
    /// No further than this for each row that it sums up.
    PerRow(f64),
    /// No bound follows from the query alone.
    Unknown,
}

impl ErrorBound {
    /// The value itself.
    pub const EXACT: ErrorBound = ErrorBound::Within(0.0);

    fn scaled(self, by: f64) -> Self {
        match self {
            ErrorBound::Within(bound) => ErrorBound::Within(bound * by.abs()),
            ErrorBound::PerRow(bound) => ErrorBound::PerRow(bound * by.abs()),
            ErrorBound::Unknown => ErrorBound::Unknown,
        }
    }

    fn plus(self, other: ErrorBound) -> Self {
        match (self, other) {
            (ErrorBound::Within(a), ErrorBound::Within(b)) => ErrorBound::Within(a + b),
            (ErrorBound::PerRow(a), ErrorBound::PerRow(b)) => ErrorBound::PerRow(a + b),
            (bound, ErrorBound::EXACT) | (ErrorBound::EXACT, bound) => bound,
            _ => ErrorBound::Unknown,
        }
    }

    /// How far a value may be off that has this bound or the other.
    fn or(self, other: ErrorBound) -> Self {
        match (self, other) {
            (ErrorBound::Within(a), ErrorBound::Within(b)) => ErrorBound::Within(a.max(b)),
            (ErrorBound::PerRow(a), ErrorBound::PerRow(b)) => ErrorBound::PerRow(a.max(b)),
            (bound, ErrorBound::EXACT) | (ErrorBound::EXACT, bound) => bound,
            _ => ErrorBound::Unknown,
        }
    }

    fn parse(text: &str) -> Self {
        let number = |text: &str| text.parse().ok();
        match text.strip_suffix(" per row") {
            Some(bound) => number(bound).map_or(ErrorBound::Unknown, ErrorBound::PerRow),
            None => number(text).map_or(ErrorBound::Unknown, ErrorBound::Within),
        }
    }
}

impl fmt::Display for ErrorBound {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorBound::Within(bound) => write!(to, "{bound}"),
            ErrorBound::PerRow(bound) => write!(to, "{bound} per row"),
            ErrorBound::Unknown => to.write_str("unknown"),
        }
    }
}

/// What lossy columns do to a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Influence {
    /// How far the value may be off.
    pub bound: ErrorBound,
    /// The lossy columns it depends on.
    pub columns: BTreeSet<String>,
    /// Whether it may be a whole number, of which divisions drop the fraction.
    pub may_be_whole: bool,
}

impl Default for Influence {
    fn default() -> Self {
        Influence {
            bound: ErrorBound::EXACT,
            columns: BTreeSet::new(),
            may_be_whole: true,
        }
    }
}

impl Influence {
    /// Whether the value depends on no lossy column.
    pub fn is_none(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether it may be null where the exact value is not, or the other way round.
    fn may_move_nulls(&self) -> bool {
        !self.is_none() && self.bound == ErrorBound::Unknown
    }

    fn with(self, bound: ErrorBound) -> Self {
        match self.is_none() {
            true => self,
            false => Influence { bound, ..self },
        }
    }

    fn joined(mut self, other: &Influence, bound: ErrorBound) -> Self {
        self.columns.extend(other.columns.iter().cloned());
        self.with(bound)
    }

    /// The influence on the value where lossy `columns` decide of which row it is.
    fn found_by(mut self, columns: &BTreeSet<String>) -> Self {
        if !columns.is_empty() {
            self.columns.extend(columns.iter().cloned());
            self.bound = ErrorBound::Unknown;
        }
        self
    }

    fn of_field(field: &Field) -> Self {
        let Some(bound) = field.metadata().get(ERROR_BOUND) else {
            return Influence::default();
        };
        let columns = field.metadata().get(LOSSY_COLUMNS);
        let columns = columns.map_or(field.name().as_str(), String::as_str);
        Influence {
            bound: ErrorBound::parse(bound),
            columns: columns.split(',').map(str::to_owned).collect(),
            may_be_whole: field.data_type().is_integer(),
        }
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        names.join(",")
    }
}

/// What lossy columns do to the results of a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultBounds {
    /// Results that depend on lossy columns, by name.
    pub columns: Vec<(String, Influence)>,
    /// Lossy columns that decide which rows there are.
    pub rows: BTreeSet<String>,
}

impl ResultBounds {
    /// Whether no result depends on a lossy column.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty() && self.rows.is_empty()
    }

    /// `schema`, whose metadata says it.
    pub fn mark(&self, schema: &Schema) -> SchemaRef {
        let fields = schema.fields().iter().map(|field| {
            let found = self.columns.iter().find(|(name, _)| name == field.name());
            match found {
                Some((_, influence)) => Arc::new(marked(field, influence)),
                None => Arc::clone(field),
            }
        });
        let mut metadata: HashMap<String, String> = schema.metadata().clone();
        if !self.rows.is_empty() {
            let names: Vec<&str> = self.rows.iter().map(String::as_str).collect();
            metadata.insert(ROWS_DEPEND_ON.to_owned(), names.join(","));
        }
        Arc::new(Schema::new_with_metadata(
            fields.collect::<Vec<_>>(),
            metadata,
        ))
    }

    /// `batch`, whose schema's metadata says it.
    ///
    /// # Errors
    /// None that a whole batch could cause.
    pub fn mark_batch(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.is_empty() {
            return Ok(batch);
        }
        let schema = self.mark(batch.schema_ref());
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

/// What the metadata of results says of lossy columns, one line each.
pub fn bound_lines(schema: &Schema) -> Vec<String> {
    let mut lines = Vec::new();
    for field in schema.fields() {
        let influence = Influence::of_field(field);
        if influence.is_none() {
            continue;
        }
        let (name, from) = (field.name(), influence.names());
        lines.push(match influence.bound {
            ErrorBound::Unknown => format!("bound {name}: unknown, it depends on lossy {from}"),
            bound => format!("bound {name}: within {bound} of exact, by lossy {from}"),
        });
    }
    if let Some(columns) = schema.metadata().get(ROWS_DEPEND_ON) {
        lines.push(format!(
            "bound rows: which there are depends on lossy {columns}"
        ));
    }
    lines
}

fn marked(field: &Field, influence: &Influence) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(ERROR_BOUND.to_owned(), influence.bound.to_string());
    metadata.insert(LOSSY_COLUMNS.to_owned(), influence.names());
    field.clone().with_metadata(metadata)
}

/// `schema` with what the metadata of `from` says of its columns.
pub fn carried(schema: &SchemaRef, from: &Schema) -> SchemaRef {
    let influence = |field: &Arc<Field>| {
        let known = from.field_with_name(field.name()).ok()?;
        let influence = Influence::of_field(known);
        (!influence.is_none()).then(|| (field.name().clone(), influence))
    };
    let columns = schema.fields().iter().filter_map(influence).collect();
    let rows = rows_of(from);
    ResultBounds { columns, rows }.mark(schema)
}

/// `first`, whose metadata says what holds for its rows and those of `others` with the same
/// columns.
pub fn of_any(first: &SchemaRef, others: &[SchemaRef]) -> SchemaRef {
    let all = || std::iter::once(first).chain(others);
    let influence = |field: &Arc<Field>| {
        let fields = all().filter_map(|schema| schema.field_with_name(field.name()).ok());
        let influence = fields.map(Influence::of_field).reduce(|all, one| {
            let bound = all.bound.or(one.bound);
            all.joined(&one, bound)
        })?;
        (!influence.is_none()).then(|| (field.name().clone(), influence))
    };
    let columns = first.fields().iter().filter_map(influence).collect();
    let rows = all().flat_map(|schema| rows_of(schema)).collect();
    ResultBounds { columns, rows }.mark(first)
}

/// `schema` of what a function of the user makes of all columns of `from`.
pub fn computed_from(schema: &SchemaRef, from: &Schema) -> SchemaRef {
    let all = of_all(&names_of(from)).with(ErrorBound::Unknown);
    let fields = schema.fields().iter().filter(|_| !all.is_none());
    let columns = fields.map(|field| (field.name().clone(), all.clone()));
    let columns = columns.collect();
    let mut rows = rows_of(from);
    rows.extend(all.columns);
    ResultBounds { columns, rows }.mark(schema)
}

fn rows_of(schema: &Schema) -> BTreeSet<String> {
    let names = schema.metadata().get(ROWS_DEPEND_ON);
    let names = names.iter().flat_map(|names| names.split(','));
    names.map(str::to_owned).collect()
}

/// `schema`, whose metadata says how far the columns that `schemes` encode may be off.
pub fn encoded_by(schema: &SchemaRef, schemes: &[(String, String)]) -> SchemaRef {
    let mut columns: Vec<(String, Influence)> = Vec::new();
    for (name, scheme) in schemes {
        let added = scheme
            .parse()
            .map_or(0.0, |scheme: Scheme| scheme.error_bound());
        let Ok(field) = schema.field_with_name(name) else {
            continue;
        };
        if added > 0.0 {
            let mut influence = Influence::of_field(field);
            influence.bound = influence.bound.plus(ErrorBound::Within(added));
            influence.columns.insert(name.clone());
            // Of several schemes of one column the last one counts.
            columns.retain(|(known, _)| known != name);
            columns.push((name.clone(), influence));
        }
    }
    let rows = BTreeSet::new();
    match columns.is_empty() {
        true => Arc::clone(schema),
        false => ResultBounds { columns, rows }.mark(schema),
    }
}
