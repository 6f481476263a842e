//! A pane: the groups of a stretch of time that no window boundary cuts.

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::Fold;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use crate::aggregate::collected::{CollectWork, Collection, Rows};
use crate::aggregate::fold_column::FoldColumn;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};

use super::keys::{KeyPacker, Translation};
use super::plan::AggregatePlan;
use super::table::GroupTable;

/// Groups, how many rows each has, and the folds of each argument.
#[derive(Debug, Clone)]
pub struct Pane {
    /// Keys and their ids.
    pub groups: GroupTable,
    /// Rows of each group.
    pub rows: Vec<u64>,
    /// Folds of each argument.
    pub folds: Vec<FoldColumn>,
    /// What is kept of arguments besides folds.
    pub collections: Vec<Collection>,
}

/// A batch, the rows of it that go to a pane, and the rows of the stream before it.
pub type PaneRows<'a> = (&'a Frame, &'a Selection, u64);

/// Scratch memory of a worker.
#[derive(Debug, Default)]
pub struct PaneWork {
    packer: KeyPacker,
    ids: Vec<u32>,
    values: Values,
    translations: Vec<Translation>,
    collect: CollectWork,
}

impl Pane {
    /// No groups.
    pub fn new(plan: &AggregatePlan) -> Self {
        let (folds, collections) = (plan.arguments.iter(), plan.collections.iter());
        Pane {
            groups: GroupTable::new(&plan.keys),
            rows: Vec::new(),
            folds: folds.map(FoldColumn::new).collect(),
            collections: collections.map(|c| Collection::new(plan, *c)).collect(),
        }
    }

    /// Forgets all groups, keeps the memory.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.rows.clear();
        self.folds.iter_mut().for_each(FoldColumn::clear);
        self.collections.iter_mut().for_each(Collection::clear);
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no row has come.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory held.
    pub fn byte_size(&self) -> usize {
        self.groups.byte_size()
            + self.rows.capacity() * size_of::<u64>()
            + self.folds.iter().map(FoldColumn::byte_size).sum::<usize>()
            + self
                .collections
                .iter()
                .map(Collection::byte_size)
                .sum::<usize>()
    }

    /// Makes room for `groups` groups; new ones are empty.
    pub fn grow(&mut self, groups: usize) {
        self.rows.resize(groups, 0);
        self.folds.iter_mut().for_each(|folds| folds.grow(groups));
        self.collections.iter_mut().for_each(|c| c.grow(groups));
    }

    /// Adds the rows of `within`.
    ///
    /// # Errors
    /// What key packing says.
    pub fn add(
        &mut self,
        plan: &AggregatePlan,
        rows: PaneRows<'_>,
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        let (frame, within, rows_before) = rows;
        if within.is_empty() {
            return Ok(());
        }
        match plan.keys.columns.is_empty() {
            true => self.add_ungrouped(plan, frame, within, (scratch, work))?,
            false => self.add_grouped(plan, frame, within, (scratch, work))?,
        }
        let one_group = plan.keys.columns.is_empty();
        let rows = Rows {
            frame,
            within,
            ids: if one_group { &[] } else { &scratch.ids },
            rows_before,
        };
        let collections = self.collections.iter_mut().zip(&plan.collections);
        for (collection, collecting) in collections {
            collection.add(plan, *collecting, rows, (&mut scratch.collect, work))?;
        }
        Ok(())
    }

    /// One group: arguments are folded encoded.
    fn add_ungrouped(
        &mut self,
        plan: &AggregatePlan,
        frame: &Frame,
        within: &Selection,
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        self.grow(1);
        let rows = within.count();
        self.rows[0] += rows as u64;
        scratch.ids.clear();
        for index in 0..plan.arguments.len() {
            let argument = &plan.arguments[index];
            if !argument.folded {
                continue;
            }
            if argument.physical == Physical::Text && argument.asked.ends {
                scratch.ids.resize(rows, 0);
                self.add_argument(plan, index, frame, within, (scratch, work))?;
                continue;
            }
            let mut fold = Fold::default();
            frame
                .column(argument.slot)
                .fold(argument.asked, within, &mut fold, work);
            self.folds[index].merge_fold(0, &fold);
        }
        Ok(())
    }

    /// Adds each of an argument's values to its group, encoded where they are no texts to compare.
    fn add_argument(
        &mut self,
        plan: &AggregatePlan,
        index: usize,
        frame: &Frame,
        within: &Selection,
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        let argument = &plan.arguments[index];
        let column = frame.column(argument.slot);
        if argument.physical != Physical::Text || !argument.asked.ends {
            column.fold_by(within, &scratch.ids, &mut self.folds[index], work);
            return Ok(());
        }
        column.gather(within, &mut scratch.values, work);
        scratch
            .translations
            .resize_with(plan.arguments.len(), Translation::default);
        argument
            .dictionary
            .unify(&mut scratch.values, &mut scratch.translations[index])?;
        self.folds[index].update(&scratch.ids, &scratch.values);
        Ok(())
    }

    fn add_grouped(
        &mut self,
        plan: &AggregatePlan,
        frame: &Frame,
        within: &Selection,
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        scratch.packer.pack(&plan.keys, frame, within, work)?;
        self.groups.prepare(&plan.keys);
        scratch.ids.clear();
        self.groups.assign(&scratch.packer.keys, &mut scratch.ids);
        self.grow(self.groups.group_count());
        for id in &scratch.ids {
            self.rows[*id as usize] += 1;
        }
        (0..plan.arguments.len())
            .filter(|index| plan.arguments[*index].folded)
            .try_for_each(|index| self.add_argument(plan, index, frame, within, (scratch, work)))
    }

    /// Adds all groups of `other`.
    pub fn merge(&mut self, plan: &AggregatePlan, other: &Pane) {
        let mut targets: Vec<u32> = Vec::with_capacity(other.len());
        self.groups.prepare(&plan.keys);
        for id in 0..other.len() {
            targets.push(match plan.keys.columns.is_empty() {
                true => 0,
                false => self.groups.assign_one(other.groups.key(id)),
            });
        }
        self.grow(
            targets
                .iter()
                .max()
                .map_or(0, |id| *id as usize + 1)
                .max(self.len()),
        );
        for (id, target) in targets.iter().enumerate() {
            self.merge_group(*target as usize, other, id);
        }
        for (collection, other) in self.collections.iter_mut().zip(&other.collections) {
            collection.merge(other, &targets);
        }
    }

    fn merge_group(&mut self, target: usize, other: &Pane, id: usize) {
        self.rows[target] += other.rows[id];
        for (folds, other) in self.folds.iter_mut().zip(&other.folds) {
            folds.merge_fold(target, &other.get(id));
        }
    }

    /// Writes all groups; text keys mean the dictionaries of the plan, which are written apart.
    pub fn snapshot(&self, out: &mut StateWriter) {
        out.u64(self.len() as u64);
        self.rows.iter().for_each(|rows| out.u64(*rows));
        out.u64(self.groups.keys().len() as u64);
        self.groups.keys().iter().for_each(|word| out.u64(*word));
        self.folds.iter().for_each(|folds| folds.snapshot(out));
        self.collections.iter().for_each(|c| c.snapshot(out));
    }

    /// Reads what [`Pane::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit the plan.
    pub fn restore(plan: &AggregatePlan, from: &mut StateReader<'_>) -> Result<Self> {
        let mut pane = Pane::new(plan);
        let groups = from.count()?;
        let rows: Result<Vec<u64>> = (0..groups).map(|_| from.u64()).collect();
        let words: Result<Vec<u64>> = (0..from.count()?).map(|_| from.u64()).collect();
        let words = words?;
        if words.len() != groups * plan.keys.words {
            return Err(tersecades_columnar::Error::corrupt(
                "group keys do not fit the query",
            ));
        }
        if plan.keys.words > 0 {
            words.chunks_exact(plan.keys.words).for_each(|key| {
                pane.groups.assign_one(key);
            });
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
