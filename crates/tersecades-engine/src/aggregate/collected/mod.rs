//! State that keeps more of a group's values than a fold does.
//!
//! ```text
//! Ranks         every value, in order-preserving form       quantile, median
//! Distinct      each different value once                   count_distinct, sum_distinct …
//! Extreme       one value and what it was chosen by         arg_min, arg_max_last, first …
//! ValueCounts   different values or bins, and their rows    mode, top_k, histogram, sketches,
//!                                                           quantile_disc
//! HyperLogLog   the largest hashes of each of 4,096 parts   approx_count_distinct
//! BitSets       bits of all, some, an odd number of values  bit_and, bit_or, bit_xor
//! Comoments     means and summed products of two columns    covariance, correlation, regr_slope …
//! Powers        mean and summed powers of deviations        skewness, kurtosis
//! Factors       products                                    product
//! ```
//! A collection holds all groups of a pane. Aggregates that collect the same of the same arguments
//! and rows share one, as folds are shared. What a collection holds depends on the rows it was
//! given, never on their order or on how panes were merged.

pub mod bits;
pub mod comoment;
mod dense;
pub mod distinct;
mod distinct_pair;
pub mod extreme;
pub mod factor;
mod grouped_value;
pub mod hyper_log_log;
mod pair_count;
pub mod power;
mod rank_group;
pub mod rank_log;
pub mod value_count;

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use arrow_array::ArrayRef;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::primitive::repeat::Repeats;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, Value};
use tersecades_columnar::values::Values;

use super::UserAggregate;
use super::result::ResultColumn;
use crate::frame::Frame;
use crate::operator::window_aggregate::keys::Translation;
use crate::operator::window_aggregate::pane::NO_GROUP;
use crate::operator::window_aggregate::plan::{Argument, Reading};
use crate::runtime::state::{StateReader, StateWriter};
use pair_count::PairCounts;

/// Collected values of all groups of a pane, by group id.
pub trait Collection: Debug + Send {
    /// Says how many threads a merge may use.
    fn work_on(&mut self, _threads: usize) {}

    /// Makes room for `groups` groups; new ones are empty.
    fn grow(&mut self, groups: usize);

    /// Forgets all groups, keeps the memory.
    fn clear(&mut self);

    /// Adds rows.
    ///
    /// # Errors
    /// `LimitExceeded` when a dictionary outgrows its limit.
    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()>;

    /// Adds the groups of `other`, a collection of the same kind: group `id` to `targets[id]`, or
    /// to none where that is [`NO_GROUP`].
    fn merge(&mut self, other: &dyn Collection, targets: &[u32]);

    /// Does what reading or merging this collection would do first; groups have had so many `rows`.
    fn settle(&self, _rows: &[u64]) {}

    /// Bytes of memory held.
    fn byte_size(&self) -> usize;

    /// Writes all groups.
    fn snapshot(&self, out: &mut StateWriter);

    /// Reads what [`Collection::snapshot`] wrote for `groups` groups.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit.
    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()>;

    /// A copy.
    fn copy(&self) -> Box<dyn Collection>;

    /// The collection as what it is.
    fn as_any(&self) -> &dyn Any;
}

impl Clone for Box<dyn Collection> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

/// `collection` as the kind that an aggregate collects.
///
/// # Errors
/// `Internal` when it is another.
pub fn collected<C: Collection + 'static>(collection: &dyn Collection) -> Result<&C> {
    let found = collection.as_any().downcast_ref();
    found.ok_or_else(|| Error::internal("an aggregate reads a collection of another kind"))
}

/// What a second column is to an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// There is none.
    No,
    /// It orders the rows.
    Order,
    /// It is the event time where there is one, which orders the rows; users do not write it.
    Time,
    /// It is the other number of a pair.
    Number,
}

/// What an aggregate needs kept of the values.
#[derive(Clone, Copy)]
pub struct Collects {
    /// The name; aggregates that keep the same share it.
    pub name: &'static str,
    /// The second column.
    pub second: Second,
    /// Whether what is kept depends on the number that the aggregate takes.
    pub by_parameter: bool,
    /// An empty collection for arguments and the number.
    pub start: fn(&[&Argument], f64) -> Box<dyn Collection>,
}

impl Debug for Collects {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Where collections come from.
#[derive(Clone)]
pub enum Kind {
    /// An aggregate of the list.
    Listed(Collects),
    /// An aggregate from outside.
    User(Arc<dyn UserAggregate>),
}

/// A collection that a plan needs.
#[derive(Clone)]
pub struct Collecting {
    /// What is kept.
    pub kind: Kind,
    /// Indices of the arguments, at least one.
    pub arguments: Vec<usize>,
    /// The number it depends on.
    pub parameter: Option<f64>,
    /// Index of the filter.
    pub filter: Option<usize>,
}

impl Collecting {
    fn name(&self) -> &str {
        match &self.kind {
            Kind::Listed(collects) => collects.name,
            Kind::User(aggregate) => aggregate.name(),
        }
    }

    /// Whether one collection serves both.
    pub fn is_same(&self, other: &Collecting) -> bool {
        let kind = match (&self.kind, &other.kind) {
            (Kind::Listed(own), Kind::Listed(theirs)) => own.name == theirs.name,
            (Kind::User(own), Kind::User(theirs)) => Arc::ptr_eq(own, theirs),
            _ => false,
        };
        kind && self.arguments == other.arguments
            && self.parameter == other.parameter
            && self.filter == other.filter
    }

    /// An empty collection, in merges of which so many threads may work.
    pub fn start(&self, arguments: &[Argument], threads: usize) -> Box<dyn Collection> {
        let arguments: Vec<&Argument> = self.arguments.iter().map(|at| &arguments[*at]).collect();
        let mut collection = match &self.kind {
            Kind::Listed(collects) => {
                (collects.start)(&arguments, self.parameter.unwrap_or_default())
            }
            Kind::User(aggregate) => super::user::start(aggregate, &arguments),
        };
        collection.work_on(threads);
        collection
    }
}

/// The same for the same query in another process: snapshots are told apart by it.
impl Debug for Collecting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, arguments) = (self.name(), &self.arguments);
        write!(f, "{name}{arguments:?} {:?}", self.parameter)?;
        match self.filter {
            Some(filter) => write!(f, " filter {filter}"),
            None => Ok(()),
        }
    }
}

/// Rows on their way to collections, and scratch memory.
#[derive(Debug, Default)]
pub struct CollectWork {
    /// Values of the first argument.
    pub values: Values,
    /// Values of the second.
    pub by: Values,
    /// Values of the first and how many rows have each.
    pub repeats: Repeats,
    /// Rows whose values of the first are wanted.
    pub picked: Selection,
    /// Groups whose best row is another than before.
    pub changed: Vec<bool>,
    /// Their ids.
    pub groups: Vec<u32>,
    pairs: PairCounts,
    translations: Vec<Translation>,
}

/// The rows of a batch that go to a collection.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The batch.
    pub frame: &'a Frame,
    /// The rows.
    pub within: &'a Selection,
    /// The group of each; empty where there is one group.
    pub ids: &'a [u32],
    /// Rows of the stream before the batch.
    pub rows_before: u64,
    /// All arguments of the plan.
    pub arguments: &'a [Argument],
    /// Which of them the collection reads.
    pub read: &'a [usize],
}

impl<'a> Rows<'a> {
    /// The group of the selected row `index`.
    pub fn id(&self, index: usize) -> u32 {
        self.ids.get(index).copied().unwrap_or(0)
    }

    /// Argument `index` of the collection; the first where there are fewer.
    pub fn argument(&self, index: usize) -> &'a Argument {
        let read = self.read.get(index).or(self.read.first());
        &self.arguments[read.copied().unwrap_or(0)]
    }

    /// The column of argument `index`.
    pub fn column(&self, index: usize) -> &'a Chunk {
        self.frame.column(self.argument(index).slot)
    }

    /// Fills `values` with those of argument `index`, texts as codes of its shared dictionary.
    fn unify(
        &self,
        index: usize,
        values: &mut Values,
        translations: &mut Vec<Translation>,
    ) -> Result<()> {
        if values.physical != Physical::Text {
            return Ok(());
        }
        translations.resize_with(self.arguments.len(), Translation::default);
        let read = self.read.get(index).copied().unwrap_or(0);
        let dictionary = &self.arguments[read].dictionary;
        dictionary.unify(values, &mut translations[read])
    }

    /// Decodes the first argument into `scratch.values`.
    ///
    /// # Errors
    /// `LimitExceeded` when a dictionary outgrows its limit.
    pub fn gather(&self, scratch: &mut CollectWork, work: &mut Work) -> Result<()> {
        self.column(0)
            .gather(self.within, &mut scratch.values, work);
        self.unify(0, &mut scratch.values, &mut scratch.translations)
    }

    /// The same of the rows `scratch.picked` alone.
    ///
    /// # Errors
    /// `LimitExceeded` when a dictionary outgrows its limit.
    pub fn gather_picked(&self, scratch: &mut CollectWork, work: &mut Work) -> Result<()> {
        self.column(0)
            .gather(&scratch.picked, &mut scratch.values, work);
        self.unify(0, &mut scratch.values, &mut scratch.translations)
    }

    /// Decodes the second argument into `scratch.by`.
    ///
    /// # Errors
    /// `LimitExceeded` when a dictionary outgrows its limit.
    pub fn gather_second(&self, scratch: &mut CollectWork, work: &mut Work) -> Result<()> {
        self.column(1).gather(self.within, &mut scratch.by, work);
        self.unify(1, &mut scratch.by, &mut scratch.translations)
    }

    /// Calls `visit` with group, values, place in them and number of rows for each value of the
    /// first argument that is not null; where there is one group, or values of groups are few,
    /// repeats come at once.
    ///
    /// # Errors
    /// `LimitExceeded` when a dictionary outgrows its limit.
    pub fn for_each_value(
        &self,
        (scratch, work): (&mut CollectWork, &mut Work),
        mut visit: impl FnMut(u32, &Values, usize, u64),
    ) -> Result<()> {
        if self.ids.is_empty() {
            self.column(0)
                .repeats(self.within, &mut scratch.repeats, work);
            let Repeats { values, counts } = &mut scratch.repeats;
            self.unify(0, values, &mut scratch.translations)?;
            for (index, count) in counts.iter().enumerate() {
                visit(0, values, index, *count);
            }
            return Ok(());
        }
        let CollectWork { pairs, repeats, .. } = scratch;
        if pairs.count(self.column(0), (self.within, self.ids), repeats, work) {
            let Repeats { values, counts } = repeats;
            self.unify(0, values, &mut scratch.translations)?;
            for (index, (id, count)) in scratch.pairs.ids.iter().zip(counts).enumerate() {
                visit(*id, values, index, *count);
            }
            return Ok(());
        }
        self.gather(scratch, work)?;
        let values = &scratch.values;
        for (index, id) in self.ids.iter().enumerate() {
            if values.is_valid(index) {
                visit(*id, values, index, 1);
            }
        }
        Ok(())
    }
}

/// Where a merge takes group `id`; `None` where it is left out.
fn target_of(targets: &[u32], id: u32) -> Option<u32> {
    let target = targets.get(id as usize).copied();
    target.filter(|target| *target != NO_GROUP)
}

/// Every group that a merge takes, and where to.
fn taken<'a, T>(groups: &'a [T], targets: &'a [u32]) -> impl Iterator<Item = (&'a T, usize)> {
    let pairs = groups.iter().zip(targets);
    pairs
        .filter(|(_, target)| **target != NO_GROUP)
        .map(|(group, target)| (group, *target as usize))
}

/// The groups that results are wanted of.
#[derive(Debug, Clone, Copy)]
pub struct Finish<'a> {
    /// Their ids, in the order of the result.
    pub order: &'a [u32],
    /// What is read.
    pub reading: &'a Reading,
    /// Its first argument.
    pub argument: &'a Argument,
    /// Threads that may work on it.
    pub threads: usize,
}

impl Finish<'_> {
    /// A column of the reading's type with a value for each group.
    ///
    /// # Errors
    /// What `value` says.
    pub fn column(&self, mut value: impl FnMut(u32) -> Result<Value>) -> Result<ArrayRef> {
        let data_type = &self.reading.data_type;
        let mut column =
            ResultColumn::new(data_type, self.argument.dictionary.get(), self.order.len())?;
        for id in self.order {
            column.push(value(*id)?);
        }
        column.finish(data_type)
    }
}
