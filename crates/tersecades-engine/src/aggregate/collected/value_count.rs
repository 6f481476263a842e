//! The different values, or bins, of each group and how many rows each has.
//!
//! Counts of the parts of a stream add up to those of the whole, so what is kept does not depend
//! on how rows were spread over panes and workers.

use std::any::Any;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Physical, float_key};
use tersecades_columnar::values::Values;

use super::grouped_value::GroupedValues;
use super::{CollectWork, Collection, Collects, Rows, Second, collected, target_of};
use crate::operator::window_aggregate::plan::Argument;
use crate::runtime::state::{StateReader, StateWriter};

/// Counts of values.
pub const VALUES: Collects = Collects {
    name: "value_counts",
    second: Second::No,
    by_parameter: false,
    start: |arguments, _| Box::new(ValueCounts::new(Bin::Value, arguments[0])),
};

/// Counts of bins of a width, each by the ordered key of its number.
pub const BUCKETS: Collects = Collects {
    name: "bucket_counts",
    second: Second::No,
    by_parameter: true,
    start: |arguments, width| Box::new(ValueCounts::new(Bin::Width(width), arguments[0])),
};

/// Counts of bins whose width grows with their values, each by the high bits of ordered keys.
pub const SKETCH: Collects = Collects {
    name: "sketch",
    second: Second::No,
    by_parameter: false,
    start: |arguments, _| Box::new(ValueCounts::new(Bin::Relative, arguments[0])),
};

/// Bits of a float's ordered key that a bin of [`SKETCH`] forgets: sign, exponent and seven bits
/// of the fraction remain, so that a bin is at most 1/128 wide relative to its values.
pub const SKETCH_SHIFT: u32 = 52 - 7;

/// What is counted.
#[derive(Debug, Clone, Copy)]
enum Bin {
    /// Each value.
    Value,
    /// Bins of one width.
    Width(f64),
    /// Bins of one relative width.
    Relative,
}

/// Values or bins and their rows.
#[derive(Debug, Clone)]
pub struct ValueCounts {
    bin: Bin,
    /// What a decimal is divided by.
    divisor: f64,
    seen: GroupedValues,
    counts: Vec<u64>,
}

/// A value or bin, by its ordered key, and its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// The key.
    pub key: i128,
    /// The rows.
    pub rows: u64,
}

impl ValueCounts {
    fn new(bin: Bin, argument: &Argument) -> Self {
        let physical = match bin {
            Bin::Value => argument.physical,
            Bin::Width(_) => Physical::Float { bytes: 8 },
            Bin::Relative => Physical::Integer {
                bytes: 4,
                signed: false,
            },
        };
        ValueCounts {
            bin,
            divisor: 10f64.powi(i32::from(argument.scale())),
            seen: GroupedValues::new(physical),
            counts: Vec::new(),
        }
    }

    fn key(&self, values: &Values, index: usize) -> u128 {
        let number = || match values.physical {
            Physical::Wide => values.wide[index] as f64 / self.divisor,
            _ => values.float(index),
        };
        match self.bin {
            Bin::Value => values.ordered(index) as u128,
            Bin::Width(width) => u128::from(float_key((number() / width).floor())),
            Bin::Relative => u128::from(float_key(number()) >> SKETCH_SHIFT),
        }
    }

    fn insert(&mut self, id: u32, value: u128, rows: u64) {
        let number = self.seen.insert(id, value);
        match self.counts.get_mut(number) {
            Some(count) => *count += rows,
            None => self.counts.push(rows),
        }
    }

    /// Calls `visit` with the values or bins of each of the groups `order`, in no order.
    ///
    /// # Errors
    /// What `visit` says.
    pub fn for_each_group(
        &self,
        order: &[u32],
        mut visit: impl FnMut(&mut [Counted]) -> Result<()>,
    ) -> Result<()> {
        let (numbers, ends) = self.seen.by_group();
        let all: Vec<Counted> = self
            .seen
            .pairs()
            .zip(&self.counts)
            .map(|((_, value), rows)| Counted {
                key: value as i128,
                rows: *rows,
            })
            .collect();
        let mut group = Vec::new();
        for id in order {
            let id = *id as usize;
            let end = ends.get(id).copied().unwrap_or(numbers.len());
            let before = id
                .checked_sub(1)
                .map_or(Some(0), |id| ends.get(id).copied());
            let start = before.unwrap_or(end);
            group.clear();
            group.extend(numbers[start..end].iter().map(|at| all[*at as usize]));
            visit(&mut group)?;
        }
        Ok(())
    }
}

impl Collection for ValueCounts {
    fn grow(&mut self, _groups: usize) {}

    fn clear(&mut self) {
        self.seen.clear();
        self.counts.clear();
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        rows.for_each_value(work, |id, values, index, rows| {
            let key = self.key(values, index);
            self.insert(id, key, rows);
        })
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        if let Ok(other) = collected::<ValueCounts>(other) {
            for ((id, value), rows) in other.seen.pairs().zip(&other.counts) {
                if let Some(target) = target_of(targets, id) {
                    self.insert(target, value, *rows);
                }
            }
        }
    }

    fn byte_size(&self) -> usize {
        self.seen.byte_size() + self.counts.capacity() * size_of::<u64>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        self.seen.snapshot(out);
        self.counts.iter().for_each(|count| out.u64(*count));
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        self.seen.restore(groups, from)?;
        let counts: Result<Vec<u64>> = (0..self.seen.len()).map(|_| from.u64()).collect();
        self.counts = counts?;
        match self.counts.contains(&0) {
            true => Err(Error::corrupt("a value has no row")),
            false => Ok(()),
        }
    }

    fn copy(&self) -> Box<dyn Collection> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
