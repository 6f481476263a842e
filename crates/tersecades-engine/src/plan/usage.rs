//! What queries do with the columns of a stream, by which their codecs are chosen.

use tersecades_columnar::goal::Uses;

use super::{AggregateCall, Query, Step};
use crate::expression::Expression;

impl Query {
    /// What the query does with a column of the stream; the default for one it does not name, since
    /// what is kept is there for other queries.
    pub fn uses(&self, column: &str) -> Uses {
        self.named_uses(column).unwrap_or_default()
    }

    /// What the query does with a column that it names.
    fn named_uses(&self, column: &str) -> Option<Uses> {
        let mut uses = Uses {
            compare: 0.0,
            fold: 0.0,
            keyed: self.tells_apart_by(column),
            ..Uses::default()
        };
        let names = |expression: &Expression| expression.columns().contains(&column);
        for step in &self.steps {
            match step {
                Step::Filter(condition) => uses.compare += f64::from(names(condition)),
                Step::LookupJoin { stream_key, .. } => {
                    uses.decode += f64::from(stream_key == column);
                }
                Step::Project(columns) => {
                    let read = columns.iter().any(|(_, expression)| names(expression));
                    uses.decode += f64::from(read);
                    break;
                }
                Step::Aggregate {
                    keys, aggregates, ..
                } => {
                    let mut arguments = aggregates.iter().flat_map(|call| {
                        let user = call.user.iter().flat_map(|user| &user.arguments);
                        call.argument.iter().chain(user)
                    });
                    uses.fold += f64::from(arguments.any(names));
                    let mut filters = aggregates.iter().filter_map(|call| call.filter.as_ref());
                    uses.compare += f64::from(filters.any(names));
                    uses.decode += f64::from(keys.iter().any(|key| key == column));
                    break;
                }
                Step::Rows(_) => {
                    uses.decode += 1.0;
                    break;
                }
            }
        }
        (uses.compare + uses.fold + uses.decode > 0.0).then_some(uses)
    }
}

impl Query {
    /// Whether groups or lookups go by a column of the stream, or aggregates or functions read it,
    /// which do so once for each different value.
    fn tells_apart_by(&self, column: &str) -> bool {
        let mut names = vec![column];
        let calls = |value: &Expression, names: &[&str]| names.iter().any(|name| value.calls(name));
        for step in &self.steps {
            match step {
                Step::Filter(condition) if calls(condition, &names) => return true,
                Step::Filter(_) => {}
                Step::LookupJoin { stream_key, .. } => {
                    if names.contains(&stream_key.as_str()) {
                        return true;
                    }
                }
                Step::Project(columns) => {
                    if columns.iter().any(|(_, value)| calls(value, &names)) {
                        return true;
                    }
                    let same = columns.iter().filter(|(_, value)| {
                        value.as_column().is_some_and(|name| names.contains(&name))
                    });
                    names = same.map(|(name, _)| name.as_str()).collect();
                }
                Step::Aggregate {
                    keys, aggregates, ..
                } => {
                    let read = aggregates.iter().flat_map(AggregateCall::expressions);
                    let mut read = read.flat_map(|expression| expression.columns());
                    let mut keys = keys.iter().map(String::as_str);
                    return keys.any(|key| names.contains(&key))
                        || read.any(|name| names.contains(&name));
                }
                Step::Rows(_) => return false,
            }
        }
        false
    }
}

/// What queries over one stream do with a column of it together; the default for one that none of
/// them names.
pub fn uses_of(queries: &[&Query], column: &str) -> Uses {
    let named = queries.iter().filter_map(|query| query.named_uses(column));
    let both = |a: Uses, b: Uses| Uses {
        compare: a.compare + b.compare,
        fold: a.fold + b.fold,
        decode: a.decode + b.decode,
        keyed: a.keyed || b.keyed,
        ..a
    };
    named.reduce(both).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use arrow_schema::TimeUnit;

    use super::*;
    use crate::aggregate::call;
    use crate::expression::col;
    use crate::plan::EventTime;
    use crate::window::tumble;

    #[test]
    fn rows_are_told_apart_by_keys_and_by_what_is_read_of_each_value() {
        let rename = |column: &str, name: &str| {
            Step::Project(vec![
                (name.to_owned(), col(column)),
                ("rtt".to_owned(), col("rtt")),
            ])
        };
        let aggregate = |key: &str, argument: &str| Step::Aggregate {
            window: tumble(Duration::from_secs(1)),
            keys: vec![key.to_owned()],
            aggregates: vec![call("max", col(argument))],
        };
        let filter = || Step::Filter(col("text").not_eq(""));
        for (steps, keyed) in [
            (vec![filter()], false),
            (vec![filter(), rename("text", "name")], false),
            (vec![aggregate("text", "rtt")], true),
            (vec![aggregate("rtt", "text")], true),
            (vec![rename("text", "name"), aggregate("name", "rtt")], true),
            (
                vec![rename("other", "text"), aggregate("text", "rtt")],
                false,
            ),
            (vec![filter(), aggregate("rtt", "rtt")], false),
        ] {
            let query = Query {
                event_time: EventTime {
                    expression: col("time"),
                    unit: TimeUnit::Millisecond,
                    lateness: Duration::ZERO,
                },
                steps,
            };
            let context = format!("{:?}", query.steps);
            let named = query.named_uses("text");
            assert_eq!(named.is_some_and(|uses| uses.keyed), keyed, "{context}");
        }
    }

    #[test]
    fn a_column_is_priced_for_what_is_done_with_it() {
        let aggregate = Step::Aggregate {
            window: tumble(Duration::from_secs(1)),
            keys: vec!["pair".to_owned()],
            aggregates: vec![call("sum", col("rtt"))],
        };
        let query = Query {
            event_time: EventTime {
                expression: col("time"),
                unit: TimeUnit::Millisecond,
                lateness: Duration::ZERO,
            },
            steps: vec![Step::Filter(col("code").gt(0)), aggregate],
        };
        let uses = |column| {
            let uses = query.uses(column);
            (uses.compare, uses.fold, uses.decode)
        };
        assert_eq!(uses("code"), (1.0, 0.0, 0.0));
        assert_eq!(uses("rtt"), (0.0, 1.0, 0.0));
        assert_eq!(uses("pair"), (0.0, 0.0, 1.0));
        assert_eq!(query.uses("other"), Uses::default());
    }
}
