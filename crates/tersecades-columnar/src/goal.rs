//! What a column is encoded for: the tier it lives in and what using it costs.

use std::sync::Arc;

use crate::cost_table::CostTable;

/// Where encoded bytes live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Tier {
    /// Windows and retained ranges: read again and again, operated on as they are.
    #[default]
    Hot,
    /// History, spill and wire: small first, still answered from.
    Cold,
}

/// What the chooser aims at.
#[derive(Debug, Clone, Default)]
pub struct Goal {
    /// The tier; codecs of a colder tier are not candidates.
    pub tier: Tier,
    /// What bytes and values cost here.
    pub costs: Arc<CostTable>,
}
