//! `quantile_disc`: the value of a row at a fraction, as SQL's `percentile_disc`.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::collected::value_count::{Counted, VALUES, ValueCounts};
use super::collected::{Collection, Collects, Finish, collected};
use super::mode::Place;
use super::result::{ResultColumn, value_of_ordered};
use super::{Aggregate, fraction};

const NAME: &str = "quantile_disc";

/// The least value that at least the given share of the values is not greater than; of a negative
/// share the greatest that it is not less than.
#[derive(Debug)]
pub struct QuantileDisc;

impl Aggregate for QuantileDisc {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "exact quantile of a fraction that is one of the values, of any type"
    }

    fn collects(&self) -> Option<Collects> {
        Some(VALUES)
    }

    fn parameter(&self, given: Option<f64>) -> Result<f64> {
        let given = given.map(|given| (given.is_sign_negative(), given.abs()));
        let share = fraction(NAME, given.map(|(_, share)| share))?;
        Ok(match given {
            Some((true, _)) => -share,
            _ => share,
        })
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        Ok(argument.clone())
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let counts: &ValueCounts = collected(from)?;
        let argument = finish.argument;
        let place = Place::of(argument);
        let texts = argument.dictionary.get();
        let mut column = ResultColumn::new(&argument.data_type, texts, finish.order.len())?;
        counts.for_each_group(finish.order, |values| {
            values.sort_unstable_by_key(|counted| place.get(counted.key));
            column.push(match at(values, finish.reading.parameter) {
                Some(counted) => value_of_ordered(counted.key, &argument.data_type)?,
                None => Value::Null,
            });
            Ok(())
        })?;
        column.finish(&argument.data_type)
    }
}

/// The value at `fraction` of sorted ones; from the other end where it is negative.
fn at(values: &[Counted], fraction: f64) -> Option<Counted> {
    let total: u64 = values.iter().map(|counted| counted.rows).sum();
    let all = total as f64;
    let behind = (all - all * fraction.abs()).floor() as u64;
    let rank = total.saturating_sub(behind).max(1);
    let mut before = 0;
    let is_found = |counted: &&Counted| {
        before += counted.rows;
        before >= rank
    };
    match fraction.is_sign_negative() {
        false => values.iter().find(is_found).copied(),
        true => values.iter().rev().find(is_found).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_fraction_is_that_of_its_row() {
        let counted = |(key, rows)| Counted { key, rows };
        let values = [(10, 2), (20, 1), (30, 1)].map(counted);
        let found = |fraction| at(&values, fraction).map(|counted| counted.key);
        assert_eq!(
            [0.0, 0.5, 0.51, 0.75, 0.76, 1.0].map(found),
            [Some(10), Some(10), Some(20), Some(20), Some(30), Some(30)]
        );
        assert_eq!(
            [-0.0, -0.25, -0.26, -0.5, -0.51, -1.0].map(found),
            [Some(30), Some(30), Some(20), Some(20), Some(10), Some(10)]
        );
        assert_eq!(at(&[], 0.5), None);
    }
}
