//! What a window aggregate computes, bound to slots: shared by all workers, never changed.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::Asked;
use tersecades_columnar::types::Physical;

use crate::aggregate::Aggregate;
use crate::aggregate::collected::{Collecting, Kind, Second};
use crate::event_time::Closing;
use crate::expression::Expression;
use crate::expression::evaluate::BoundExpression;
use crate::frame::{Scope, Slot};
use crate::plan::AggregateCall;
use crate::runtime::Interrupt;
use crate::window::global::Forever;
use crate::window::{Boundaries, Emission, Window, Windowing};

use super::bind::Binder;
use super::feed::Sharing;
use super::first::FirstGroups;
use super::keys::{KeyLayout, SharedDictionary};

/// One argument, folded once for all aggregates that read it.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Where a frame keeps it.
    pub slot: Slot,
    /// Its type.
    pub data_type: DataType,
    /// Its shape.
    pub physical: Physical,
    /// Parts of the fold that some aggregate reads.
    pub asked: Asked,
    /// Whether some aggregate reads the fold at all.
    pub folded: bool,
    /// The dictionary that codes of a text argument mean.
    pub dictionary: SharedDictionary,
    /// What it is, as users wrote it.
    pub expression: Expression,
    /// Index of the filter of its rows.
    pub filter: Option<usize>,
    /// Expression and filter, as users wrote them.
    pub label: String,
}

impl Argument {
    /// Digits after the point of a decimal; 0 for other types.
    pub fn scale(&self) -> i8 {
        match self.data_type {
            DataType::Decimal128(_, scale) => scale,
            _ => 0,
        }
    }
}

/// One aggregate of the result.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The aggregate.
    pub aggregate: &'static dyn Aggregate,
    /// Index of its argument; `None` for counting rows.
    pub argument: Option<usize>,
    /// Index of the collection it reads instead of the fold.
    pub collection: Option<usize>,
    /// The number the aggregate takes.
    pub parameter: f64,
    /// Type of the result.
    pub data_type: DataType,
}

/// Keys, arguments and readings of a window aggregate.
#[derive(Debug, Clone)]
pub struct AggregatePlan {
    /// The windows, in ticks of the event time.
    pub window: Windowing,
    /// When windows come out, if that is not once.
    pub emission: Option<Emission>,
    /// Columns of the result before the keys: start and end of the window, if it has them.
    pub window_columns: usize,
    /// Whether frames carry an event time.
    pub timed: bool,
    /// Group keys.
    pub keys: KeyLayout,
    /// Arguments.
    pub arguments: Vec<Argument>,
    /// What is kept of them besides folds.
    pub collections: Vec<Collecting>,
    /// Where frames keep the conditions that aggregates filter their rows by.
    pub filters: Vec<Slot>,
    /// Result columns after window and keys.
    pub readings: Vec<Reading>,
    /// Schema of the result.
    pub schema: SchemaRef,
    /// One line for explain.
    pub label: String,
    /// Threads that may work on a result.
    pub threads: usize,
    /// Whether panes are filled for others, or by others.
    pub sharing: Sharing,
    /// The groups that are asked for, where not all are.
    pub first: Option<FirstGroups>,
    /// Asked between two of many windows that come out at once.
    pub interrupt: Interrupt,
}

/// The last column of results that may be replaced: `insert`, `update` or `delete`.
pub const CHANGE: &str = "change";

/// Nanoseconds of one tick of `unit`.
pub fn tick_ns(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

impl AggregatePlan {
    /// Binds keys and aggregates. Arguments that must be computed are appended to `computed`,
    /// in the order in which they take derived slots.
    ///
    /// # Errors
    /// `InvalidArgument` and `SchemaMismatch` for unknown names, wrong types, doubled outputs.
    pub fn bind(
        (window, time_type, timed): (&Window, DataType, bool),
        keys: &[String],
        calls: &[AggregateCall],
        scope: &mut Scope,
        computed: &mut Vec<BoundExpression>,
    ) -> Result<Self> {
        let DataType::Timestamp(unit, _) = time_type else {
            return Err(Error::internal("windows of what is no time"));
        };
        let windowing = window.bind(tick_ns(unit))?;
        let emission = window.emission(tick_ns(unit))?;
        let mut key_columns = Vec::new();
        for name in keys {
            let (data_type, slot) = scope.find(name)?;
            key_columns.push((name.clone(), data_type.clone(), slot));
        }
        let mut fields = window_fields(window, time_type, timed);
        let window_columns = fields.len();
        fields.extend(
            key_columns
                .iter()
                .map(|(name, kind, _)| Field::new(name.as_str(), kind.clone(), true)),
        );
        let mut binder = Binder::new(scope, computed, window.shape.goes_by_time());
        let mut readings = Vec::new();
        for call in calls {
            let reading = binder
                .bind(call)
                .map_err(|error| error.column(call.output.as_str()))?;
            fields.push(Field::new(
                call.output.as_str(),
                reading.data_type.clone(),
                true,
            ));
            readings.push(reading);
        }
        if emission.is_some() && !fields.is_empty() {
            fields.push(Field::new(CHANGE, DataType::Utf8, false));
        }
        check_fields(&fields)?;
        let label = label(window, keys, calls);
        let schema = Arc::new(Schema::new(fields));
        let keys = KeyLayout::new(&key_columns)?;
        Ok(AggregatePlan {
            window: windowing,
            emission,
            window_columns,
            timed,
            keys,
            arguments: binder.arguments,
            collections: binder.collections,
            filters: binder.filters.into_iter().map(|(_, slot)| slot).collect(),
            readings,
            schema,
            label,
            threads: 1,
            sharing: Sharing::Alone,
            first: None,
            interrupt: Interrupt::default(),
        })
    }
}

impl AggregatePlan {
    /// Which columns of the result are keys.
    pub fn key_columns(&self) -> Range<usize> {
        self.window_columns..self.window_columns + self.keys.columns.len()
    }

    /// The argument that is added up as rows are counted: the first of integers that has a sum.
    pub fn counted_argument(&self) -> Option<(usize, &Argument)> {
        self.arguments.iter().enumerate().find(|(_, argument)| {
            argument.filter.is_none()
                && argument.folded
                && argument.asked.sum
                && !argument.asked.squares
                && matches!(argument.physical, Physical::Integer { .. })
        })
    }

    /// Where the only argument is, if nothing but its fold and its rows are read, in windows whose
    /// ends all rows share: a test of it may be [left over](crate::frame::Frame::left_over).
    pub fn tested_slot(&self) -> Option<Slot> {
        let ends_shared = matches!(self.window, Windowing::Global | Windowing::Aligned(_));
        let alone = self.keys.columns.is_empty()
            && self.filters.is_empty()
            && self.collections.is_empty()
            && self.emission.is_none()
            && matches!(self.sharing, Sharing::Alone);
        let only = self.arguments.first().filter(|argument| {
            self.arguments.len() == 1
                && argument.folded
                && argument.filter.is_none()
                && matches!(argument.physical, Physical::Integer { .. })
        });
        only.filter(|_| ends_shared && alone)
            .map(|argument| argument.slot)
    }

    /// Whether rows must come in some order of time: to be in windows, or for results to come by.
    pub fn needs_time(&self) -> bool {
        self.window.needs_time() || self.emission.is_some_and(|emission| emission.is_periodic())
    }

    /// What results come by, where that cuts batches; sessions, and windows that fill, come behind
    /// whole ones.
    pub fn closing(&self) -> Option<Closing<'_>> {
        let emission = self.emission;
        let boundaries: &dyn Boundaries = match &self.window {
            Windowing::Aligned(boundaries) => &**boundaries,
            Windowing::Global | Windowing::Count { .. }
                if emission.is_some_and(|emission| emission.is_periodic()) =>
            {
                &Forever
            }
            _ => return None,
        };
        Some(Closing {
            boundaries,
            emission,
        })
    }

    /// Whether the state of a group does not grow with its rows.
    pub fn is_compact(&self) -> bool {
        self.collections.iter().all(|collecting| {
            matches!(&collecting.kind, Kind::Listed(kept) if kept.second != Second::No)
        })
    }
}

impl AggregatePlan {
    /// Whether groups can be taken away from others that they were merged into, without a trace:
    /// counts, sums and squares of integers, which are exact and cannot overflow.
    pub fn is_invertible(&self) -> bool {
        let mut arguments = self.arguments.iter().filter(|argument| argument.folded);
        let integer = |argument: &Argument| matches!(argument.physical, Physical::Integer { .. });
        self.collections.is_empty()
            && arguments.all(|argument| {
                let Asked { sum, squares, ends } = argument.asked;
                !ends && (integer(argument) || !sum && !squares)
            })
    }
}

/// The columns that say which window a result is of.
fn window_fields(window: &Window, time_type: DataType, timed: bool) -> Vec<Field> {
    if !timed || !window.reads_time() {
        return Vec::new();
    }
    let nullable = !window.shape.goes_by_time();
    vec![
        Field::new("window_start", time_type.clone(), nullable),
        Field::new("window_end", time_type, nullable),
    ]
}

fn check_fields(fields: &[Field]) -> Result<()> {
    if fields.is_empty() {
        return Err(Error::invalid("a group-by without result columns")
            .hint("name a key to group by, or an aggregate to compute"));
    }
    for (index, field) in fields.iter().enumerate() {
        if fields[..index]
            .iter()
            .any(|earlier| earlier.name() == field.name())
        {
            return Err(
                Error::invalid(format!("two result columns are named `{}`", field.name()))
                    .hint("give one of them another name with .alias(…)"),
            );
        }
    }
    Ok(())
}

fn label(window: &Window, keys: &[String], calls: &[AggregateCall]) -> String {
    let outputs: Vec<&str> = calls.iter().map(|call| call.output.as_str()).collect();
    format!(
        "{window} group by [{}] compute [{}]",
        keys.join(", "),
        outputs.join(", ")
    )
}
