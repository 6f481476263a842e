//! The tables of a session, as DataFusion's planner asks for them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, TableReference};
use datafusion_expr::planner::{ContextProvider, ExprPlanner};
use datafusion_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;
use tersecades_columnar::types::logical_type;
use tersecades_engine::expression::col;
use tersecades_engine::source::SourceOptions;
use tersecades_engine::source::location::open_table;
use tersecades_engine::source::query::QueryTable;
use tersecades_engine::source::table::Table;
use tersecades_engine::stream::Stream;

use crate::function::FUNCTIONS;
use crate::function::series::{relation, series_named};

/// Where the event time of a table is, and how late its rows may be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableTime {
    /// The column of the event time.
    pub column: String,
    /// How long after newer rows a row may come and still count.
    pub lateness: Duration,
}

/// What a name in `FROM` stands for.
pub(crate) struct Relation {
    /// Its rows.
    pub(crate) stream: Stream,
    /// Its columns, in the types the engine computes with.
    pub(crate) schema: SchemaRef,
    /// Its event time; without one, every row of a window counts whenever it comes.
    pub(crate) time: Option<TableTime>,
}

impl Relation {
    /// The same rows, of which a column is encoded by a scheme.
    pub(crate) fn encoded(&self, column: &str, scheme: &str) -> Self {
        Relation {
            stream: self.stream.clone().encoding(column, scheme),
            schema: Arc::clone(&self.schema),
            time: self.time.clone(),
        }
    }

    /// The rows of `table`.
    pub(crate) fn of_table(table: Arc<dyn Table>, time: Option<TableTime>) -> Result<Self> {
        let schema = table.schema();
        Self::of_stream(Stream::from_shared(table), &schema, time)
    }

    /// The results of `stream`; what it keeps encoded is read as it is.
    pub(crate) fn of_results(stream: Stream, time: Option<TableTime>) -> Result<Self> {
        if !stream.is_plain() {
            return Self::of_table(Arc::new(QueryTable::new(stream)?), time);
        }
        let schema = stream.schema()?;
        Self::of_stream(stream, &schema, time)
    }

    /// The rows of `stream`, whose columns are `schema`.
    pub(crate) fn of_stream(
        stream: Stream,
        schema: &Schema,
        time: Option<TableTime>,
    ) -> Result<Self> {
        let schema = logical_schema(schema);
        if let Some(time) = &time
            && schema.field_with_name(&time.column).is_err()
        {
            let names: Vec<&str> = schema
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .collect();
            let error = Error::invalid(format!("the event time `{}` is no column", time.column));
            return Err(match nearest(&time.column, &names) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("the columns are: {}", names.join(", "))),
            });
        }
        Ok(Relation {
            stream,
            schema,
            time,
        })
    }
}

/// `schema` in the types the engine computes with: text is text, however it is stored.
pub(crate) fn logical_schema(schema: &Schema) -> SchemaRef {
    let field =
        |field: &Arc<Field>| Field::new(field.name(), logical_type(field.data_type()), true);
    Arc::new(Schema::new(
        schema.fields().iter().map(field).collect::<Vec<_>>(),
    ))
}

/// A relation as DataFusion's planner holds it.
pub(crate) struct PlannedSource(pub(crate) Arc<Relation>);

impl TableSource for PlannedSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }
}

/// Finds the table of a name that a session does not know, and its event time; `None` where there
/// is none.
pub type FindTable = Arc<dyn Fn(&str) -> Result<Option<(Stream, Option<TableTime>)>> + Send + Sync>;

/// The schema under which a table is its rows by event time: `IN_ORDER(TABLE t)`.
pub(crate) const IN_ORDER: &str = "in_order()";

/// Tables by name, and how files are read.
pub(crate) struct Catalog {
    tables: BTreeMap<String, Arc<Relation>>,
    opened: Mutex<BTreeMap<String, Arc<Relation>>>,
    /// Who is asked for names that are no table.
    pub(crate) asked: Option<FindTable>,
    /// How files that queries name are read.
    pub(crate) reading: SourceOptions,
    config: ConfigOptions,
}

impl Default for Catalog {
    fn default() -> Self {
        let mut config = ConfigOptions::default();
        // What `TIMESTAMP WITH TIME ZONE` without a name is: else its zone would be forgotten.
        config.execution.time_zone = Some("UTC".to_owned());
        // Of subqueries, sorts that nothing shows are left out here (hidden_sort.rs).
        config.sql_parser.enable_subquery_sort_elimination = false;
        Catalog {
            tables: BTreeMap::new(),
            opened: Mutex::default(),
            asked: None,
            reading: SourceOptions::default(),
            config,
        }
    }
}

impl Catalog {
    /// The same tables, for another session.
    pub(crate) fn fork(&self) -> Catalog {
        Catalog {
            tables: self.tables.clone(),
            opened: Mutex::default(),
            asked: self.asked.clone(),
            reading: self.reading.clone(),
            config: self.config.clone(),
        }
    }

    /// All tables.
    pub(crate) fn tables(&self) -> &BTreeMap<String, Arc<Relation>> {
        &self.tables
    }

    /// Gives a relation a name.
    pub(crate) fn insert(&mut self, name: &str, relation: Relation) {
        self.tables.insert(name.to_owned(), Arc::new(relation));
    }

    /// Gives the table that [`Catalog::find`] finds by this name another relation.
    pub(crate) fn replace(&mut self, name: &str, relation: Arc<Relation>) {
        let known = self.known(name).ok().flatten();
        let known = known.map_or(name, |(known, _)| known).to_owned();
        self.tables.insert(known, relation);
    }

    /// Gives the name back to a relation that had it.
    pub(crate) fn restore(&mut self, name: &str, relation: Arc<Relation>) {
        self.tables.insert(name.to_owned(), relation);
    }

    /// Whether a table has this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tables.contains_key(name)
    }

    /// Columns of the table named so.
    pub(crate) fn schema_of(&self, name: &str) -> Option<SchemaRef> {
        let found = self.tables.get(name);
        found.map(|relation| Arc::clone(&relation.schema))
    }

    /// Names of the tables.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.tables.keys().map(String::as_str).collect()
    }

    /// DataFusion's options.
    pub(crate) fn config(&self) -> &ConfigOptions {
        &self.config
    }

    /// Lets go of what names in earlier statements stood for: files may have changed since. What
    /// can be read only once, as a pipe, stays, as part of it may have been read already.
    pub(crate) fn look_anew(&self) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|_, relation| !relation.stream.begins_again());
    }

    /// The table named so, or the file at that path.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Relation>> {
        if let Some((_, found)) = self.known(name)? {
            return Ok(Arc::clone(found));
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = opened.get(name) {
            return Ok(Arc::clone(found));
        }
        let found = self.asked.as_ref().map(|asked| asked(name)).transpose()?;
        let relation = match found.flatten() {
            Some((stream, time)) => Relation::of_results(stream, time)?,
            None if name.contains(['.', '/', '*']) || Path::new(name).is_dir() => {
                Relation::of_table(open_table(name, &self.reading)?, None)?
            }
            None => return Err(self.unknown(name)),
        };
        let relation = Arc::new(relation);
        opened.insert(name.to_owned(), Arc::clone(&relation));
        Ok(relation)
    }

    /// The table named so, or else the one that is but for the case of its letters, with its name.
    fn known(&self, name: &str) -> Result<Option<(&String, &Arc<Relation>)>> {
        if let Some(found) = self.tables.get_key_value(name) {
            return Ok(Some(found));
        }
        let folded = name.to_lowercase();
        let alike = self.tables.iter();
        let mut alike = alike.filter(|(known, _)| known.to_lowercase() == folded);
        match (alike.next(), alike.next()) {
            (Some((one, _)), Some((other, _))) => {
                let message = format!("table `{name}` is ambiguous: `{one}` or `{other}`");
                let hint = format!("write one in double quotes, which are exact: \"{one}\"");
                Err(Error::invalid(message).hint(hint))
            }
            (found, _) => Ok(found),
        }
    }

    /// The rows of the table named so by event time.
    fn find_in_order(&self, name: &str) -> Result<Relation> {
        let relation = self.find(name)?;
        let Some(time) = &relation.time else {
            let error = Error::invalid(format!("IN_ORDER needs the event time of `{name}`"));
            return Err(error.hint(
                "write CREATE STREAM ... WATERMARK FOR ts AS ts - INTERVAL '2' SECOND, \
                 or give --table NAME=PATH,event_time=COLUMN,lateness=2s",
            ));
        };
        let stream = relation.stream.clone();
        let stream = stream.event_time(col(time.column.as_str()), time.lateness);
        let time = TableTime {
            column: time.column.clone(),
            lateness: Duration::ZERO,
        };
        Relation::of_stream(stream.in_order()?, &relation.schema, Some(time))
    }

    fn unknown(&self, name: &str) -> Error {
        let error = Error::invalid(format!("unknown table `{name}`"));
        let names = self.names();
        match nearest(&name.to_lowercase(), &names).or_else(|| nearest(name, &names)) {
            Some(near) if names.len() == 1 => error.hint(format!("did you mean `{near}`?")),
            Some(near) => {
                let tables = names.join(", ");
                error.hint(format!("did you mean `{near}`? the tables are: {tables}"))
            }
            None if names.is_empty() => {
                error.hint("name a file in quotes, as FROM 'probes.parquet', or give --table")
            }
            None => error.hint(format!("the tables are: {}", names.join(", "))),
        }
    }
}

impl ContextProvider for Catalog {
    fn get_table_source(
        &self,
        name: TableReference,
    ) -> datafusion_common::Result<Arc<dyn TableSource>> {
        let found = match &name {
            TableReference::Bare { table } => self.find(table),
            TableReference::Partial { schema, table } if &**schema == IN_ORDER => {
                self.find_in_order(table).map(Arc::new)
            }
            other => self.find(&other.to_string()),
        };
        let found = found.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(Arc::new(PlannedSource(found)))
    }

    fn get_table_function_source(
        &self,
        name: &str,
        arguments: Vec<Expr>,
    ) -> datafusion_common::Result<Arc<dyn TableSource>> {
        let name = series_named(name.trim_matches('"'));
        let relation = name.map(|name| relation(name, &arguments));
        // Others are refused before a query is planned.
        let relation = relation.unwrap_or_else(|| Err(Error::internal("no such table function")));
        let relation = relation.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(Arc::new(PlannedSource(Arc::new(relation))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &FUNCTIONS.planners
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        FUNCTIONS.scalars.get(name).cloned()
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        FUNCTIONS.aggregates.get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        FUNCTIONS.over.get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.config
    }

    fn udf_names(&self) -> Vec<String> {
        FUNCTIONS.scalars.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        FUNCTIONS.aggregates.keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        FUNCTIONS.over.keys().cloned().collect()
    }
}
