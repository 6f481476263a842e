//! Where the runs of a level lie, and what they are encoded for there.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tersecades_columnar::cost_table::CostTable;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::{Goal, Tier};

/// Nanoseconds a byte where bytes are dear: a device of 20 MB/s.
const COLD_BYTE_NS: f64 = 50.0;

/// Where the runs of a level lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Placement {
    /// In memory as well as on disk, encoded for scans.
    Hot,
    /// In files that are read in place through the cache of pages, encoded small.
    #[default]
    Warm,
    /// The same, encoded as small as it gets.
    Cold,
}

/// Placements and their names.
const PLACEMENTS: [(Placement, &str); 3] = [
    (Placement::Hot, "hot"),
    (Placement::Warm, "warm"),
    (Placement::Cold, "cold"),
];

impl Placement {
    /// What runs are encoded for.
    pub(crate) fn goal(self) -> Goal {
        match self {
            Placement::Hot => Goal::of_tier(Tier::Hot),
            Placement::Warm => Goal::of_tier(Tier::Cold),
            Placement::Cold => {
                let mut costs = CostTable::clone(&CostTable::shipped());
                costs.set_byte_ns(Tier::Cold, COLD_BYTE_NS);
                Goal {
                    costs: Arc::new(costs),
                    ..Goal::of_tier(Tier::Cold)
                }
            }
        }
    }

    /// Whether what was encoded for `self` is encoded anew on its way to `below`: where it was
    /// meant for memory. Other bytes move as they are.
    pub(crate) fn reencodes_for(self, below: Placement) -> bool {
        (self == Placement::Hot) != (below == Placement::Hot)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = PLACEMENTS.iter().find(|(placement, _)| placement == self);
        f.write_str(found.map_or("warm", |(_, name)| name))
    }
}

impl FromStr for Placement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = PLACEMENTS.iter().find(|(_, name)| *name == text);
        found.map(|(placement, _)| *placement).ok_or_else(|| {
            Error::invalid(format!("no tier is named `{text}`")).hint("hot, warm or cold")
        })
    }
}
