//! How users write aggregates: one constructor for each shape of call.

use std::sync::Arc;

use super::UserAggregate;
use crate::expression::Expression;
use crate::plan::{AggregateCall, UserCall};

/// `function(argument)`, named so.
pub fn call(function: &str, argument: Expression) -> AggregateCall {
    let output = format!("{function}({argument})");
    AggregateCall {
        function: function.to_owned(),
        argument: Some(argument),
        output,
        ..AggregateCall::default()
    }
}

/// `function(argument, number)`, for aggregates that take a number.
///
/// # Examples
/// ```
/// use tersecades_engine::{aggregate::call_with, expression::col};
/// let buckets = call_with("histogram", col("rtt"), 10.0);
/// assert_eq!(buckets.output, "histogram(rtt, 10)");
/// ```
pub fn call_with(function: &str, argument: Expression, number: f64) -> AggregateCall {
    let output = format!("{function}({argument}, {number})");
    AggregateCall {
        parameter: Some(number),
        output,
        ..call(function, argument)
    }
}

/// `function(argument, by)`, for aggregates of two columns.
pub fn call_by(function: &str, argument: Expression, by: Expression) -> AggregateCall {
    let output = format!("{function}({argument}, {by})");
    AggregateCall {
        by: Some(by),
        output,
        ..call(function, argument)
    }
}

/// The number of rows.
pub fn count() -> AggregateCall {
    AggregateCall {
        function: "count".to_owned(),
        output: "count".to_owned(),
        ..AggregateCall::default()
    }
}

/// The value of which the share `fraction` of values lies below, interpolated linearly.
pub fn quantile(argument: Expression, fraction: f64) -> AggregateCall {
    call_with("quantile", argument, fraction)
}

/// The value of `argument` in the row where `by` is least; of several such, the first to arrive.
pub fn arg_min(argument: Expression, by: Expression) -> AggregateCall {
    call_by("arg_min", argument, by)
}

/// The value of `argument` in the row where `by` is greatest; of several such, the first to arrive.
pub fn arg_max(argument: Expression, by: Expression) -> AggregateCall {
    call_by("arg_max", argument, by)
}

impl AggregateCall {
    /// An aggregate from outside.
    pub fn user(
        aggregate: Arc<dyn UserAggregate>,
        arguments: impl IntoIterator<Item = Expression>,
    ) -> Self {
        let arguments: Vec<Expression> = arguments.into_iter().collect();
        let texts: Vec<String> = arguments.iter().map(Expression::to_string).collect();
        AggregateCall {
            function: aggregate.name().to_owned(),
            output: format!("{}({})", aggregate.name(), texts.join(", ")),
            user: Some(UserCall {
                aggregate,
                arguments,
            }),
            ..AggregateCall::default()
        }
    }

    /// The same aggregate with its result column named `name`.
    pub fn alias(mut self, name: impl Into<String>) -> Self {
        self.output = name.into();
        self
    }

    /// The same aggregate of the rows where `condition` is true: SQL's `FILTER (WHERE …)`.
    ///
    /// A group exists even if none of its rows is among them.
    ///
    /// # Examples
    /// ```
    /// use tersecades_engine::{aggregate::count, expression::col};
    /// let failures = count().filter(col("error_code").not_eq(0)).alias("failures");
    /// ```
    pub fn filter(mut self, condition: Expression) -> Self {
        self.filter = Some(condition);
        self
    }
}
