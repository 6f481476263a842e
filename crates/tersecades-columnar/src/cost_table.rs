//! What reading a value costs, by codec: the chooser weighs these against bytes.
//!
//! The numbers are measured outside (the bench prints them) and come in as a table, because this
//! crate reads no clock. The default ships; tests pin it, so a choice never depends on a machine.

/// Nanoseconds per byte and per value.
///
/// A codec that works value by value costs the same for each; one that works run by run or
/// exception by exception costs by what it stores, so each has a price per value and one per
/// encoded byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostTable {
    /// Reading one byte from memory, one thread.
    pub byte_ns: f64,
    /// Comparing in the second-level cache, per value, by the codec's wire id.
    pub value_ns: [f64; CODEC_IDS],
    /// Comparing in the second-level cache, per encoded byte, by the codec's wire id.
    pub stored_ns: [f64; CODEC_IDS],
}

/// Wire ids a cost table covers.
pub const CODEC_IDS: usize = 32;

/// The numbers of the first ids, and one for all others.
const fn first(known: &[f64], others: f64) -> [f64; CODEC_IDS] {
    let mut list = [others; CODEC_IDS];
    let mut id = 0;
    while id < known.len() {
        list[id] = known[id];
        id += 1;
    }
    list
}

impl Default for CostTable {
    fn default() -> Self {
        CostTable::DEFAULT
    }
}

impl CostTable {
    /// The table that ships, rounded from `make bench ARGS=costs` on a two-core server with
    /// AVX-512.
    pub const DEFAULT: CostTable = CostTable {
        byte_ns: 0.06,
        value_ns: first(
            &[
                0.02, 0.005, 0.025, 0.005, 0.02, 0.04, 0.02, 0.02, 0.02, 0.04, 0.2, 0.1,
            ],
            0.02,
        ),
        stored_ns: first(&[0.0, 0.15, 0.0, 0.15], 0.0),
    };

    /// Expected time to scan one value: memory and computation.
    pub fn scan_ns(&self, codec: u8, bytes: f64) -> f64 {
        let price = |list: &[f64; CODEC_IDS]| list.get(usize::from(codec)).copied();
        let value = price(&self.value_ns).unwrap_or(self.byte_ns);
        let stored = price(&self.stored_ns).unwrap_or(0.0);
        value + (self.byte_ns + stored) * bytes
    }
}
