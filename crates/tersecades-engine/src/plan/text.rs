//! A query as text: what it asks, in full; two queries with one text give one answer.

use std::fmt;
use std::time::Duration;

use super::{AggregateCall, Query, Step};

impl fmt::Display for Query {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = &self.event_time;
        let (expression, unit, lateness) = (&time.expression, time.unit, time.lateness);
        match lateness {
            Duration::MAX => writeln!(to, "event time {expression} in {unit:?}, in any order")?,
            _ => writeln!(to, "event time {expression} in {unit:?}, {lateness:?} late")?,
        }
        self.steps
            .iter()
            .try_for_each(|step| writeln!(to, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Filter(condition) => write!(to, "filter {condition}"),
            Step::Project(columns) => {
                write!(to, "project")?;
                let mut columns = columns.iter();
                columns.try_for_each(|(name, column)| write!(to, " {name:?} = {column};"))
            }
            Step::LookupJoin {
                table,
                stream_key,
                table_key,
                columns,
                ..
            } => {
                let (name, rows) = (&table.name, table.rows.num_rows());
                write!(to, "look up {stream_key:?} in {name:?} of {rows} rows by ")?;
                write!(to, "{table_key:?}, take {columns:?}")
            }
            Step::Aggregate {
                window,
                keys,
                aggregates,
            } => {
                write!(to, "{window} group by {keys:?} compute")?;
                let mut calls = aggregates.iter();
                calls.try_for_each(|call| write!(to, " {call};"))
            }
            Step::Rows(operator) => write!(to, "{}", operator.describe()),
        }
    }
}

impl fmt::Display for AggregateCall {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref();
        let function = user.map_or(self.function.as_str(), |user| user.aggregate.name());
        write!(to, "{:?} = {function}(", self.output)?;
        for argument in user.iter().flat_map(|user| &user.arguments) {
            write!(to, "{argument}, ")?;
        }
        if let Some(argument) = &self.argument {
            write!(to, "{argument}")?;
        }
        if let Some(by) = &self.by {
            write!(to, ", {by}")?;
        }
        if let Some(parameter) = self.parameter {
            write!(to, ", {parameter}")?;
        }
        write!(to, ")")?;
        match &self.filter {
            Some(filter) => write!(to, " where {filter}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use crate::aggregate::call;
    use crate::expression::col;
    use crate::plan::EventTime;
    use crate::window::{Emit, tumble};

    use super::*;

    #[test]
    fn every_part_of_a_query_is_in_its_text() {
        let query = Query {
            event_time: EventTime {
                expression: col("at"),
                unit: TimeUnit::Second,
                lateness: Duration::from_secs(3),
            },
            steps: vec![
                Step::Filter(col("rtt").gt(7)),
                Step::Aggregate {
                    window: tumble(Duration::from_secs(9)).emit(Emit::Update),
                    keys: vec!["pair".to_owned()],
                    aggregates: vec![call("max", col("rtt")).alias("worst")],
                },
            ],
        };
        let text = query.to_string();
        for part in [
            "at", "3s", "rtt", "7", "9s", "updates", "pair", "max", "worst",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
