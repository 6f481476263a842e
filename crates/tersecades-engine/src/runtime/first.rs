//! What the steps of a query ask for, where it is the first rows of an order.

use crate::expression::Expression;
use crate::operator::row::keys::SortOrder;
use crate::operator::window_aggregate::first::FirstGroups;
use crate::operator::window_aggregate::plan::AggregatePlan;
use crate::plan::Step;
use crate::window::Windowing;

use super::stage::StagePlan;

/// Most groups that are told apart from the others before they are in order.
const FIRST_MAX: usize = 1 << 16;

/// The order of columns, and the number of rows, where `steps` begin with the first rows of what
/// goes in.
pub(super) fn first_rows(steps: &[Step]) -> Option<(Vec<(&str, SortOrder)>, usize)> {
    let mut steps = steps.iter();
    let mut renamed = Vec::new();
    let (mut by, count) = loop {
        match steps.next()? {
            Step::Project(columns) => renamed.push(columns),
            Step::Rows(plan) => break plan.first_rows()?,
            _ => return None,
        }
    };
    // What computes may fail, and is to fail for all rows or none.
    let is_named = |(_, value): &(String, Expression)| value.as_column().is_some();
    if !renamed.iter().all(|columns| columns.iter().all(is_named)) {
        return None;
    }
    for (name, _) in &mut by {
        *name = renamed
            .iter()
            .rev()
            .try_fold(*name, |name, columns| origin(name, columns))?;
    }
    Some((by, count))
}

/// The column that comes out as `name`.
fn origin<'a>(name: &str, columns: &'a [(String, Expression)]) -> Option<&'a str> {
    let (_, value) = columns.iter().find(|(output, _)| output == name)?;
    value.as_column()
}

/// Tells the group-by that `plan` ends with, if there is one, which groups `following` asks for.
pub(super) fn ask_for_first(plan: &mut StagePlan, following: &[Step]) {
    if let Some(aggregate) = plan.aggregate_mut() {
        aggregate.first = first_groups(aggregate, following);
    }
}

fn first_groups(plan: &AggregatePlan, following: &[Step]) -> Option<FirstGroups> {
    let whole = matches!(plan.window, Windowing::Global) && plan.emission.is_none();
    let (by, count) = first_rows(following)?;
    if !whole || !(1..=FIRST_MAX).contains(&count) {
        return None;
    }
    let keys = plan.key_columns();
    let column = |(name, order): &(&str, SortOrder)| {
        let index = plan.schema.index_of(name).ok()?;
        let reading = index
            .checked_sub(keys.end)
            .map(|index| &plan.readings[index]);
        // Results of what is collected cost too much to be made twice.
        let is_cheap = reading.is_none_or(|reading| reading.collection.is_none());
        (index >= keys.start && is_cheap).then_some((index, *order))
    };
    let by = by.iter().map(column).collect::<Option<_>>()?;
    Some(FirstGroups { by, count })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

    use super::*;
    use crate::aggregate::{call, count};
    use crate::expression::col;
    use crate::operator::row::Extent;
    use crate::operator::top_k::TopK;
    use crate::plan::{EventTime, Query};
    use crate::runtime::stage::plan_parts;
    use crate::window::{Window, global, tumble};

    fn asked(
        window: Window,
        between: Vec<Step>,
        by: &str,
        count_wanted: usize,
    ) -> Option<FirstGroups> {
        let distinct = call("count_distinct", col("v")).alias("d");
        let aggregate = Step::Aggregate {
            window,
            keys: vec!["k".to_owned()],
            aggregates: vec![count().alias("n"), distinct],
        };
        let top = TopK {
            by: vec![(col(by), SortOrder::DESCENDING)],
            count: count_wanted,
            offset: 2,
            extent: Extent::Whole,
        };
        let top = Step::Rows(Arc::new(top));
        let query = Query {
            event_time: EventTime {
                expression: col("t"),
                unit: TimeUnit::Millisecond,
                lateness: Duration::ZERO,
            },
            steps: std::iter::once(aggregate)
                .chain(between)
                .chain([top])
                .collect(),
        };
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let schema: SchemaRef = Arc::new(Schema::new(vec![field("t"), field("k"), field("v")]));
        let (plan, _) = plan_parts(&query, schema.clone()).unwrap();
        // A run binds the plan once more.
        let plan = plan.over(schema, false).unwrap();
        plan.aggregate()
            .and_then(|aggregate| aggregate.first.clone())
    }

    #[test]
    fn a_group_by_is_told_which_of_its_groups_are_asked_for() {
        let named = |pairs: &[(&str, Expression)]| {
            let pairs = pairs.iter();
            let columns = pairs.map(|(name, value)| ((*name).to_owned(), value.clone()));
            vec![Step::Project(columns.collect())]
        };
        let first = |column: usize| {
            let by = vec![(column, SortOrder::DESCENDING)];
            Some(FirstGroups { by, count: 12 })
        };
        assert_eq!(asked(global(), vec![], "n", 10), first(1));
        assert_eq!(asked(global(), vec![], "k", 10), first(0));
        let renamed = named(&[("c", col("n")), ("n", col("k"))]);
        assert_eq!(asked(global(), renamed.clone(), "c", 10), first(1));
        assert_eq!(asked(global(), renamed, "n", 10), first(0));
        let computed = named(&[("c", col("n") + 1)]);
        assert_eq!(asked(global(), computed, "c", 10), None);
        assert_eq!(asked(global(), vec![], "d", 10), None, "made twice");
        assert_eq!(asked(global(), vec![], "n", FIRST_MAX), None, "too many");
        let filter = vec![Step::Filter(col("n").gt(1))];
        assert_eq!(asked(global(), filter, "n", 10), None);
        let windows = tumble(Duration::from_secs(1));
        assert_eq!(asked(windows, vec![], "n", 10), None);
    }
}
