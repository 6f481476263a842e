//! Event time, bound to the columns of a stage.

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};

use crate::expression::{BoundExpression, col};
use crate::frame::{EVENT_TIME, Frame, Scope, Slot};
use crate::plan::EventTime;

/// Binds event time: computed, or a column as it is.
pub struct BoundTime {
    /// The computation, unless a column serves as it is.
    pub computed: Option<BoundExpression>,
    /// Where frames keep the event time.
    pub slot: Slot,
    /// Its unit.
    pub unit: TimeUnit,
    /// The zone that its times are shown in.
    pub zone: Option<Arc<str>>,
}

impl BoundTime {
    /// Puts the event time of the rows of `frame` into its slot, where it is computed.
    ///
    /// # Errors
    /// What the computation says.
    pub fn evaluate(&mut self, frame: &mut Frame, work: &mut Work) -> Result<()> {
        let Some(computed) = &mut self.computed else {
            return Ok(());
        };
        let mut column = frame.take_derived();
        computed.evaluate(frame, &mut column, work)?;
        frame.put_derived(column);
        Ok(())
    }
}

/// Binds `event_time` in `scope`; a computed time takes the first derived slot.
///
/// # Errors
/// `SchemaMismatch` when the expression is neither a time nor an integer.
pub fn bind_time(event_time: &EventTime, scope: &mut Scope) -> Result<BoundTime> {
    let expression = event_time.clone().without_dates(scope).expression;
    let bound = BoundExpression::bind(&expression, scope);
    let is_default = event_time.expression == col("timestamp");
    let bound = bound.map_err(|error| match is_default {
        true => no_event_time(&error),
        false => error,
    })?;
    let (unit, zone) = match bound.data_type() {
        DataType::Timestamp(unit, zone) => (*unit, zone.clone()),
        integer if integer.is_integer() => (event_time.unit, None),
        other => {
            let message = format!("event time `{}` is {other}", event_time.expression);
            return Err(Error::schema(message)
                .hint("event times are timestamps, dates, and integers of a unit that is said"));
        }
    };
    let (slot, computed) = match bound.column_slot() {
        Some(slot) => {
            scope.name_event_time(slot, bound.data_type().clone());
            (slot, None)
        }
        None => {
            let slot = scope.add(EVENT_TIME, bound.data_type().clone());
            (slot, Some(bound))
        }
    };
    Ok(BoundTime {
        computed,
        slot,
        unit,
        zone,
    })
}

/// Why there is no event time: nobody has said which column it is.
fn no_event_time(unknown: &Error) -> Error {
    let known = unknown.hint_text().unwrap_or_default();
    let hint = format!("say which column it is: event_time=\"ts\" or .event_time(...); {known}");
    Error::invalid("the rows have no event time: no column is `timestamp`").hint(hint)
}
