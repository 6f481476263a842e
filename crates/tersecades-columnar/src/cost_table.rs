//! What reading a value costs, by codec: the chooser weighs these against bytes.
//!
//! The numbers are measured outside (the bench prints them) and come in as a table, because this
//! crate reads no clock. The default ships; tests pin it, so a choice never depends on a machine.

/// Nanoseconds per byte and per value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostTable {
    /// Reading one byte from memory, one thread.
    pub byte_ns: f64,
    /// Comparing one value, by the codec's wire id, when it lies in the second-level cache.
    pub compare_ns: [f64; CODEC_IDS],
}

/// Wire ids a cost table covers.
pub const CODEC_IDS: usize = 8;

impl CostTable {
    /// The table that ships: medians of `make bench` on a two-core server with AVX-512.
    pub const DEFAULT: CostTable = CostTable {
        byte_ns: 0.06,
        compare_ns: [0.02, 0.02, 0.025, 0.06, 0.02, 0.02, 0.02, 0.02],
    };

    /// Expected time to scan one value: memory and computation.
    pub fn scan_ns(&self, codec: u8, bytes: f64) -> f64 {
        let compare = self
            .compare_ns
            .get(usize::from(codec))
            .copied()
            .unwrap_or(self.byte_ns);
        self.byte_ns * bytes + compare
    }
}
