//! `mode`: the most frequent value.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::dictionary::Ranks;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::{Physical, Value};

use super::Aggregate;
use super::collected::value_count::{Counted, VALUES, ValueCounts};
use super::collected::{Collection, Collects, Finish, collected};
use super::result::ResultColumn;
use super::result::value_of_ordered;
use crate::operator::window_aggregate::plan::Argument;

/// The most frequent value that is not null; of several, the least.
#[derive(Debug)]
pub struct Mode;

/// A number that sorts as the value does, which for text its code does not.
pub(super) struct Place(Option<Ranks>);

impl Place {
    pub(super) fn of(argument: &Argument) -> Self {
        let dictionary = argument.dictionary.get();
        let is_text = argument.physical == Physical::Text;
        Place(dictionary.filter(|_| is_text).map(|texts| texts.ranks()))
    }

    pub(super) fn get(&self, key: i128) -> i128 {
        match &self.0 {
            Some(ranks) => ranks
                .rank_of
                .get(key as usize)
                .copied()
                .map_or(key, i128::from),
            None => key,
        }
    }

    /// What sorts the most frequent first, the least of several.
    pub(super) fn by_rows(&self, counted: &Counted) -> (std::cmp::Reverse<u64>, i128) {
        (std::cmp::Reverse(counted.rows), self.get(counted.key))
    }
}

impl Aggregate for Mode {
    fn name(&self) -> &'static str {
        "mode"
    }

    fn summary(&self) -> &'static str {
        "most frequent value, the least of several"
    }

    fn collects(&self) -> Option<Collects> {
        Some(VALUES)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        Ok(argument.clone())
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let counts: &ValueCounts = collected(from)?;
        let argument = finish.argument;
        let place = Place::of(argument);
        let mut column = ResultColumn::new(
            &argument.data_type,
            argument.dictionary.get(),
            finish.order.len(),
        )?;
        counts.for_each_group(finish.order, |values| {
            let mode = values.iter().min_by_key(|counted| place.by_rows(counted));
            column.push(match mode {
                Some(counted) => value_of_ordered(counted.key, &argument.data_type)?,
                None => Value::Null,
            });
            Ok(())
        })?;
        column.finish(&argument.data_type)
    }
}
