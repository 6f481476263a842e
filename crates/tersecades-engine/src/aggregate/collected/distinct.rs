//! Each different value of each group once.

use std::any::Any;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use super::grouped_value::GroupedValues;
use super::{CollectWork, Collection, Collects, Rows, Second, collected};
use crate::operator::window_aggregate::plan::Argument;
use crate::runtime::state::{StateReader, StateWriter};

/// What aggregates ask for.
pub const DISTINCT: Collects = Collects {
    name: "distinct",
    second: Second::No,
    by_parameter: false,
    start: |arguments, _| Box::new(Distinct::new(arguments[0])),
};

/// The different values of one argument.
#[derive(Debug, Clone)]
pub struct Distinct {
    seen: GroupedValues,
    counts: Vec<u64>,
}

impl Distinct {
    fn new(argument: &Argument) -> Self {
        Distinct {
            seen: GroupedValues::new(argument.physical),
            counts: Vec::new(),
        }
    }

    fn insert(&mut self, id: u32, value: u128) {
        let known = self.seen.len();
        self.seen.insert(id, value);
        if self.seen.len() > known {
            self.counts[id as usize] += 1;
        }
    }

    /// The number of different values of group `id`.
    pub fn count(&self, id: u32) -> u64 {
        self.counts.get(id as usize).copied().unwrap_or(0)
    }

    /// Group and value, as an ordered key, of every different value.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, i128)> + '_ {
        self.seen.pairs().map(|(id, value)| (id, value as i128))
    }
}

impl Collection for Distinct {
    fn grow(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    fn clear(&mut self) {
        self.seen.clear();
        self.counts.clear();
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        rows.for_each_value(work, |id, values, index, _| {
            self.insert(id, values.ordered(index) as u128);
        })
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        if let Ok(other) = collected::<Distinct>(other) {
            for (id, value) in other.seen.pairs() {
                self.insert(targets[id as usize], value);
            }
        }
    }

    fn byte_size(&self) -> usize {
        self.seen.byte_size() + self.counts.capacity() * size_of::<u64>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        self.seen.snapshot(out);
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        self.grow(groups);
        self.seen.restore(groups, from)?;
        for (id, _) in self.seen.pairs() {
            self.counts[id as usize] += 1;
        }
        Ok(())
    }

    fn copy(&self) -> Box<dyn Collection> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
