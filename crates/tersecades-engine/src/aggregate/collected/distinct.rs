//! Each different value of each group once: bits over a narrow range of values or codes of text,
//! a hash table where the range is wide.

use std::any::Any;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Physical;

use super::dense::Dense;
use super::distinct_pair::Pairs;
use super::grouped_value::GroupedValues;
use super::{CollectWork, Collection, Collects, Rows, Second, collected, target_of};
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
    physical: Physical,
    seen: Seen,
    threads: usize,
}

#[derive(Debug, Clone)]
enum Seen {
    Dense(Dense),
    Pairs(Box<Pairs>),
}

impl Distinct {
    fn new(argument: &Argument) -> Self {
        let physical = argument.physical;
        let seen = match physical {
            Physical::Integer { .. } | Physical::Text => Seen::Dense(Dense::default()),
            _ => Seen::Pairs(Box::new(Pairs::new(physical, 0, 1))),
        };
        Distinct {
            physical,
            seen,
            threads: 1,
        }
    }

    /// Goes over from bits to a table, for `groups` groups at least.
    fn spread(&mut self, groups: usize) {
        let Seen::Dense(dense) = &self.seen else {
            return;
        };
        let mut pairs = Pairs::new(self.physical, groups.max(dense.groups()), self.threads);
        for (id, value) in dense.pairs() {
            pairs.put(id, u128::from(value));
        }
        pairs.settle();
        self.seen = Seen::Pairs(Box::new(pairs));
    }

    /// Adds a value that [`Distinct::settle`] inserts at the latest.
    fn put(&mut self, id: u32, value: u128) {
        if let Seen::Dense(dense) = &mut self.seen {
            if dense.insert(id, value as u64) {
                return;
            }
            self.spread(0);
        }
        if let Seen::Pairs(pairs) = &mut self.seen {
            pairs.put(id, value);
        }
    }

    fn settle(&mut self) {
        if let Seen::Pairs(pairs) = &mut self.seen {
            pairs.settle();
        }
    }

    /// The number of different values of group `id`.
    pub fn count(&self, id: u32) -> u64 {
        match &self.seen {
            Seen::Dense(dense) => dense.count(id),
            Seen::Pairs(pairs) => pairs.count(id),
        }
    }

    /// Calls `visit` with group and value, as an ordered key, of every different value.
    pub fn for_each(&self, mut visit: impl FnMut(u32, i128)) {
        match &self.seen {
            Seen::Dense(dense) => dense
                .pairs()
                .for_each(|(id, value)| visit(id, i128::from(value))),
            Seen::Pairs(pairs) => pairs
                .pairs()
                .for_each(|(id, value)| visit(id, value as i128)),
        }
    }
}

impl Collection for Distinct {
    fn work_on(&mut self, threads: usize) {
        self.threads = threads;
        if let Seen::Pairs(pairs) = &mut self.seen {
            pairs.work_on(threads);
        }
    }

    fn grow(&mut self, groups: usize) {
        if let Seen::Dense(dense) = &mut self.seen
            && dense.grow(groups)
        {
            return;
        }
        self.spread(groups);
        if let Seen::Pairs(pairs) = &mut self.seen {
            pairs.grow(groups);
        }
    }

    fn clear(&mut self) {
        match &mut self.seen {
            Seen::Dense(dense) => dense.clear(),
            Seen::Pairs(pairs) => pairs.clear(),
        }
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let column = rows.column(0);
        let mut narrow = true;
        if let Seen::Dense(dense) = &mut self.seen {
            dense.expect(rows.within.count() as u64);
            let (stats, integers) = (column.stats(), self.physical != Physical::Text);
            if integers && stats.known && column.nulls() < column.rows() {
                narrow = dense.widen(stats.min, stats.max);
            }
        }
        if !narrow {
            self.spread(0);
        }
        if let Seen::Pairs(pairs) = &mut self.seen {
            rows.for_each_value(work, |id, values, index, _| {
                pairs.put(id, values.ordered(index) as u128);
            })?;
            pairs.settle();
            return Ok(());
        }
        rows.for_each_value(work, |id, values, index, _| {
            self.put(id, values.ordered(index) as u128);
        })?;
        self.settle();
        Ok(())
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        let Ok(other) = collected::<Distinct>(other) else {
            return;
        };
        if let (Seen::Dense(own), Seen::Dense(theirs)) = (&mut self.seen, &other.seen)
            && own.merge(theirs, targets)
        {
            return;
        }
        if matches!(other.seen, Seen::Pairs(_)) {
            self.spread(0);
        }
        if let (Seen::Pairs(own), Seen::Pairs(theirs)) = (&mut self.seen, &other.seen) {
            return own.merge(theirs, targets);
        }
        other.for_each(|id, value| {
            if let Some(target) = target_of(targets, id) {
                self.put(target, value as u128);
            }
        });
        self.settle();
    }

    fn byte_size(&self) -> usize {
        match &self.seen {
            Seen::Dense(dense) => dense.byte_size(),
            Seen::Pairs(pairs) => pairs.byte_size(),
        }
    }

    /// The same bytes whichever form the values have.
    fn snapshot(&self, out: &mut StateWriter) {
        match &self.seen {
            Seen::Pairs(pairs) => pairs.snapshot(out),
            Seen::Dense(dense) => {
                let mut values = GroupedValues::new(self.physical);
                for (id, value) in dense.pairs() {
                    values.insert(id, u128::from(value));
                }
                values.snapshot(out);
            }
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        let mut pairs = Pairs::new(self.physical, groups, self.threads);
        pairs.restore(groups, from)?;
        self.seen = Seen::Pairs(Box::new(pairs));
        Ok(())
    }

    fn copy(&self) -> Box<dyn Collection> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
