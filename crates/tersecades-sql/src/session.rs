//! A session: tables by name, options, and statements run over them.

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_schema::SchemaRef;
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_sql::sqlparser::ast::Query;
use tersecades_columnar::batch::Layout;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::Tier;
use tersecades_columnar::nearest::nearest;
use tersecades_columnar::scheme::Scheme;
use tersecades_engine::runtime::{Interrupt, OnLimit, THREADS_MAX};
use tersecades_engine::source::SourceOptions;
use tersecades_engine::source::location::open_table;
use tersecades_engine::source::table::Table;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Emit, Updates};

use crate::answer::Answer;
use crate::catalog::{Catalog, Relation, TableTime};
use crate::error::{at_place, of_datafusion};
use crate::function::FUNCTIONS;
use crate::keep::KeptStream;
use crate::lower::Lowering;
use crate::lower::window::length;
use crate::parse::clause::{Clauses, EmitClause};
use crate::parse::{self, Asked, Command};
use crate::plan;

/// Stack of the thread that plans: plans of long queries are deep trees.
const PLANNING_STACK_BYTES: usize = 256 << 20;

/// How the queries of a session run.
#[derive(Debug, Clone)]
pub(crate) struct RunSettings {
    pub(crate) threads: usize,
    pub(crate) memory_limit_bytes: Option<usize>,
    pub(crate) on_limit: OnLimit,
    pub(crate) tier: Option<Tier>,
    pub(crate) reads: Option<f64>,
    pub(crate) layout: Option<Layout>,
    pub(crate) interrupt: Interrupt,
}

impl RunSettings {
    /// The stream with these settings.
    pub(crate) fn apply(&self, stream: Stream) -> Stream {
        let stream = match self.threads {
            0 | 1 => stream,
            threads => stream.threads(threads),
        };
        let stream = match self.memory_limit_bytes {
            Some(bytes) => stream.memory_limit(bytes).on_limit(self.on_limit),
            None => stream,
        };
        let stream = match self.tier {
            Some(tier) => stream.tier(tier),
            None => stream,
        };
        let stream = match self.reads {
            Some(times) => stream.reads(times),
            None => stream,
        };
        let stream = match self.layout {
            Some(layout) => stream.layout(layout),
            None => stream,
        };
        stream.interrupt(self.interrupt.clone())
    }
}

/// Tables by name, options, and the statements that run over them.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use tersecades_engine::source::table::MemoryTable;
/// use tersecades_sql::{Answer, Session};
/// let rtt: ArrayRef = Arc::new(Int64Array::from(vec![10, 500, 30]));
/// let rows = RecordBatch::try_from_iter([("rtt", rtt)])?;
/// let mut session = Session::default();
/// session.register("probes", Arc::new(MemoryTable::new(rows.schema(), vec![rows])), None)?;
/// let answers = session.sql("SELECT max(rtt) AS worst FROM probes WHERE rtt < 100")?;
/// for answer in answers {
///     let Answer::Rows(results) = answer else { continue };
///     for batch in results {
///         assert_eq!(batch?.num_rows(), 1);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    pub(crate) catalog: Catalog,
    pub(crate) settings: RunSettings,
    /// Streams that are being written to stores.
    pub(crate) kept: Arc<Mutex<Vec<KeptStream>>>,
}

impl Default for Session {
    fn default() -> Self {
        Session {
            catalog: Catalog::default(),
            settings: RunSettings {
                threads: 1,
                memory_limit_bytes: None,
                on_limit: OnLimit::default(),
                tier: None,
                reads: None,
                layout: None,
                interrupt: Interrupt::default(),
            },
            kept: Arc::default(),
        }
    }
}

/// Options that `SET` and the command line know: name, what it is.
pub const OPTIONS: &[(&str, &str)] = &[
    ("batch_rows", "most rows in a batch"),
    ("threads", "worker threads"),
    (
        "memory_limit_bytes",
        "most bytes of window state, of a kept stream, of a table",
    ),
    (
        "on_limit",
        "at that limit: refuse, or shorten or spill what a stream keeps",
    ),
    (
        "tier",
        "what is kept is encoded for: hot use, or cold, smaller and slower",
    ),
    (
        "reads",
        "how often what is kept will be read, which codecs are chosen by",
    ),
    (
        "layout",
        "how what is kept lies: column by column, or row after row",
    ),
    (
        "encoding.TABLE.COLUMN",
        "how a column is encoded, as zfp(0.01), instead of a choice",
    ),
];

impl Session {
    /// How files that queries name are read.
    pub fn read_files_with(&mut self, options: SourceOptions) {
        self.catalog.reading = options;
    }

    /// What is asked between any two batches of a statement whether it may go on.
    pub fn interrupt_with(&mut self, interrupt: Interrupt) {
        self.settings.interrupt = interrupt;
    }

    /// Gives `table` the name `name`; a table that has it already is replaced.
    ///
    /// # Errors
    /// `InvalidArgument` when the event time is no column of it.
    pub fn register(
        &mut self,
        name: &str,
        table: Arc<dyn Table>,
        time: Option<TableTime>,
    ) -> Result<()> {
        self.give_name(name, Relation::of_table(table, time)?);
        Ok(())
    }

    /// Gives the results of `stream` the name `name`.
    ///
    /// # Errors
    /// What binding the stream says; `InvalidArgument` when the event time is no column of it.
    pub fn register_stream(
        &mut self,
        name: &str,
        stream: Stream,
        time: Option<TableTime>,
    ) -> Result<()> {
        self.give_name(name, Relation::of_results(stream, time)?);
        Ok(())
    }

    /// Gives the rows of a file, or of the files of a glob or a folder, the name `name`.
    ///
    /// # Errors
    /// What opening the file says.
    pub fn register_file(
        &mut self,
        name: &str,
        path: impl AsRef<Path>,
        time: Option<TableTime>,
    ) -> Result<()> {
        self.register_file_as(name, path, None, time)
    }

    /// As [`Session::register_file`], in a format that is named; standard input is `-`.
    ///
    /// # Errors
    /// What opening the file says.
    pub fn register_file_as(
        &mut self,
        name: &str,
        path: impl AsRef<Path>,
        format: Option<&str>,
        time: Option<TableTime>,
    ) -> Result<()> {
        let mut reading = self.catalog.reading.clone();
        reading.format = format.map(str::to_owned).or(reading.format);
        let table = open_table(path.as_ref(), &reading)?;
        self.register(name, table, time)
    }

    /// Encodes a column of a registered table by a scheme, as `zfp(0.01)`, instead of a choice;
    /// what that does to results is in the metadata of their schema.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown tables, columns and codecs.
    pub fn encode(&mut self, table: &str, column: &str, scheme: &str) -> Result<()> {
        scheme.parse::<Scheme>()?;
        let relation = self.catalog.find(table)?;
        let names: Vec<&str> = relation
            .schema
            .fields()
            .iter()
            .map(|it| it.name().as_str())
            .collect();
        if !names.contains(&column) {
            let error = Error::invalid(format!("`{table}` has no column `{column}`"));
            return Err(match nearest(column, &names) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("its columns are: {}", names.join(", "))),
            });
        }
        let encoded = relation.encoded(column, scheme);
        self.catalog.replace(table, Arc::new(encoded));
        Ok(())
    }

    /// Names of the tables.
    pub fn table_names(&self) -> Vec<&str> {
        self.catalog.names()
    }

    /// Columns of the table named `name`.
    pub fn table_schema(&self, name: &str) -> Option<SchemaRef> {
        self.catalog.schema_of(name)
    }

    /// Names of the functions that queries may call.
    pub fn function_names(&self) -> impl Iterator<Item = &'static str> {
        FUNCTIONS.names()
    }

    /// Sets one of [`OPTIONS`].
    ///
    /// # Errors
    /// `InvalidArgument` for unknown options and values that do not fit.
    pub fn set(&mut self, option: &str, value: &str) -> Result<()> {
        let number = || -> Result<usize> {
            let value = value.replace('_', "");
            let number = value
                .trim_matches('\'')
                .parse::<usize>()
                .ok()
                .filter(|number| *number > 0);
            number.ok_or_else(|| Error::invalid(format!("{option} must be 1 or more, got {value}")))
        };
        if let Some((table, column)) = option
            .strip_prefix("encoding.")
            .and_then(|place| place.rsplit_once('.'))
        {
            return self.encode(table, column, value.trim_matches('\''));
        }
        match option {
            "batch_rows" => self.catalog.reading.batch_rows = number()?,
            "threads" => match number()? {
                threads if threads > THREADS_MAX => {
                    let message = format!("threads must be {THREADS_MAX} or less, got {threads}");
                    return Err(Error::invalid(message));
                }
                threads => self.settings.threads = threads,
            },
            "memory_limit_bytes" => self.settings.memory_limit_bytes = Some(number()?),
            "on_limit" => self.settings.on_limit = one_of(option, value, &ON_LIMIT)?,
            "tier" => self.settings.tier = Some(one_of(option, value, &TIERS)?),
            "reads" => self.settings.reads = Some(number()? as f64),
            "layout" => self.settings.layout = Some(one_of(option, value, &LAYOUTS)?),
            _ => {
                let known: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
                let error = Error::invalid(format!("unknown option `{option}`"));
                return Err(match nearest(option, &known) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint(format!("the options are: {}", known.join(", "))),
                });
            }
        }
        Ok(())
    }

    /// Runs the statements of `text` one after the other. Rows come as they are asked for; all
    /// but the last statement must give none that matter, as they have run only when read.
    ///
    /// # Errors
    /// What parsing, planning and running say, with line and column.
    pub fn sql(&mut self, text: &str) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for command in parse::parse(text)? {
            answers.push(self.run_command(command)?);
        }
        match answers.is_empty() {
            true => Err(Error::invalid("there is no statement").hint("write SELECT ...")),
            false => Ok(answers),
        }
    }

    /// The stream that the query `text` stands for.
    ///
    /// # Errors
    /// What parsing and planning say; `InvalidArgument` for anything but one query.
    pub fn stream(&self, text: &str) -> Result<Stream> {
        self.catalog.look_anew();
        let mut commands = parse::parse(text)?;
        match (commands.pop(), commands.is_empty()) {
            (Some(Command::Query(asked)), true) if asked.clauses.late_into.is_none() => {
                self.lower(asked)
            }
            _ => Err(Error::invalid("expected one query").hint("write SELECT ...")),
        }
    }

    /// Plans a query and lowers it.
    ///
    /// # Errors
    /// What planning says, with line and column.
    pub(crate) fn lower(&self, asked: impl Into<Asked>) -> Result<Stream> {
        self.planned(asked).map(|(_, stream)| stream)
    }

    /// As [`Session::planned`], of a query that runs once, and now.
    ///
    /// # Errors
    /// As [`Session::planned`]; what reading small tables that rows are looked up in says.
    pub(crate) fn planned_once(&self, asked: Asked) -> Result<(LogicalPlan, Stream)> {
        self.planned_for(asked, true)
    }

    /// The plan of a query, and what it is lowered to.
    ///
    /// # Errors
    /// What planning says, with line and column.
    pub(crate) fn planned(&self, asked: impl Into<Asked>) -> Result<(LogicalPlan, Stream)> {
        self.planned_for(asked.into(), false)
    }

    fn planned_for(&self, asked: Asked, runs_once: bool) -> Result<(LogicalPlan, Stream)> {
        let Asked { query, clauses } = asked;
        let updates = self.updates_of(&clauses)?;
        let with_options = |stream| self.settings.apply(stream);
        let lowered = |plan: LogicalPlan| {
            let stream = Lowering {
                with_options: &with_options,
                interrupt: self.settings.interrupt.clone(),
                updates: Cell::new(updates),
                limited: Cell::default(),
                runs_once,
            }
            .query(&plan)?;
            Ok((plan, stream))
        };
        self.with_plan(query, lowered)
    }

    /// When the results of windows come, where the clauses of a query say so.
    fn updates_of(&self, clauses: &Clauses) -> Result<Option<Updates>> {
        let late = clauses.allowed_lateness.as_deref();
        let late = late.map(|text| self.length_of(text, "ALLOWED LATENESS"));
        let emit = match &clauses.emit {
            None | Some(EmitClause::Final) => Emit::Final,
            Some(EmitClause::Update) => Emit::Update,
            Some(EmitClause::Every(text)) => Emit::Every(self.length_of(text, "EMIT EVERY")?),
        };
        let updates = Updates {
            allowed_lateness: late.transpose()?.unwrap_or_default(),
            emit,
        };
        Ok(updates.are_possible().then_some(updates))
    }

    /// The length of time that the interval `text` is.
    ///
    /// # Errors
    /// What parsing says; `InvalidArgument` for anything but a constant interval.
    pub(crate) fn length_of(&self, text: &str, usage: &str) -> Result<Duration> {
        length(&self.constant(text)?, usage)
    }

    /// The constant that `text` is.
    ///
    /// # Errors
    /// What parsing and planning say; `InvalidArgument` when it is none.
    pub(crate) fn constant(&self, text: &str) -> Result<Expr> {
        let mut commands = parse::parse(&format!("SELECT {text}"))?;
        let Some(Command::Query(Asked { query, .. })) = commands.pop() else {
            return Err(Error::invalid(format!("`{text}` is no constant")));
        };
        let found = |plan: LogicalPlan| match plan {
            LogicalPlan::Projection(projection) => {
                let expr = projection.expr.into_iter().next();
                expr.ok_or_else(|| Error::internal("a projection without columns"))
            }
            _ => Err(Error::invalid(format!("`{text}` is no constant"))),
        };
        self.with_plan(query, found)
    }

    /// Does something with the plan of a query, on a thread with room for deep trees.
    fn with_plan<T: Send>(
        &self,
        mut query: Box<Query>,
        then: impl FnOnce(LogicalPlan) -> Result<T> + Send,
    ) -> Result<T> {
        let plan_then = || {
            let written = query.clone();
            let planned = || {
                parse::power::bind(&mut query);
                parse::bits::bind(&mut query);
                parse::distinct_from::bind(&mut query);
                parse::shadow::tell_apart(&mut query);
                parse::from_first::select_all(&mut query);
                parse::order_by::by_all(&mut query)?;
                parse::named_window::write_out(&mut query)?;
                parse::column_name::name_by_text(&mut query);
                parse::grouping::expand(&mut query)?;
                parse::row::compare(&mut query)?;
                parse::similar::match_patterns(&mut query)?;
                parse::window::rewrite(&mut query)?;
                parse::using::pivot::expand(&mut query, &self.catalog)?;
                parse::using::letter_case::as_in_tables(&mut query, &self.catalog);
                parse::using::sorted::by_tables(&mut query, &self.catalog)?;
                parse::using::rename::expand(&mut query, &self.catalog)?;
                parse::column_name::tell_apart(&mut query);
                parse::using::merge_keys(&mut query, &self.catalog);
                parse::check::check(&query)?;
                parse::row_in::look_up(&mut query)?;
                let plan = plan::plan(query, &self.catalog);
                then(plan.map_err(|error| of_datafusion(&error))?)
            };
            planned().map_err(|error: Error| at_place(&error, &written))
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(PLANNING_STACK_BYTES);
            let planning = thread.spawn_scoped(scope, plan_then)?;
            let failed = |_| Error::internal("planning the query failed");
            planning.join().map_err(failed)?
        })
    }
}

const ON_LIMIT: [(&str, OnLimit); 3] = [
    ("refuse", OnLimit::Refuse),
    ("shorten", OnLimit::Shorten),
    ("spill", OnLimit::Spill),
];
const TIERS: [(&str, Tier); 2] = [("hot", Tier::Hot), ("cold", Tier::Cold)];
const LAYOUTS: [(&str, Layout); 2] = [("column", Layout::Column), ("row", Layout::Row)];

/// What `value` names of `known`.
fn one_of<T: Copy>(option: &str, value: &str, known: &[(&str, T)]) -> Result<T> {
    let value = value.trim_matches('\'');
    let named = known.iter().find(|(name, _)| *name == value);
    named.map(|(_, meant)| *meant).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Error::invalid(format!("unknown {option} `{value}`"))
            .hint(format!("it is {}", names.join(" or ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_at_the_limit_is_one_of_three() {
        let mut session = Session::default();
        assert_eq!(session.settings.on_limit, OnLimit::Refuse);
        session.set("on_limit", "'spill'").unwrap();
        assert_eq!(session.settings.on_limit, OnLimit::Spill);
        let error = session.set("on_limit", "burst").unwrap_err();
        assert!(error.hint_text().unwrap().contains("shorten or spill"));
    }
}
