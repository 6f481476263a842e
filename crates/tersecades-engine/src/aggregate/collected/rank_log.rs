//! Every value of every group, as a log of group and rank in order of arrival.
//!
//! A log takes 8 or 12 bytes a value whatever the number of groups and grows by appending. When a
//! result is read the ranks of each group are put together, once for every pane (see
//! `rank_group`): windows that overlap share them, and several quantiles do.

use std::any::Any;
use std::cell::OnceCell;
use std::panic::resume_unwind;
use std::sync::Arc;

use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::kernels::Narrow;
use tersecades_columnar::types::{Physical, float_key, float_of};

use super::rank_group::{Grouped, Scratch, Share};
use super::{CollectWork, Collection, Collects, Rows, Second, collected, target_of};
use crate::operator::window_aggregate::pane::NO_GROUP;
use crate::operator::window_aggregate::plan::Argument;
use crate::runtime::state::{StateReader, StateWriter};

/// What aggregates ask for.
pub const RANKS: Collects = Collects {
    name: "ranks",
    second: Second::No,
    by_parameter: false,
    start: |arguments, _| Box::new(Ranks::new(arguments[0])),
};

/// A merge copies fewer values than this rather than share them.
const SHARED_MIN: usize = 256;

/// Fewer values than this are read by one thread: starting another takes as long.
const PARALLEL_MIN: usize = 1 << 16;

/// A log that values come to again is put together anew, if it was so often before.
const REOPENED_MAX: usize = 8;

/// A window takes part in no more logs than this; values of further ones are copied.
const SHARES_MAX: usize = 256;

/// The log of one argument.
#[derive(Debug, Clone)]
pub struct Ranks {
    physical: Physical,
    /// Digits after the point of a decimal.
    scale: i8,
    logs: Logs,
    scratch: Vec<u64>,
}

#[derive(Debug, Clone)]
enum Logs {
    /// Ranks of integers of at most four bytes.
    Short(Log<u32>),
    /// All others.
    Long(Log<u64>),
}

/// Values of groups: own ones, and those of panes that were merged into this one.
#[derive(Debug, Clone, Default)]
struct Log<T> {
    ids: Vec<u32>,
    ranks: Vec<T>,
    /// The own values by group, once a result was read of them.
    grouped: OnceCell<Arc<Grouped<T>>>,
    shares: Vec<Share<T>>,
}

impl<T: Narrow<u16>> Log<T> {
    fn clear(&mut self) {
        self.ids.clear();
        self.ranks.clear();
        self.grouped.take();
        self.shares.clear();
    }

    fn push(&mut self, id: u32, rank: T) {
        self.ids.push(id);
        self.ranks.push(rank);
    }

    fn grouped(&self) -> &Arc<Grouped<T>> {
        let group = || Arc::new(Grouped::new(&self.ids, &self.ranks, &[]));
        self.grouped.get_or_init(group)
    }

    /// Before more values come: those that were put together stay so, and the others start anew.
    fn reopen(&mut self) {
        let Some(grouped) = self.grouped.take() else {
            return;
        };
        if self.ids.len() >= SHARED_MIN && self.shares.len() < REOPENED_MAX {
            self.shares.push(Share::whole(grouped));
            self.ids.clear();
            self.ranks.clear();
        }
    }

    /// Every value with its group.
    fn each(&self, mut visit: impl FnMut(u32, T)) {
        let own = self.ids.iter().zip(&self.ranks);
        own.for_each(|(id, rank)| visit(*id, *rank));
        self.shares.iter().for_each(|share| share.each(&mut visit));
    }

    fn len(&self) -> usize {
        self.ids.len() + self.shares.iter().map(Share::len).sum::<usize>()
    }

    /// Adds the groups of `other`: by reference where each goes to a group of its own.
    fn merge(&mut self, other: &Log<T>, targets: &[u32]) {
        self.grouped.take();
        let room = self.shares.len() + other.shares.len() < SHARES_MAX;
        let shares: Option<Vec<Share<T>>> = match room && other.len() >= SHARED_MIN {
            true => other.shares.iter().map(|s| s.renumbered(targets)).collect(),
            false => None,
        };
        let own = || match other.ids.len() {
            0 => Some(None),
            _ => Share::new(|| other.grouped(), targets).map(Some),
        };
        if let Some((shares, own)) = shares.and_then(|shares| Some((shares, own()?))) {
            self.shares.extend(shares);
            self.shares.extend(own);
            return;
        }
        other.each(|id, rank| {
            if let Some(target) = target_of(targets, id) {
                self.push(target, rank);
            }
        });
    }

    /// Groups the own values if a merge would share them; groups have had so many `rows`.
    fn settle(&self, rows: &[u64]) {
        if self.ids.len() < SHARED_MIN {
            return;
        }
        // A row has one value here or none: where totals agree, so do the counts of each group.
        let counted = rows.iter().sum::<u64>() == self.ids.len() as u64;
        let counts = if counted { rows } else { &[] };
        let group = || Arc::new(Grouped::new(&self.ids, &self.ranks, counts));
        self.grouped.get_or_init(group);
    }

    /// For each of `fractions` the quantile of each of the groups `order`, worked out by so many
    /// threads.
    fn quantiles(
        &self,
        fractions: &[f64],
        (order, threads): (&[u32], usize),
        number: impl Fn(u64) -> f64 + Sync,
    ) -> Quantiles {
        let reader = Reader {
            own: self.grouped(),
            shares: &self.shares,
            fractions,
        };
        if threads < 2 || self.len() < PARALLEL_MIN {
            return reader.quantiles(order, &number);
        }
        let mut parts = order.chunks(order.len().div_ceil(threads).max(1));
        let first = parts.next().unwrap_or_default();
        let (reader, number) = (&reader, &number);
        std::thread::scope(|scope| {
            let others: Vec<_> = parts
                .map(|part| scope.spawn(move || reader.quantiles(part, number)))
                .collect();
            let mut found = reader.quantiles(first, number);
            for other in others {
                found.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            found
        })
    }

    fn byte_size(&self) -> usize {
        let log = self.ids.capacity() * size_of::<u32>() + self.ranks.capacity() * size_of::<T>();
        let grouped = self.grouped.get().map_or(0, |own| own.byte_size());
        let shares: usize = self.shares.iter().map(Share::byte_size).sum();
        log + grouped + shares
    }

    fn snapshot(&self, out: &mut StateWriter) {
        out.u64(self.len() as u64);
        self.each(|id, rank| {
            out.u64(u64::from(id));
            out.u64(rank.into());
        });
    }
}

/// Quantiles of groups.
#[derive(Debug, Default)]
pub struct Quantiles {
    /// For each fraction that of each group.
    pub columns: Vec<Vec<f64>>,
    /// Places of groups without a value, whose numbers mean nothing.
    pub absent: Vec<usize>,
}

impl Quantiles {
    /// Puts those of other groups behind these.
    fn extend(&mut self, other: Quantiles) {
        let before = self.columns.first().map_or(0, Vec::len);
        let absent = other.absent.into_iter();
        self.absent.extend(absent.map(|place| before + place));
        for (column, other) in self.columns.iter_mut().zip(other.columns) {
            column.extend(other);
        }
    }

    /// Puts at `place` what lies between ranks, nothing where there are none.
    #[inline]
    fn put<T: Narrow<u16>>(
        &mut self,
        place: usize,
        between: impl Iterator<Item = ([T; 2], f64)>,
        number: &impl Fn(u64) -> f64,
    ) {
        let mut is_absent = true;
        for (column, (ranks, share)) in self.columns.iter_mut().zip(between) {
            let [low, high] = ranks.map(|rank| number(rank.into()));
            column[place] = interpolate(low, high, share);
            is_absent = false;
        }
        if is_absent {
            self.absent.push(place);
        }
    }

    /// Which groups have a value, where any has none.
    pub fn nulls(&self) -> Option<NullBuffer> {
        let groups = self.columns.first().map_or(0, Vec::len);
        let mut valid = BooleanBufferBuilder::new(groups);
        valid.append_n(groups, true);
        for place in &self.absent {
            valid.set_bit(*place, false);
        }
        (!self.absent.is_empty()).then(|| NullBuffer::new(valid.finish()))
    }
}

/// Reads quantiles of groups.
struct Reader<'a, T> {
    own: &'a Grouped<T>,
    shares: &'a [Share<T>],
    fractions: &'a [f64],
}

impl<T: Narrow<u16>> Reader<'_, T> {
    /// For each fraction the quantile of each of the groups `order`, which differ.
    fn quantiles(&self, order: &[u32], number: &impl Fn(u64) -> f64) -> Quantiles {
        let groups = order.iter().max().map_or(0, |id| *id as usize + 1);
        let mut place_of = vec![NO_GROUP; groups];
        for (place, id) in order.iter().enumerate() {
            place_of[*id as usize] = place as u32;
        }
        let mut found = Quantiles {
            columns: vec![vec![0.0; order.len()]; self.fractions.len()],
            absent: Vec::new(),
        };
        let mut scratch = Scratch::default();
        // In the order in which the ranks of groups lie.
        for (id, place) in place_of.iter().enumerate() {
            if *place == NO_GROUP {
                continue;
            }
            let own = (self.own, id as u32);
            match self.shares {
                [] => found.put(*place as usize, scratch.within(own, self.fractions), number),
                shares => {
                    let shares = shares.iter().map(|share| share.of(id as u32));
                    let runs = std::iter::once(own).chain(shares);
                    found.put(
                        *place as usize,
                        scratch.between(runs, self.fractions),
                        number,
                    );
                }
            }
        }
        found
    }
}

impl Ranks {
    /// An empty log of values of `argument`.
    fn new(argument: &Argument) -> Self {
        let short = matches!(argument.physical, Physical::Integer { bytes: 1..=4, .. });
        Ranks {
            physical: argument.physical,
            scale: argument.scale(),
            logs: match short {
                true => Logs::Short(Log::default()),
                false => Logs::Long(Log::default()),
            },
            scratch: Vec::new(),
        }
    }

    /// For each of `fractions` the quantile of each of the groups `order`, worked out by so many
    /// threads.
    pub fn quantiles(&self, fractions: &[f64], order: (&[u32], usize)) -> Quantiles {
        let physical = self.physical;
        let number = |rank: u64| match physical {
            Physical::Integer { .. } => {
                let value = physical.value_of(rank);
                i64::try_from(value).map_or(value as f64, |value| value as f64)
            }
            _ => float_of(rank),
        };
        match &self.logs {
            Logs::Short(log) => log.quantiles(fractions, order, number),
            Logs::Long(log) => log.quantiles(fractions, order, number),
        }
    }

    /// The group of each row that has a value.
    fn add_ids(&mut self, rows: &Rows<'_>) {
        let ids = match &mut self.logs {
            Logs::Short(log) => &mut log.ids,
            Logs::Long(log) => &mut log.ids,
        };
        let column = rows.column(0);
        match (column.nulls(), rows.ids) {
            (0, []) => ids.resize(ids.len() + rows.within.count(), 0),
            (0, all) => ids.extend_from_slice(all),
            _ => {
                let mut index = 0;
                rows.within.for_each(|row| {
                    if column.validity().get(row) {
                        ids.push(rows.id(index));
                    }
                    index += 1;
                });
            }
        }
    }
}

impl Collection for Ranks {
    fn grow(&mut self, _groups: usize) {}

    fn clear(&mut self) {
        match &mut self.logs {
            Logs::Short(log) => log.clear(),
            Logs::Long(log) => log.clear(),
        }
    }

    /// Values are gathered only where they are decimals.
    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let (CollectWork { values, .. }, work) = work;
        match &mut self.logs {
            Logs::Short(log) => log.reopen(),
            Logs::Long(log) => log.reopen(),
        }
        self.add_ids(&rows);
        let column = rows.column(0);
        let logged = match &mut self.logs {
            Logs::Long(log) if self.physical == Physical::Wide => {
                column.gather(rows.within, values, work);
                let scale = 10f64.powi(i32::from(self.scale));
                let valid = (0..values.len()).filter(|index| values.is_valid(*index));
                let floats = valid.map(|index| values.wide[index] as f64 / scale);
                log.ranks.extend(floats.map(float_key));
                log.ids.len() == log.ranks.len()
            }
            Logs::Long(log) => {
                column.rank(rows.within, &mut log.ranks, work)?;
                log.ids.len() == log.ranks.len()
            }
            Logs::Short(log) => {
                self.scratch.clear();
                column.rank(rows.within, &mut self.scratch, work)?;
                log.ranks
                    .extend(self.scratch.iter().map(|rank| *rank as u32));
                log.ids.len() == log.ranks.len()
            }
        };
        match logged {
            true => Ok(()),
            false => Err(Error::internal("some values have no rank")),
        }
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        let Ok(other) = collected::<Ranks>(other) else {
            return;
        };
        match (&mut self.logs, &other.logs) {
            (Logs::Short(own), Logs::Short(other)) => own.merge(other, targets),
            (Logs::Long(own), Logs::Long(other)) => own.merge(other, targets),
            _ => {}
        }
    }

    fn settle(&self, rows: &[u64]) {
        match &self.logs {
            Logs::Short(log) => log.settle(rows),
            Logs::Long(log) => log.settle(rows),
        }
    }

    fn byte_size(&self) -> usize {
        let log = match &self.logs {
            Logs::Short(log) => log.byte_size(),
            Logs::Long(log) => log.byte_size(),
        };
        log + self.scratch.capacity() * size_of::<u64>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        match &self.logs {
            Logs::Short(log) => log.snapshot(out),
            Logs::Long(log) => log.snapshot(out),
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        for _ in 0..from.count()? {
            let (id, rank) = (from.u64()?, from.u64()?);
            if id >= groups as u64 {
                return Err(Error::corrupt("a value belongs to no group"));
            }
            match &mut self.logs {
                Logs::Short(log) => log.push(id as u32, rank as u32),
                Logs::Long(log) => log.push(id as u32, rank),
            }
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

/// The number at `share` of the way from `low` to `high`, which may be infinite.
fn interpolate(low: f64, high: f64, share: f64) -> f64 {
    let apart = high - low;
    if share == 0.0 || low == high {
        low
    } else if apart.is_infinite() && low.is_finite() && high.is_finite() {
        low * (1.0 - share) + high * share
    } else {
        low + share * apart
    }
}
