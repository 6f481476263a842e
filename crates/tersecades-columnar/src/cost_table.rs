//! What bytes and operations cost, by codec: the chooser weighs these against each other.
//!
//! The numbers are measured outside (`tersecades costs --measure`) and come in as a table, because
//! this crate reads no clock. The default ships as `cost_table.txt`; tests pin it, so a choice
//! never depends on a machine unless it is asked to. As text a table is lines of
//!
//! ```text
//! byte TIER NANOSECONDS
//! ID OPERATION NANOSECONDS_PER_VALUE NANOSECONDS_PER_BYTE
//! ```
//! where `#` starts a comment and ids are wire ids.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::goal::Tier;
use crate::registry;

/// Wire ids a cost table covers.
pub const CODEC_IDS: usize = 32;

/// What is done with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Selecting rows by value.
    Compare,
    /// Summing and the like.
    Fold,
    /// Fetching few rows.
    Gather,
    /// Fetching all rows.
    Decode,
    /// Making the chunk.
    Encode,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 5] = [
        Operation::Compare,
        Operation::Fold,
        Operation::Gather,
        Operation::Decode,
        Operation::Encode,
    ];

    /// The word in a table's text.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Compare => "compare",
            Operation::Fold => "fold",
            Operation::Gather => "gather",
            Operation::Decode => "decode",
            Operation::Encode => "encode",
        }
    }
}

/// Time as a straight line over encoded size, in the second-level cache.
///
/// A codec that works value by value costs the same for each; one that works run by run or
/// exception by exception costs by what it stores.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Nanoseconds per value: of the chunk, or fetched where few are.
    pub value_ns: f64,
    /// Nanoseconds for each encoded byte per value.
    pub stored_ns: f64,
}

impl Cost {
    /// Nanoseconds per value of a chunk with `bytes` per row.
    pub fn at(self, bytes: f64) -> f64 {
        self.value_ns + self.stored_ns * bytes
    }

    /// What a codec nobody has measured is taken to cost: more than any of its tier.
    fn unmeasured(tier: Tier, operation: Operation) -> Cost {
        let value_ns = match (tier, operation) {
            (Tier::Hot, Operation::Encode) => 5.0,
            (Tier::Hot, Operation::Gather) => 10.0,
            (Tier::Hot, _) => 0.5,
            (Tier::Cold, Operation::Encode) => 50.0,
            (Tier::Cold, Operation::Gather) => 100.0,
            (Tier::Cold, _) => 5.0,
        };
        Cost {
            value_ns,
            stored_ns: 0.0,
        }
    }
}

/// Nanoseconds per byte, by tier, and per operation, by codec.
///
/// # Examples
/// ```
/// use tersecades_columnar::cost_table::CostTable;
/// let table = CostTable::default();
/// assert_eq!(table.to_string().parse::<CostTable>().unwrap(), table);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CostTable {
    byte_ns: [f64; 2],
    costs: [[Option<Cost>; CODEC_IDS]; Operation::ALL.len()],
}

static SHIPPED: LazyLock<Arc<CostTable>> = LazyLock::new(|| {
    let table = include_str!("cost_table.txt").parse();
    Arc::new(table.unwrap_or_else(|_| CostTable::unmeasured()))
});

impl Default for CostTable {
    fn default() -> Self {
        CostTable::clone(&SHIPPED)
    }
}

impl CostTable {
    /// The table that ships.
    pub fn shipped() -> Arc<CostTable> {
        Arc::clone(&SHIPPED)
    }

    /// A table that knows no codec.
    ///
    /// Memory gives a byte in 0.06 ns; storage in 8 ns, a network volume at 125 MB/s.
    ///
    /// Source: the base throughput of an Amazon EBS gp3 volume is 125 MiB/s.
    pub fn unmeasured() -> CostTable {
        CostTable {
            byte_ns: [0.06, 8.0],
            costs: [[None; CODEC_IDS]; Operation::ALL.len()],
        }
    }

    /// Nanoseconds to get one byte from where a tier keeps it, one thread.
    pub fn byte_ns(&self, tier: Tier) -> f64 {
        self.byte_ns[tier as usize]
    }

    /// Sets what a byte of `tier` costs.
    pub fn set_byte_ns(&mut self, tier: Tier, ns: f64) {
        self.byte_ns[tier as usize] = ns;
    }

    /// What `operation` costs under `codec`, inner codecs not counted.
    pub fn cost(&self, codec: &dyn Codec, operation: Operation) -> Cost {
        self.measured(codec.id(), operation)
            .unwrap_or_else(|| Cost::unmeasured(codec.tier(), operation))
    }

    /// What was measured of the codec with wire id `id`.
    pub fn measured(&self, id: u8, operation: Operation) -> Option<Cost> {
        *self.costs[operation as usize].get(usize::from(id))?
    }

    /// Sets what `operation` costs under the codec with wire id `id`.
    ///
    /// Ids above [`CODEC_IDS`] are not kept.
    pub fn set(&mut self, id: u8, operation: Operation, cost: Cost) {
        if let Some(slot) = self.costs[operation as usize].get_mut(usize::from(id)) {
            *slot = Some(cost);
        }
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| {
            let number = word.parse::<f64>().ok();
            number.filter(|number| number.is_finite() && *number >= 0.0)
        };
        match words.as_slice() {
            [] => {}
            ["byte", tier, ns] => self.set_byte_ns(tier.parse().ok()?, number(ns)?),
            [id, operation, value, stored] => {
                let id = id.parse().ok().filter(|id| usize::from(*id) < CODEC_IDS)?;
                let mut known = Operation::ALL.into_iter();
                let operation = known.find(|known| known.name() == *operation)?;
                let cost = Cost {
                    value_ns: number(value)?,
                    stored_ns: number(stored)?,
                };
                self.set(id, operation, cost);
            }
            _ => return None,
        }
        Some(())
    }
}

impl fmt::Display for CostTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tier in [Tier::Hot, Tier::Cold] {
            writeln!(f, "byte {tier} {}", self.byte_ns(tier))?;
        }
        for id in 0..CODEC_IDS as u8 {
            for operation in Operation::ALL {
                let Some(cost) = self.measured(id, operation) else {
                    continue;
                };
                let (operation, value, stored) = (operation.name(), cost.value_ns, cost.stored_ns);
                let name = registry::by_id(id).map_or("unknown", |codec| codec.name());
                writeln!(f, "{id} {operation} {value} {stored} # {name}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for CostTable {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut table = CostTable::unmeasured();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            table.read_line(content).ok_or_else(|| {
                Error::invalid(format!("line {} of a cost table: `{line}`", index + 1))
                    .hint("write `byte hot 0.06` or `2 compare 0.025 0.01`")
            })?;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::CODECS;

    #[test]
    fn the_shipped_table_covers_the_codecs_of_the_ground() {
        let table: CostTable = include_str!("cost_table.txt").parse().unwrap();
        assert_eq!(table, *CostTable::shipped());
        for codec in CODECS.iter().filter(|codec| codec.id() <= 4) {
            for operation in Operation::ALL {
                let measured = table.measured(codec.id(), operation);
                assert!(measured.is_some(), "{} {operation:?}", codec.name());
            }
        }
    }

    #[test]
    fn senseless_lines_are_refused_with_their_number() {
        for line in [
            "byte warm 1",
            "byte hot -1",
            "byte hot NaN",
            "32 compare 1 1",
            "2 compare 1",
            "2 divide 1 1",
            "x",
        ] {
            let error = format!("byte hot 1 # fine\n{line}").parse::<CostTable>();
            assert!(error.unwrap_err().to_string().contains("line 2"), "{line}");
        }
    }

    #[test]
    fn codecs_without_numbers_are_dearer_than_those_with() {
        let (known, unknown) = (CostTable::default(), CostTable::unmeasured());
        for codec in CODECS.iter().filter(|codec| codec.tier() == Tier::Hot) {
            let price = |table: &CostTable| table.cost(*codec, Operation::Compare).at(1.0);
            assert!(price(&known) <= price(&unknown), "{}", codec.name());
        }
    }
}
