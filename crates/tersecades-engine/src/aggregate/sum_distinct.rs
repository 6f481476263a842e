//! `sum_distinct`: the sum of the different values.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{FloatSum, Fold};
use tersecades_columnar::types::{Physical, float_of};

use super::Aggregate;
use super::collected::distinct::{DISTINCT, Distinct};
use super::collected::{Collection, Collects, Finish, collected};
use super::sum::Sum;

/// The sum of the different values that are not null: SQL's `SUM(DISTINCT x)`.
#[derive(Debug)]
pub struct SumDistinct;

impl Aggregate for SumDistinct {
    fn name(&self) -> &'static str {
        "sum_distinct"
    }

    fn summary(&self) -> &'static str {
        "sum of the different values"
    }

    fn collects(&self) -> Option<Collects> {
        Some(DISTINCT)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        Sum.result_type(argument)
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
        finish.column(|id| Sum.finish(&folds[id as usize], &finish.argument.data_type))
    }
}
