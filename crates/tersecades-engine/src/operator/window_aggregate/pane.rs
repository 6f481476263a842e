//! A pane: the groups of a stretch of time that no window boundary cuts.

mod snapshot;

use std::sync::LazyLock;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::Fold;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::{Selection, Shape};
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use crate::aggregate::batch_fold::BatchFold;
use crate::aggregate::collected::{CollectWork, Collection, Rows};
use crate::aggregate::fold_column::{FoldColumn, for_each_target};
use crate::frame::Frame;

use super::feed::PaneReader;
use super::keys::Translation;
use super::packer::KeyPacker;
use super::part::{Assigned, PartReader};
use super::plan::AggregatePlan;
use super::table::GroupTable;

/// The target of a group that is left out of a merge.
pub const NO_GROUP: u32 = u32::MAX;

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
    pub collections: Vec<Box<dyn Collection>>,
}

/// A batch, the rows of it that go to a pane, and the rows of the stream before it.
pub type PaneRows<'a> = (&'a Frame, &'a Selection, u64);

/// What a condition that holds is.
static IS_TRUE: LazyLock<Predicate> = LazyLock::new(|| Predicate::key_range(1, 1));

/// The rows that go to the aggregates of one filter.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    frame: &'a Frame,
    within: &'a Selection,
    /// The bucket of each row, as [`BatchFold`] has them; none where there is one group.
    ids: &'a [u32],
    rows_before: u64,
    /// Index of the filter.
    filter: Option<usize>,
}

/// Scratch memory of a worker.
#[derive(Debug, Default)]
pub struct PaneWork {
    /// Packs keys.
    pub packer: KeyPacker,
    parts: PartReader,
    /// The bucket of each row.
    ids: Vec<u32>,
    /// The group of each row, where buckets are none.
    groups: Vec<u32>,
    passed: Selection,
    passed_ids: Vec<u32>,
    /// The group of every row where there is one.
    zeros: Vec<u32>,
    values: Values,
    translations: Vec<Translation>,
    batch: BatchFold,
    collect: CollectWork,
}

impl PaneWork {
    /// Sets the group of each row that [`Pane::add_assigned`] adds.
    pub fn set_ids(&mut self, ids: &[u32]) {
        self.ids.clear();
        self.ids.extend_from_slice(ids);
    }
}

impl Pane {
    /// No groups.
    pub fn new(plan: &AggregatePlan) -> Self {
        let (folds, collections) = (plan.arguments.iter(), plan.collections.iter());
        Pane {
            groups: GroupTable::new(&plan.keys),
            rows: Vec::new(),
            folds: folds.map(FoldColumn::new).collect(),
            collections: collections
                .map(|c| c.start(&plan.arguments, plan.threads))
                .collect(),
        }
    }

    /// Forgets all groups, keeps the memory.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.rows.clear();
        self.folds.iter_mut().for_each(FoldColumn::clear);
        self.collections.iter_mut().for_each(|c| c.clear());
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
                .map(|collection| collection.byte_size())
                .sum::<usize>()
    }

    /// Does what merging or reading it would do first.
    pub fn settle(&self) {
        let collections = self.collections.iter();
        collections.for_each(|c| c.settle(&self.rows));
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
        let (frame, within, _) = rows;
        if within.is_empty() {
            return Ok(());
        }
        self.assign(plan, (frame, within), (&mut *scratch, &mut *work))?;
        self.add_parts(plan, rows, (scratch, work))
    }

    /// Adds `rows` rows whose arguments fold to `folds` to the only group.
    pub fn add_folds(&mut self, rows: u64, folds: &[Fold]) {
        self.grow(1);
        self.rows[0] += rows;
        for (known, fold) in self.folds.iter_mut().zip(folds) {
            known.merge_fold(0, fold);
        }
    }

    /// Adds the rows of `within`, whose groups are [`PaneWork::set_ids`], all below the pane's.
    ///
    /// # Errors
    /// What reading arguments says.
    pub fn add_assigned(
        &mut self,
        plan: &AggregatePlan,
        rows: PaneRows<'_>,
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        scratch.batch.count(&scratch.ids, self.len());
        scratch.batch.place();
        count_rows(&mut self.rows, &scratch.ids, &scratch.batch);
        self.add_parts(plan, rows, (scratch, work))
    }

    /// Adds rows, whose groups are in `scratch`, to all that they pass the filter of.
    fn add_parts(
        &mut self,
        plan: &AggregatePlan,
        (frame, within, rows_before): PaneRows<'_>,
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        let ids = std::mem::take(&mut scratch.ids);
        let part = Part {
            frame,
            within,
            ids: &ids,
            rows_before,
            filter: None,
        };
        let mut added = self.add_part(plan, part, (&mut *scratch, &mut *work));
        for filter in 0..plan.filters.len() {
            if added.is_ok() {
                added = self.add_filtered(plan, (filter, part), (&mut *scratch, &mut *work));
            }
        }
        scratch.ids = ids;
        added
    }

    /// Finds the bucket of each row, the ids in `scratch`, and the groups of buckets; there are
    /// none where there is one group.
    fn assign(
        &mut self,
        plan: &AggregatePlan,
        (frame, within): (&Frame, &Selection),
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        scratch.ids.clear();
        if plan.keys.columns.is_empty() {
            self.grow(1);
            self.rows[0] += within.count() as u64;
            return Ok(());
        }
        let PaneWork {
            packer,
            parts,
            ids,
            batch,
            ..
        } = scratch;
        let found = (&mut self.groups, &mut *ids);
        let assigned = parts.assign(&plan.keys, (frame, within), found, work);
        if assigned == Assigned::No {
            packer.pack(&plan.keys, frame, within, work)?;
            let (keys, rows) = (&plan.keys, within.count());
            self.groups.cover(keys, keys.spans(frame), rows);
            self.groups.assign_packed(packer.keys(), ids);
        }
        let buckets = match assigned {
            Assigned::Cells(cells) => cells,
            _ => self.groups.group_count(),
        };
        match plan.counted_argument() {
            None => batch.count(ids, buckets),
            Some((index, argument)) => {
                let column = frame.column(argument.slot);
                batch.count_and_add((ids, buckets), (index, column), |cells| {
                    column.fold_by(within, ids, cells, work);
                });
            }
        }
        let (counts, groups) = batch.place();
        if let Assigned::Cells(_) = assigned {
            self.groups.assign_addressed(counts, groups);
        }
        self.grow(self.groups.group_count());
        count_rows(&mut self.rows, ids, batch);
        Ok(())
    }

    /// Adds the rows of `part` that pass a filter to what has that filter.
    fn add_filtered(
        &mut self,
        plan: &AggregatePlan,
        (filter, part): (usize, Part<'_>),
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        let mut passed = std::mem::take(&mut scratch.passed);
        let mut ids = std::mem::take(&mut scratch.passed_ids);
        let condition = part.frame.column(plan.filters[filter]);
        condition.compare(&IS_TRUE, part.within, &mut passed, work);
        passed.settle();
        ids.clear();
        if part.within.shape() == Shape::All && !part.ids.is_empty() {
            passed.for_each(|row| ids.push(part.ids[row]));
        } else if !part.ids.is_empty() {
            let mut all = part.ids.iter();
            part.within.for_each(|row| {
                let id = all.next();
                ids.extend(id.filter(|_| passed.contains(row)));
            });
        }
        let mut added = Ok(());
        if !passed.is_empty() {
            scratch.batch.count_again(&ids, self.len());
            let part = Part {
                within: &passed,
                ids: &ids,
                filter: Some(filter),
                ..part
            };
            added = self.add_part(plan, part, (&mut *scratch, work));
        }
        scratch.passed = passed;
        scratch.passed_ids = ids;
        added
    }

    fn add_part(
        &mut self,
        plan: &AggregatePlan,
        part: Part<'_>,
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        for (index, argument) in plan.arguments.iter().enumerate() {
            if argument.folded && argument.filter == part.filter {
                self.add_argument(plan, index, part, (&mut *scratch, &mut *work))?;
            }
        }
        let collections = self.collections.iter_mut().zip(&plan.collections);
        for (collection, collecting) in collections {
            if collecting.filter != part.filter {
                continue;
            }
            let rows = Rows {
                frame: part.frame,
                within: part.within,
                ids: groups_of(&part, &scratch.batch, &mut scratch.groups),
                rows_before: part.rows_before,
                arguments: &plan.arguments,
                read: &collecting.arguments,
            };
            collection.add(rows, (&mut scratch.collect, work))?;
        }
        Ok(())
    }

    /// Adds each of an argument's values to its group, encoded where they are no texts to compare.
    fn add_argument(
        &mut self,
        plan: &AggregatePlan,
        index: usize,
        part: Part<'_>,
        (scratch, work): (&mut PaneWork, &mut Work),
    ) -> Result<()> {
        let argument = &plan.arguments[index];
        let column = part.frame.column(argument.slot);
        let folds = &mut self.folds[index];
        if argument.physical == Physical::Text && argument.asked.ends {
            column.gather(part.within, &mut scratch.values, work);
            let known = &mut scratch.translations;
            known.resize_with(plan.arguments.len(), Translation::default);
            argument
                .dictionary
                .unify(&mut scratch.values, &mut known[index])?;
            scratch.zeros.resize(scratch.values.len(), 0);
            let ids = match part.ids.is_empty() {
                true => &scratch.zeros,
                false => groups_of(&part, &scratch.batch, &mut scratch.groups),
            };
            folds.update(ids, &scratch.values);
        } else if part.ids.is_empty() {
            let mut fold = Fold::default();
            column.fold(argument.asked, part.within, &mut fold, work);
            folds.merge_fold(0, &fold);
        } else if !scratch
            .batch
            .add((column, part.ids), (index, folds), |cells| {
                column.fold_by(part.within, part.ids, cells, work);
            })
        {
            let groups = groups_of(&part, &scratch.batch, &mut scratch.groups);
            column.fold_by(part.within, groups, folds, work);
        }
        Ok(())
    }

    /// Adds all groups of `other`.
    pub fn merge(&mut self, plan: &AggregatePlan, other: &Pane) {
        let mut targets: Vec<u32> = Vec::with_capacity(other.len());
        self.find_groups(plan, other, &mut targets);
        let groups = targets.iter().max().map_or(0, |id| *id as usize + 1);
        self.merge_into(other, &targets, groups.max(self.len()));
    }

    /// Adds what `reader` takes of the groups of `other`.
    pub fn merge_read(&mut self, plan: &AggregatePlan, other: &Pane, reader: &PaneReader) {
        let mut targets: Vec<u32> = Vec::with_capacity(other.len());
        self.find_groups(plan, other, &mut targets);
        self.merge_rows(other, &targets);
        for (own, theirs) in &reader.arguments {
            self.folds[*own].merge(&other.folds[*theirs], &targets);
        }
        for (own, theirs) in &reader.collections {
            self.collections[*own].merge(&*other.collections[*theirs], &targets);
        }
    }

    /// Adds the number of rows of each group of `other`; makes room for the rest.
    fn merge_rows(&mut self, other: &Pane, targets: &[u32]) {
        let groups = targets.iter().max().map_or(0, |id| *id as usize + 1);
        self.grow(groups.max(self.len()));
        for_each_target(&mut self.rows, &other.rows, targets, |to, rows| *to += rows);
    }

    /// Sets `targets` to the group here of each group of `other`, new ones included.
    pub fn find_groups(&mut self, plan: &AggregatePlan, other: &Pane, targets: &mut Vec<u32>) {
        targets.clear();
        self.groups.cover_as(&plan.keys, &other.groups);
        match plan.keys.columns.is_empty() {
            true => targets.resize(other.len(), 0),
            false => self.groups.assign_packed(other.groups.packed(), targets),
        }
    }

    /// Adds group `id` of `other` to group `targets[id]` of `groups`, or to none.
    pub fn merge_into(&mut self, other: &Pane, targets: &[u32], groups: usize) {
        self.merge_folds((&other.rows, &other.folds), targets, groups);
        for (collection, other) in self.collections.iter_mut().zip(&other.collections) {
            collection.merge(&**other, targets);
        }
    }

    /// As [`Pane::merge_into`], of the rows and the folds of a pane without collections.
    pub fn merge_folds(
        &mut self,
        (rows, folds): (&[u64], &[FoldColumn]),
        targets: &[u32],
        groups: usize,
    ) {
        self.grow(groups);
        for_each_target(&mut self.rows, rows, targets, |to, rows| *to += rows);
        for (folds, other) in self.folds.iter_mut().zip(folds) {
            folds.merge(other, targets);
        }
    }

    /// Takes group `id` of `other`, which was merged, away from group `targets[id]` again.
    ///
    /// Only for plans that are [invertible](AggregatePlan::is_invertible).
    pub fn unmerge_from(&mut self, other: &Pane, targets: &[u32]) {
        for_each_target(&mut self.rows, &other.rows, targets, |to, rows| *to -= rows);
        for (folds, other) in self.folds.iter_mut().zip(&other.folds) {
            folds.unmerge(other, targets);
        }
    }
}

/// Adds the rows of each group, which `batch` counted where that is the faster way.
fn count_rows(rows: &mut [u64], ids: &[u32], batch: &BatchFold) {
    if !batch.add_rows(rows) {
        ids.iter().for_each(|id| rows[*id as usize] += 1);
    }
}

/// The group of each row of `part`, in `memory` where its ids are not the groups themselves.
fn groups_of<'a>(part: &Part<'a>, batch: &BatchFold, memory: &'a mut Vec<u32>) -> &'a [u32] {
    let groups = batch.groups();
    if groups.is_empty() {
        return part.ids;
    }
    memory.clear();
    memory.extend(part.ids.iter().map(|id| groups[*id as usize]));
    memory
}

/// The fold of the selected rows that pass what is left over of a frame, if anything is; see
/// [`AggregatePlan::tested_slot`].
pub(super) fn fold_left_over(plan: &AggregatePlan, frame: &Frame, work: &mut Work) -> Option<Fold> {
    let argument = plan
        .arguments
        .first()
        .filter(|_| frame.left_over.is_some())?;
    let (asked, mut fold) = ((argument.slot, argument.asked), Fold::default());
    frame.fold(asked, &frame.selection, &mut fold, work);
    Some(fold)
}
