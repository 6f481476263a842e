//! Panes as bytes, and back.

use tersecades_columnar::error::{Error, Result};

use crate::runtime::state::{StateReader, StateWriter};

use super::super::plan::AggregatePlan;
use super::super::table::GroupTable;
use super::Pane;

impl Pane {
    /// Writes all groups; text keys mean the dictionaries of the plan, which are written apart.
    pub fn snapshot(&self, out: &mut StateWriter) {
        out.u64(self.len() as u64);
        self.rows.iter().for_each(|rows| out.u64(*rows));
        self.groups.snapshot(out);
        self.folds.iter().for_each(|folds| folds.snapshot(out));
        self.collections.iter().for_each(|c| c.snapshot(out));
    }

    /// Reads what [`Pane::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit the plan.
    pub fn restore(plan: &AggregatePlan, from: &mut StateReader<'_>) -> Result<Self> {
        Pane::read(plan, from, |groups, key| {
            groups.assign_one(key);
        })
    }

    /// As [`Pane::restore`], where several groups may have one key.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit the plan.
    pub fn restore_slots(plan: &AggregatePlan, from: &mut StateReader<'_>) -> Result<Self> {
        Pane::read(plan, from, |groups, key| {
            groups.push(key);
        })
    }

    fn read(
        plan: &AggregatePlan,
        from: &mut StateReader<'_>,
        add: impl Fn(&mut GroupTable, &[u64]),
    ) -> Result<Self> {
        let mut pane = Pane::new(plan);
        let groups = from.count()?;
        let rows: Result<Vec<u64>> = (0..groups).map(|_| from.u64()).collect();
        let words: Result<Vec<u64>> = (0..from.count()?).map(|_| from.u64()).collect();
        let words = words?;
        if words.len() != groups * plan.keys.words {
            return Err(Error::corrupt("group keys do not fit the query"));
        }
        let keys = || words.chunks_exact(plan.keys.words.max(1));
        let narrow = plan.keys.words_without_nulls();
        let width = match keys().all(|key| key[narrow..].iter().all(|word| *word == 0)) {
            true => narrow,
            false => plan.keys.words,
        };
        match plan.keys.words {
            0 => (0..groups).for_each(|_| add(&mut pane.groups, &[])),
            _ => keys().for_each(|key| add(&mut pane.groups, &key[..width])),
        }
        pane.rows = rows?;
        for folds in &mut pane.folds {
            folds.restore(groups, from)?;
        }
        for collection in &mut pane.collections {
            collection.restore(groups, from)?;
        }
        Ok(pane)
    }
}
