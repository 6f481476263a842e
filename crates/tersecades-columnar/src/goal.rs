//! What a column is encoded for: the tier it lives in and what using it costs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::codec::Codec;
use crate::cost_table::{CostTable, Operation};
use crate::error::{Error, Result};

/// Where encoded bytes live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Tier {
    /// Windows and retained ranges: read again and again, operated on as they are.
    #[default]
    Hot,
    /// History, spill and wire: small first, still answered from.
    Cold,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Hot => "hot",
            Tier::Cold => "cold",
        })
    }
}

impl FromStr for Tier {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "hot" => Ok(Tier::Hot),
            "cold" => Ok(Tier::Cold),
            _ => Err(Error::invalid(format!("no tier is named `{text}`")).hint("hot or cold")),
        }
    }
}

/// What one read of a column does with it, and how many reads there will be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uses {
    /// Comparisons of each row.
    pub compare: f64,
    /// Folds of each row.
    pub fold: f64,
    /// Share of the rows fetched among others that are not.
    pub gather: f64,
    /// Times all rows are fetched.
    pub decode: f64,
    /// Reads of what is encoded once.
    pub reads: f64,
    /// Whether something goes by its different values: groups or lookups, aggregates of it, or
    /// functions, which run once for each.
    pub keyed: bool,
}

impl Default for Uses {
    /// Compared and folded once a read, read often.
    fn default() -> Self {
        Uses {
            compare: 1.0,
            fold: 1.0,
            gather: 0.0,
            decode: 0.0,
            reads: 32.0,
            keyed: true,
        }
    }
}

/// Chunks between two looks at a choice that holds, unless the goal says otherwise.
pub const LOOK_INTERVAL: u32 = 16;

/// What the chooser aims at.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// The tier; codecs of a colder tier are not candidates.
    pub tier: Tier,
    /// What bytes and values cost here.
    pub costs: Arc<CostTable>,
    /// What the column is for.
    pub uses: Uses,
    /// Most chunks a choice is kept for before it is priced again, at least one.
    pub look_interval: u32,
}

impl Default for Goal {
    fn default() -> Self {
        Goal {
            tier: Tier::default(),
            costs: CostTable::shipped(),
            uses: Uses::default(),
            look_interval: LOOK_INTERVAL,
        }
    }
}

impl Goal {
    /// The goal of `tier`, with everything else at its default.
    pub fn of_tier(tier: Tier) -> Goal {
        Goal {
            tier,
            ..Goal::default()
        }
    }

    /// Nanoseconds to get `bytes` from where they lie, per read.
    ///
    /// The first read follows on arrival, when the bytes are still in a cache.
    pub fn read_ns(&self, bytes: f64) -> f64 {
        let later = 1.0 - 1.0 / self.uses.reads.max(1.0);
        self.costs.byte_ns(self.tier) * bytes * later
    }

    /// Expected nanoseconds per row and read of a chunk with `bytes` per row: getting the bytes,
    /// computing on them, and a share of encoding. What inner codecs compute is not counted.
    pub fn cost_ns(&self, codec: &dyn Codec, bytes: f64) -> f64 {
        let Uses {
            compare,
            fold,
            gather,
            decode,
            reads,
            keyed: _,
        } = self.uses;
        let weights = [compare, fold, gather, decode, 1.0 / reads.max(1.0)];
        let weighed = Operation::ALL.into_iter().zip(weights);
        let computing: f64 = weighed
            .filter(|(_, weight)| *weight > 0.0)
            .map(|(operation, weight)| weight * self.costs.cost(codec, operation).at(bytes))
            .sum();
        self.read_ns(bytes) + computing
    }
}
