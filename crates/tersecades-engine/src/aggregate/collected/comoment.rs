//! Means and summed products of the deviations of two columns, where neither is null.
//!
//! Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
//! variances" (1979), with the product of the two deviations beside their squares.

use std::any::Any;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use super::{CollectWork, Collection, Collects, Rows, Second, collected, taken};
use crate::runtime::state::{StateReader, StateWriter};

/// What aggregates ask for.
pub const COMOMENTS: Collects = Collects {
    name: "comoments",
    second: Second::Number,
    by_parameter: false,
    start: |arguments, _| {
        let scale = |index: usize| arguments.get(index).map_or(0, |argument| argument.scale());
        Box::new(Comoments {
            divisors: [scale(0), scale(1)].map(|scale| 10f64.powi(i32::from(scale))),
            moments: Vec::new(),
        })
    },
};

/// Pairs of numbers of one group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Comoment {
    /// Number of pairs.
    pub count: u64,
    /// The first pair, in units of the last digit, where its sides are integers or decimals: large
    /// numbers close together differ by what floats hold.
    pub origins: [i128; 2],
    /// Means of both sides, from their origins on.
    pub means: [f64; 2],
    /// Summed squared deviations of both sides.
    pub squares: [f64; 2],
    /// Summed products of the deviations.
    pub product: f64,
}

impl Comoment {
    /// Adds the pairs of `other`; origins are divided by `divisors`.
    pub fn merge(&mut self, other: Comoment, divisors: [f64; 2]) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        let count = self.count + other.count;
        let weight = other.count as f64 / count as f64;
        let apart = [0, 1].map(|side| {
            let origins = distance(self.origins[side], other.origins[side]) / divisors[side];
            origins + (other.means[side] - self.means[side])
        });
        let shift = self.count as f64 * weight;
        for side in [0, 1] {
            self.means[side] += apart[side] * weight;
            self.squares[side] += other.squares[side] + apart[side] * apart[side] * shift;
        }
        self.product += other.product + apart[0] * apart[1] * shift;
        self.count = count;
    }
}

/// `to - from`, rounded once.
fn distance(from: i128, to: i128) -> f64 {
    match to.checked_sub(from) {
        Some(apart) => apart as f64,
        None => to as f64 - from as f64,
    }
}

/// Pairs by group id.
#[derive(Debug, Clone)]
pub struct Comoments {
    /// What decimals of each side are divided by.
    divisors: [f64; 2],
    moments: Vec<Comoment>,
}

impl Comoments {
    /// The pairs of group `id`.
    pub fn get(&self, id: u32) -> Comoment {
        self.moments.get(id as usize).copied().unwrap_or_default()
    }

    /// The means of both sides of `moment`.
    pub fn means(&self, moment: &Comoment) -> [f64; 2] {
        [0, 1].map(|side| moment.origins[side] as f64 / self.divisors[side] + moment.means[side])
    }

    /// The pair at `index`.
    fn pair(&self, sides: [&Values; 2], index: usize) -> Comoment {
        let mut pair = Comoment {
            count: 1,
            ..Comoment::default()
        };
        for (side, values) in sides.into_iter().enumerate() {
            match values.physical {
                Physical::Float { .. } => pair.means[side] = values.float(index),
                _ => pair.origins[side] = values.integer(index),
            }
        }
        pair
    }
}

impl Collection for Comoments {
    fn grow(&mut self, groups: usize) {
        self.moments.resize(groups, Comoment::default());
    }

    fn clear(&mut self) {
        self.moments.clear();
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let (scratch, work) = work;
        rows.gather(scratch, work)?;
        rows.gather_second(scratch, work)?;
        let (values, others) = (&scratch.values, &scratch.by);
        for index in 0..values.len() {
            if !values.is_valid(index) || !others.is_valid(index) {
                continue;
            }
            let pair = self.pair([values, others], index);
            self.moments[rows.id(index) as usize].merge(pair, self.divisors);
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        if let Ok(other) = collected::<Comoments>(other) {
            for (moment, target) in taken(&other.moments, targets) {
                self.moments[target].merge(*moment, self.divisors);
            }
        }
    }

    fn byte_size(&self) -> usize {
        self.moments.capacity() * size_of::<Comoment>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        for moment in &self.moments {
            out.u64(moment.count);
            moment
                .origins
                .into_iter()
                .for_each(|number| out.i128(number));
            let [x, y] = moment.means;
            let [xx, yy] = moment.squares;
            [x, y, xx, yy, moment.product]
                .into_iter()
                .for_each(|number| out.f64(number));
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        for _ in 0..groups {
            self.moments.push(Comoment {
                count: from.u64()?,
                origins: [from.i128()?, from.i128()?],
                means: [from.f64()?, from.f64()?],
                squares: [from.f64()?, from.f64()?],
                product: from.f64()?,
            });
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
