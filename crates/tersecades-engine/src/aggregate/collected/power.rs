//! Means and summed powers of the deviations of one column, up to the fourth.
//!
//! Source: Pébay, "Formulas for robust, one-pass parallel computation of covariances and
//! arbitrary-order statistical moments" (2008).

use std::any::Any;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use super::{CollectWork, Collection, Collects, Rows, Second, collected, taken};
use crate::runtime::state::{StateReader, StateWriter};

/// What aggregates ask for.
pub const POWERS: Collects = Collects {
    name: "powers",
    second: Second::No,
    by_parameter: false,
    start: |arguments, _| {
        let scale = arguments.first().map_or(0, |argument| argument.scale());
        Box::new(Powers {
            divisor: 10f64.powi(i32::from(scale)),
            powers: Vec::new(),
        })
    },
};

/// Numbers of one group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Power {
    /// Number of values.
    pub count: u64,
    /// The first value, in units of the last digit, of integers and decimals: large numbers close
    /// together differ by what floats hold.
    pub origin: i128,
    /// Mean of the distances from the origin.
    pub mean: f64,
    /// Summed second, third and fourth powers of the deviations from the mean.
    pub sums: [f64; 3],
}

impl Power {
    /// Adds the values of `other`; origins are divided by `divisor`.
    pub fn merge(&mut self, other: Power, divisor: f64) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        let (own, theirs) = (self.count as f64, other.count as f64);
        let all = own + theirs;
        let origins = match other.origin.checked_sub(self.origin) {
            Some(apart) => apart as f64,
            None => other.origin as f64 - self.origin as f64,
        };
        let apart = origins / divisor + (other.mean - self.mean);
        let [a2, a3, a4] = self.sums;
        let [b2, b3, b4] = other.sums;
        let step = apart / all;
        let square = apart * step;
        let second = a2 + b2 + square * own * theirs;
        let third = a3
            + b3
            + square * step * own * theirs * (own - theirs)
            + 3.0 * step * (own * b2 - theirs * a2);
        let fourth = a4
            + b4
            + square * step * step * own * theirs * (own * own - own * theirs + theirs * theirs)
            + 6.0 * step * step * (own * own * b2 + theirs * theirs * a2)
            + 4.0 * step * (own * b3 - theirs * a3);
        self.count += other.count;
        self.mean += step * theirs;
        self.sums = [second, third, fourth];
    }
}

/// Numbers by group id.
#[derive(Debug, Clone)]
pub struct Powers {
    /// What decimals are divided by.
    divisor: f64,
    powers: Vec<Power>,
}

impl Powers {
    /// The numbers of group `id`.
    pub fn get(&self, id: u32) -> Power {
        self.powers.get(id as usize).copied().unwrap_or_default()
    }
}

/// Value `index`, of so many rows.
fn power_of(values: &Values, index: usize, count: u64) -> Power {
    let (origin, mean) = match values.physical {
        Physical::Float { .. } => (0, values.float(index)),
        _ => (values.integer(index), 0.0),
    };
    Power {
        count,
        origin,
        mean,
        sums: [0.0; 3],
    }
}

impl Collection for Powers {
    fn grow(&mut self, groups: usize) {
        self.powers.resize(groups, Power::default());
    }

    fn clear(&mut self) {
        self.powers.clear();
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let (powers, divisor) = (&mut self.powers, self.divisor);
        rows.for_each_value(work, |id, values, index, count| {
            powers[id as usize].merge(power_of(values, index, count), divisor);
        })
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        if let Ok(other) = collected::<Powers>(other) {
            for (power, target) in taken(&other.powers, targets) {
                self.powers[target].merge(*power, self.divisor);
            }
        }
    }

    fn byte_size(&self) -> usize {
        self.powers.capacity() * size_of::<Power>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        for power in &self.powers {
            out.u64(power.count);
            out.i128(power.origin);
            out.f64(power.mean);
            power.sums.into_iter().for_each(|sum| out.f64(sum));
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        for _ in 0..groups {
            self.powers.push(Power {
                count: from.u64()?,
                origin: from.i128()?,
                mean: from.f64()?,
                sums: [from.f64()?, from.f64()?, from.f64()?],
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
