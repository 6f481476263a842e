//! Which bits all values of a group have, which some, and which an odd number of them.

use std::any::Any;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use super::{CollectWork, Collection, Collects, Rows, Second, collected, taken};
use crate::runtime::state::{StateReader, StateWriter};

/// What aggregates ask for.
pub const BITS: Collects = Collects {
    name: "bits",
    second: Second::No,
    by_parameter: false,
    start: |_, _| Box::new(BitSets::default()),
};

/// Bits of the values of one group, each value in two's complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// Those of all values.
    pub all: u64,
    /// Those of some value.
    pub some: u64,
    /// Those of an odd number of values.
    pub odd: u64,
}

impl Bits {
    /// No value.
    const NONE: Bits = Bits {
        all: u64::MAX,
        some: 0,
        odd: 0,
    };

    /// Whether there is no value: one that there is has the bits that all have.
    pub fn is_empty(self) -> bool {
        self == Bits::NONE
    }

    fn add(&mut self, value: u64, rows: u64) {
        self.merge(Bits {
            all: value,
            some: value,
            odd: value * (rows % 2),
        });
    }

    fn merge(&mut self, other: Bits) {
        self.all &= other.all;
        self.some |= other.some;
        self.odd ^= other.odd;
    }
}

/// Bits by group id.
#[derive(Debug, Clone, Default)]
pub struct BitSets {
    bits: Vec<Bits>,
}

impl BitSets {
    /// The bits of group `id`.
    pub fn get(&self, id: u32) -> Bits {
        self.bits.get(id as usize).copied().unwrap_or(Bits::NONE)
    }
}

impl Collection for BitSets {
    fn grow(&mut self, groups: usize) {
        self.bits.resize(groups, Bits::NONE);
    }

    fn clear(&mut self) {
        self.bits.clear();
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        rows.for_each_value(work, |id, values, index, count| {
            self.bits[id as usize].add(values.integer(index) as u64, count);
        })
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        if let Ok(other) = collected::<BitSets>(other) {
            for (bits, target) in taken(&other.bits, targets) {
                self.bits[target].merge(*bits);
            }
        }
    }

    fn byte_size(&self) -> usize {
        self.bits.capacity() * size_of::<Bits>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        for bits in &self.bits {
            [bits.all, bits.some, bits.odd]
                .into_iter()
                .for_each(|word| out.u64(word));
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        for _ in 0..groups {
            self.bits.push(Bits {
                all: from.u64()?,
                some: from.u64()?,
                odd: from.u64()?,
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
