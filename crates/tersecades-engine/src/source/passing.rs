//! What a query drops rows by, so that a source need not read them.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use tersecades_columnar::predicate::{Coverage, Predicate};
use tersecades_columnar::types::{Physical, logical_type};

use super::zone::{Ends, of_first_rows};
use crate::operator::row::bound::Reached;

/// A column, its type, and what its values must pass.
pub(crate) type Test = (String, DataType, Arc<Predicate>);

/// Predicates that columns of a row must pass for the row to get anywhere.
///
/// A source may leave out rows that fail and are wanted for nothing else; the query tests all
/// others. Of rows that fail it may say what it likes, but in the columns that are read of all rows
/// and in one by which they fail.
#[derive(Debug, Clone, Default)]
pub struct Passing {
    /// All of them must be passed.
    pub(crate) tests: Vec<Test>,
    /// What rows that fail are wanted for.
    pub(crate) failing: Failing,
    /// Columns that are read of all rows: what event time is made of.
    pub(crate) of_all: Vec<String>,
    /// What rows are wanted for, if nothing else: a row that is not among these of its source may
    /// be left out.
    pub(crate) first: Option<FirstRows>,
    /// A column, and what its values must come before in rows that are wanted, as it turns out.
    pub(crate) reached: Option<(String, Reached)>,
    /// Whether what is done with rows takes less than reading them.
    pub(crate) is_light: bool,
}

/// The first rows of an order.
#[derive(Debug, Clone)]
pub(crate) struct FirstRows {
    /// The column that counts before all others.
    pub(crate) column: String,
    /// Its type.
    pub(crate) data_type: DataType,
    /// Whether the greatest come first.
    pub(crate) descending: bool,
    /// How many rows.
    pub(crate) rows: u64,
}

/// What rows that fail are wanted for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Failing {
    /// Nothing.
    #[default]
    Nothing,
    /// The newest value of this column before each row that passes, and at the end, which is the
    /// time that others are held against.
    Newest(String),
    /// Their time, each.
    Time,
}

impl Passing {
    /// The same, where the source knows the parts that all of its rows lie in by the ends of a
    /// column, as `ends` gives them; none of its values is null.
    pub(crate) fn within(&self, ends: impl FnOnce(&str) -> Option<Vec<Ends>>) -> Passing {
        let first = self.first.as_ref();
        let test = first.and_then(|first| of_first_rows(ends(&first.column)?, first));
        let mut passing = self.clone();
        passing.tests.extend(test);
        passing
    }

    /// The same without what goes by columns that are gone, so that more rows may pass.
    pub(crate) fn without(&self, is_gone: impl Fn(&str) -> bool) -> Passing {
        let mut passing = self.clone();
        passing.tests.retain(|(column, ..)| !is_gone(column));
        passing.first = passing.first.filter(|first| !is_gone(&first.column));
        passing.reached = passing.reached.filter(|(column, _)| !is_gone(column));
        passing
    }

    /// What each column must pass.
    pub(crate) fn predicates(&self) -> Vec<(String, Arc<Predicate>)> {
        let tests = self.tests.iter();
        tests
            .map(|(name, _, test)| (name.clone(), Arc::clone(test)))
            .collect()
    }

    /// What the values of `field` must pass, integers or texts.
    pub(crate) fn tests_of(&self, field: &Field) -> Vec<Arc<Predicate>> {
        let tests = self.tests.iter().filter(|(name, data_type, test)| {
            let found = field.data_type();
            let fits = match Physical::of(data_type) {
                Ok(Physical::Integer { .. }) => {
                    matches!(**test, Predicate::Keys(_)) && data_type == found
                }
                Ok(Physical::Text) => {
                    matches!(**test, Predicate::Text(_)) && *data_type == logical_type(found)
                }
                _ => false,
            };
            fits && name == field.name()
        });
        tests.map(|(_, _, test)| Arc::clone(test)).collect()
    }

    /// Whether `field` of rows that fail may say anything.
    pub(crate) fn leaves_open(&self, field: &Field) -> bool {
        !self.tests.is_empty() && !self.of_all.contains(field.name())
    }

    /// Whether no row passes in which `field` lies between `low` and `high`, both included.
    pub(crate) fn rules_out(&self, field: &Field, low: i128, high: i128) -> bool {
        let Ok(physical @ Physical::Integer { .. }) = Physical::of(field.data_type()) else {
            return false;
        };
        let (Some(low), Some(high)) = (physical.key_of(low), physical.key_of(high)) else {
            return false;
        };
        let mut tests = self
            .tests
            .iter()
            .filter(|(name, data_type, _)| name == field.name() && data_type == field.data_type());
        low <= high && tests.any(|(_, _, test)| test.coverage(low, high) == Coverage::None)
    }
}

#[cfg(test)]
mod tests {
    use tersecades_columnar::predicate::Comparison;

    use super::*;

    #[test]
    fn ends_rule_out_what_no_value_between_them_passes() {
        let test = |how, constant: i64| {
            Arc::new(Predicate::compare(&DataType::Int32, how, &constant.into()).unwrap())
        };
        let passing = Passing {
            tests: vec![
                ("a".to_owned(), DataType::Int32, test(Comparison::Less, 10)),
                ("b".to_owned(), DataType::Int32, test(Comparison::Equal, -3)),
            ],
            ..Passing::default()
        };
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let rules_out = |name, low, high| {
            let whole = field(name, DataType::Int32);
            let wider = field(name, DataType::Int64);
            assert!(!passing.rules_out(&wider, low, high), "of another type");
            passing.rules_out(&whole, low, high)
        };
        assert!(rules_out("a", 10, 20));
        assert!(!rules_out("a", 9, 20));
        assert!(rules_out("b", -2, 5) && rules_out("b", -9, -4));
        assert!(!rules_out("b", -5, 5));
        assert!(!rules_out("c", 0, 0));
        assert!(
            !rules_out("a", 20, 10),
            "ends that make no sense say nothing"
        );
        assert!(!rules_out("a", i128::from(i64::MAX), i128::from(i64::MAX)));
    }
}
