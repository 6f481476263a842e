//! What a window aggregate computes, bound to slots: shared by all workers, never changed.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::Asked;
use tersecades_columnar::types::Physical;

use crate::aggregate::{self, Aggregate};
use crate::expression::evaluate::BoundExpression;
use crate::frame::{Scope, Slot};
use crate::plan::AggregateCall;
use crate::window::{Window, WindowTicks};

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
    /// The dictionary that codes of a text argument mean.
    pub dictionary: SharedDictionary,
    /// How users wrote it.
    pub label: String,
}

/// One aggregate of the result.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The aggregate.
    pub aggregate: &'static dyn Aggregate,
    /// Index of its argument; `None` for counting rows.
    pub argument: Option<usize>,
    /// Type of the result.
    pub data_type: DataType,
}

/// Keys, arguments and readings of a window aggregate.
#[derive(Debug, Clone)]
pub struct AggregatePlan {
    /// The windows, in ticks of the event time.
    pub window: WindowTicks,
    /// Group keys.
    pub keys: KeyLayout,
    /// Arguments.
    pub arguments: Vec<Argument>,
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
        let ticks = window.in_ticks(tick_ns(unit))?;
        let mut key_columns = Vec::new();
        for name in keys {
            let (data_type, slot) = scope.find(name)?;
            key_columns.push((name.clone(), data_type.clone(), slot));
        }
        let time_type = DataType::Timestamp(unit, None);
        let mut fields = vec![
            Field::new("window_start", time_type.clone(), false),
            Field::new("window_end", time_type, false),
        ];
        fields.extend(
            key_columns
                .iter()
                .map(|(name, kind, _)| Field::new(name.as_str(), kind.clone(), true)),
        );
        let mut arguments: Vec<Argument> = Vec::new();
        let mut readings = Vec::new();
        let plain_scope = scope.clone();
        for call in calls {
            let reading = bind_call(call, &plain_scope, scope, &mut arguments, computed)
                .map_err(|error| error.column(call.output.as_str()))?;
            fields.push(Field::new(
                call.output.as_str(),
                reading.data_type.clone(),
                true,
            ));
            readings.push(reading);
        }
        check_unique(&fields)?;
        let label = label(window, keys, calls);
        let schema = Arc::new(Schema::new(fields));
        let keys = KeyLayout::new(&key_columns)?;
        Ok(AggregatePlan {
            window: ticks,
            keys,
            arguments,
            readings,
            schema,
            label,
        })
    }
}

fn bind_call(
    call: &AggregateCall,
    plain_scope: &Scope,
    scope: &mut Scope,
    arguments: &mut Vec<Argument>,
    computed: &mut Vec<BoundExpression>,
) -> Result<Reading> {
    let function = aggregate::find(&call.function)?;
    let Some(expression) = &call.argument else {
        if function.needs_argument() {
            return Err(Error::invalid(format!(
                "{} needs an argument",
                function.name()
            )));
        }
        let data_type = function.result_type(&DataType::Int64)?;
        return Ok(Reading {
            aggregate: function,
            argument: None,
            data_type,
        });
    };
    let bound = BoundExpression::bind(expression, plain_scope)?;
    let result_type = function.result_type(bound.data_type())?;
    let label = expression.to_string();
    let known = arguments
        .iter()
        .position(|argument| argument.label == label);
    let index = match known {
        Some(index) => index,
        None => {
            let data_type = bound.data_type().clone();
            let slot = match bound.column_slot() {
                Some(slot) => slot,
                None => {
                    computed.push(bound);
                    scope.add(&format!("\u{0}{label}"), data_type.clone())
                }
            };
            let physical = Physical::of(&data_type)?;
            let asked = Asked::default();
            let dictionary = SharedDictionary::default();
            arguments.push(Argument {
                slot,
                data_type,
                physical,
                asked,
                dictionary,
                label,
            });
            arguments.len() - 1
        }
    };
    arguments[index].asked = arguments[index].asked.or(function.asked());
    Ok(Reading {
        aggregate: function,
        argument: Some(index),
        data_type: result_type,
    })
}

fn check_unique(fields: &[Field]) -> Result<()> {
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
    let sizes = match window.slide == window.size {
        true => format!("{:?}", window.size),
        false => format!("{:?} every {:?}", window.size, window.slide),
    };
    format!(
        "{} {sizes} group by [{}] compute [{}]",
        window.kind,
        keys.join(", "),
        outputs.join(", ")
    )
}
