//! Every value of every group, as a log of group and rank in order of arrival.
//!
//! A log takes 8 or 12 bytes a value whatever the number of groups, grows by appending, and merges
//! by appending. When a window closes, one counting pass puts each group's ranks together, and a
//! selection (not a sort) finds those a quantile lies between.

use std::any::Any;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Physical, Value, float_key, float_of};

use super::{CollectWork, Collection, Collects, Rows, Second, collected, target_of};
use crate::operator::window_aggregate::plan::Argument;
use crate::runtime::state::{StateReader, StateWriter};

/// What aggregates ask for.
pub const RANKS: Collects = Collects {
    name: "ranks",
    second: Second::No,
    by_parameter: false,
    start: |arguments, _| Box::new(Ranks::new(arguments[0])),
};

/// The log of one argument.
#[derive(Debug, Clone)]
pub struct Ranks {
    physical: Physical,
    /// Digits after the point of a decimal.
    scale: i8,
    ids: Vec<u32>,
    /// Ranks of integers of at most four bytes.
    short: Vec<u32>,
    /// All others.
    long: Vec<u64>,
    scratch: Vec<u64>,
}

impl Ranks {
    /// An empty log of values of `argument`.
    fn new(argument: &Argument) -> Self {
        Ranks {
            physical: argument.physical,
            scale: argument.scale(),
            ids: Vec::new(),
            short: Vec::new(),
            long: Vec::new(),
            scratch: Vec::new(),
        }
    }

    fn is_short(&self) -> bool {
        matches!(self.physical, Physical::Integer { bytes: 1..=4, .. })
    }

    fn rank(&self, index: usize) -> u64 {
        match self.is_short() {
            true => u64::from(self.short[index]),
            false => self.long[index],
        }
    }

    /// The quantile `fraction` of each of the groups `order`.
    pub fn quantiles<'a>(
        &'a self,
        fraction: f64,
        order: &'a [u32],
    ) -> impl Iterator<Item = Value> + 'a {
        let (mut ranks, ends) = self.by_group();
        order.iter().map(move |id| {
            let id = *id as usize;
            let end = ends.get(id).copied().unwrap_or(ranks.len());
            let start = id
                .checked_sub(1)
                .map_or(0, |before| ends.get(before).copied().unwrap_or(end));
            self.quantile(fraction, &mut ranks[start..end])
        })
    }

    /// The ranks with those of each group together, and where each group's end.
    fn by_group(&self) -> (Vec<u64>, Vec<usize>) {
        let groups = self.ids.iter().max().map_or(0, |id| *id as usize + 1);
        let mut next = vec![0usize; groups + 1];
        for id in &self.ids {
            next[*id as usize + 1] += 1;
        }
        for group in 0..groups {
            next[group + 1] += next[group];
        }
        let mut ranks = vec![0; self.ids.len()];
        for (index, id) in self.ids.iter().enumerate() {
            let at = &mut next[*id as usize];
            ranks[*at] = self.rank(index);
            *at += 1;
        }
        next.truncate(groups);
        (ranks, next)
    }

    /// The quantile of one group, whose ranks are put in another order.
    fn quantile(&self, fraction: f64, ranks: &mut [u64]) -> Value {
        let Some(last) = ranks.len().checked_sub(1) else {
            return Value::Null;
        };
        let position = fraction * last as f64;
        let index = (position.floor() as usize).min(last);
        let (_, below, above) = ranks.select_nth_unstable(index);
        let low = self.number(*below);
        let high = above.iter().min().map_or(low, |rank| self.number(*rank));
        Value::Float(interpolate(low, high, position - index as f64))
    }

    fn number(&self, rank: u64) -> f64 {
        match self.physical {
            Physical::Integer { .. } => self.physical.value_of(rank) as f64,
            _ => float_of(rank),
        }
    }
}

impl Collection for Ranks {
    fn grow(&mut self, _groups: usize) {}

    fn clear(&mut self) {
        self.ids.clear();
        self.short.clear();
        self.long.clear();
    }

    /// Values are gathered only where they are decimals.
    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let (CollectWork { values, .. }, work) = work;
        let column = rows.column(0);
        let before = self.ids.len();
        let mut index = 0;
        rows.within.for_each(|row| {
            if column.nulls() == 0 || column.validity().get(row) {
                self.ids.push(rows.id(index));
            }
            index += 1;
        });
        match (self.physical, self.is_short()) {
            (Physical::Wide, _) => {
                column.gather(rows.within, values, work);
                let scale = 10f64.powi(i32::from(self.scale));
                let valid = (0..values.len()).filter(|index| values.is_valid(*index));
                let floats = valid.map(|index| values.wide[index] as f64 / scale);
                self.long.extend(floats.map(float_key));
            }
            (_, true) => {
                self.scratch.clear();
                column.rank(rows.within, &mut self.scratch, work)?;
                self.short
                    .extend(self.scratch.iter().map(|rank| *rank as u32));
            }
            (_, false) => column.rank(rows.within, &mut self.long, work)?,
        }
        match self.short.len() + self.long.len() == self.ids.len() {
            true => Ok(()),
            false => Err(Error::internal(format!(
                "{} values have no rank",
                self.ids.len() - before
            ))),
        }
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        let Ok(other) = collected::<Ranks>(other) else {
            return;
        };
        for (index, id) in other.ids.iter().enumerate() {
            let Some(target) = target_of(targets, *id) else {
                continue;
            };
            self.ids.push(target);
            match self.is_short() {
                true => self.short.push(other.short[index]),
                false => self.long.push(other.long[index]),
            }
        }
    }

    fn byte_size(&self) -> usize {
        (self.ids.capacity() + self.short.capacity()) * size_of::<u32>()
            + (self.long.capacity() + self.scratch.capacity()) * size_of::<u64>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        out.u64(self.ids.len() as u64);
        for (index, id) in self.ids.iter().enumerate() {
            out.u64(u64::from(*id));
            out.u64(self.rank(index));
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        for _ in 0..from.count()? {
            let (id, rank) = (from.u64()?, from.u64()?);
            if id >= groups as u64 {
                return Err(Error::corrupt("a value belongs to no group"));
            }
            self.ids.push(id as u32);
            match self.is_short() {
                true => self.short.push(rank as u32),
                false => self.long.push(rank),
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
    if share == 0.0 || low == high {
        low
    } else {
        low + share * (high - low)
    }
}
