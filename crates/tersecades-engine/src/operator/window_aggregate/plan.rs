//! What a window aggregate computes, bound to slots: shared by all workers, never changed.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::Asked;
use tersecades_columnar::types::Physical;

use crate::aggregate::collected::{Collecting, Collects};
use crate::aggregate::{self, Aggregate};
use crate::expression::Expression;
use crate::expression::evaluate::BoundExpression;
use crate::frame::{Scope, Slot};
use crate::plan::AggregateCall;
use crate::window::{Shape, Window, Windowing};

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
    /// Columns of the result before the keys: start and end of the window, if it has them.
    pub window_columns: usize,
    /// Group keys.
    pub keys: KeyLayout,
    /// Arguments.
    pub arguments: Vec<Argument>,
    /// What is kept of them besides folds.
    pub collections: Vec<Collecting>,
    /// Result columns after window and keys.
    pub readings: Vec<Reading>,
    /// Schema of the result.
    pub schema: SchemaRef,
    /// One line for explain.
    pub label: String,
}

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
        (window, unit): (&Window, TimeUnit),
        keys: &[String],
        calls: &[AggregateCall],
        scope: &mut Scope,
        computed: &mut Vec<BoundExpression>,
    ) -> Result<Self> {
        let windowing = window.bind(tick_ns(unit))?;
        let mut key_columns = Vec::new();
        for name in keys {
            let (data_type, slot) = scope.find(name)?;
            key_columns.push((name.clone(), data_type.clone(), slot));
        }
        let mut fields = window_fields(window, unit);
        let window_columns = fields.len();
        fields.extend(
            key_columns
                .iter()
                .map(|(name, kind, _)| Field::new(name.as_str(), kind.clone(), true)),
        );
        let mut binder = Binder {
            plain_scope: scope.clone(),
            scope,
            computed,
            arguments: Vec::new(),
            collections: Vec::new(),
        };
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
        check_fields(&fields)?;
        let label = label(window, keys, calls);
        let schema = Arc::new(Schema::new(fields));
        let keys = KeyLayout::new(&key_columns)?;
        Ok(AggregatePlan {
            window: windowing,
            window_columns,
            keys,
            arguments: binder.arguments,
            collections: binder.collections,
            readings,
            schema,
            label,
        })
    }
}

/// Binds aggregates, of which those with one argument share it.
struct Binder<'a> {
    plain_scope: Scope,
    scope: &'a mut Scope,
    computed: &'a mut Vec<BoundExpression>,
    arguments: Vec<Argument>,
    collections: Vec<Collecting>,
}

impl Binder<'_> {
    fn bind(&mut self, call: &AggregateCall) -> Result<Reading> {
        let function = aggregate::find(&call.function)?;
        let parameter = function.parameter(call.parameter)?;
        let Some(expression) = &call.argument else {
            if function.needs_argument() {
                let message = format!("{} needs an argument", function.name());
                return Err(Error::invalid(message));
            }
            return Ok(Reading {
                aggregate: function,
                argument: None,
                collection: None,
                parameter,
                data_type: function.result_type(&DataType::Int64)?,
            });
        };
        let argument = self.argument(expression)?;
        let data_type = function.result_type(&self.arguments[argument].data_type)?;
        let by = call.by.as_ref();
        let collection = match function.collects() {
            Some(what) => Some(self.collection(function.name(), what, argument, by)?),
            None if by.is_some() => return Err(takes_one(function.name())),
            None => {
                let argument = &mut self.arguments[argument];
                argument.asked = argument.asked.or(function.asked());
                argument.folded = true;
                None
            }
        };
        Ok(Reading {
            aggregate: function,
            argument: Some(argument),
            collection,
            parameter,
            data_type,
        })
    }

    /// The index of the argument `expression`.
    fn argument(&mut self, expression: &Expression) -> Result<usize> {
        let bound = BoundExpression::bind(expression, &self.plain_scope)?;
        let known = self
            .arguments
            .iter()
            .position(|argument| argument.expression == *expression);
        if let Some(index) = known {
            return Ok(index);
        }
        let data_type = bound.data_type().clone();
        let slot = match bound.column_slot() {
            Some(slot) => slot,
            None => {
                self.computed.push(bound);
                let name = format!("\u{0}{} {expression}", self.arguments.len());
                self.scope.add(&name, data_type.clone())
            }
        };
        self.arguments.push(Argument {
            slot,
            physical: Physical::of(&data_type)?,
            data_type,
            asked: Asked::default(),
            folded: false,
            dictionary: SharedDictionary::default(),
            expression: expression.clone(),
        });
        Ok(self.arguments.len() - 1)
    }

    /// The index of the collection of an argument, which a second one may order.
    fn collection(
        &mut self,
        name: &str,
        what: Collects,
        argument: usize,
        by: Option<&Expression>,
    ) -> Result<usize> {
        let by = match (what.is_ordered(), by) {
            (false, None) => None,
            (true, Some(by)) => Some(self.argument(by)?),
            (false, Some(_)) => return Err(takes_one(name)),
            (true, None) => {
                return Err(Error::invalid(format!("{name} needs two arguments"))
                    .hint("the second says which row to take the first from"));
            }
        };
        if let Some(by) = by.map(|by| &self.arguments[by])
            && by.physical == Physical::Text
        {
            return Err(
                Error::unsupported(format!("{name} by values of {}", by.data_type))
                    .hint("order by a number or a time"),
            );
        }
        let collecting = Collecting { what, argument, by };
        let known = self
            .collections
            .iter()
            .position(|known| *known == collecting);
        Ok(known.unwrap_or_else(|| {
            self.collections.push(collecting);
            self.collections.len() - 1
        }))
    }
}

fn takes_one(name: &str) -> Error {
    Error::invalid(format!("{name} takes one argument"))
}

/// The columns that say which window a result is of.
fn window_fields(window: &Window, unit: TimeUnit) -> Vec<Field> {
    if matches!(window.shape, Shape::Global) {
        return Vec::new();
    }
    let time_type = DataType::Timestamp(unit, None);
    vec![
        Field::new("window_start", time_type.clone(), false),
        Field::new("window_end", time_type, false),
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
