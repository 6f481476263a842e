//! `sum_distinct` and `mean_distinct`: aggregates of the different values.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{FloatSum, Fold};
use tersecades_columnar::types::{Physical, float_of};

use super::Aggregate;
use super::collected::distinct::{DISTINCT, Distinct};
use super::collected::{Collection, Collects, Finish, collected};
use super::mean::Mean;
use super::sum::Sum;

/// An aggregate of the different values that are not null.
#[derive(Debug)]
pub struct OfDistinct {
    name: &'static str,
    summary: &'static str,
    /// What is read of the fold of them: count and sum.
    of: &'static dyn Aggregate,
}

/// Their sum: SQL's `SUM(DISTINCT x)`.
pub const SUM_DISTINCT: OfDistinct = OfDistinct {
    name: "sum_distinct",
    summary: "sum of the different values",
    of: &Sum,
};

/// Their mean: SQL's `AVG(DISTINCT x)`.
pub const MEAN_DISTINCT: OfDistinct = OfDistinct {
    name: "mean_distinct",
    summary: "arithmetic mean of the different values",
    of: &Mean,
};

impl Aggregate for OfDistinct {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn collects(&self) -> Option<Collects> {
        Some(DISTINCT)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        self.of.result_type(argument)
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let distinct: &Distinct = collected(from)?;
        let groups = finish.order.iter().max().map_or(0, |id| *id as usize + 1);
        let mut folds = vec![Fold::default(); groups];
        let physical = finish.argument.physical;
        let add = |fold: &mut Fold, key: i128| {
            fold.count += 1;
            match physical {
                Physical::Float { .. } => {
                    let mut value = FloatSum::default();
                    value.add(float_of(key as u64));
                    fold.float_sum.merge(value);
                }
                Physical::Wide => fold.add_sum(key),
                _ => fold.add_sum(physical.value_of(key as u64)),
            }
        };
        distinct.for_each(|id, key| {
            if let Some(fold) = folds.get_mut(id as usize) {
                add(fold, key);
            }
        });
        finish.column(|id| {
            self.of
                .finish(&folds[id as usize], &finish.argument.data_type)
        })
    }
}
