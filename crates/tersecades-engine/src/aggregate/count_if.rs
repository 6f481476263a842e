//! `count_if`: rows where a condition is true.

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::Value;

use super::{Aggregate, count};
use crate::expression::evaluate::BoundExpression;
use crate::frame::Scope;
use crate::plan::AggregateCall;

/// Rows where a condition is true: the sum of a boolean.
#[derive(Debug)]
pub struct CountIf;

impl Aggregate for CountIf {
    fn name(&self) -> &'static str {
        "count_if"
    }

    fn summary(&self) -> &'static str {
        "number of rows where the condition is true"
    }

    fn asked(&self) -> Asked {
        Asked {
            sum: true,
            ..Asked::default()
        }
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        match argument {
            DataType::Boolean => Ok(DataType::Int64),
            other => Err(
                Error::schema(format!("count_if needs a condition, got {other}"))
                    .hint("write a comparison, such as x > 0"),
            ),
        }
    }

    fn finish(&self, fold: &Fold, _argument: &DataType) -> Result<Value> {
        Ok(Value::Integer(fold.sum))
    }

    /// The count of the rows that the condition lets pass, which runs encoded where a filter does.
    fn instead(&self, call: &AggregateCall, scope: &Scope) -> Option<AggregateCall> {
        let plain = call.by.is_none() && call.parameter.is_none();
        let condition = call.argument.clone().filter(|_| plain)?;
        let bound = BoundExpression::bind(&condition, scope).ok()?;
        (*bound.data_type() == DataType::Boolean).then(|| AggregateCall {
            filter: Some(match call.filter.clone() {
                Some(filter) => filter.and(condition),
                None => condition,
            }),
            output: call.output.clone(),
            ..count()
        })
    }
}
