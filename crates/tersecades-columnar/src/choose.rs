//! Which codec a chunk gets: every codec prices a sample, the cheapest scan wins.
//!
//! The losers' numbers are kept with the chunk, so `inspect` and `explain` can show why.

use std::ops::Range;

use crate::block::GROUP_ROWS;
use crate::codec::Codec;
use crate::cost_table::CostTable;
use crate::input::Input;
use crate::registry::{CODECS, fallback};

/// Most candidates kept with a chunk.
pub const CANDIDATES_MAX: usize = 8;

/// Windows sampled from a chunk, spread evenly, of [`WINDOW_ROWS`] each.
const WINDOWS: usize = 4;
const WINDOW_ROWS: usize = 2 * GROUP_ROWS;

/// What one codec would have cost.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// The codec.
    pub codec: &'static dyn Codec,
    /// Expected bytes per row.
    pub bytes_per_row: f64,
    /// Expected nanoseconds to scan a row.
    pub scan_ns: f64,
}

/// All codecs that accept a column, cheapest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Candidates {
    list: [Option<Candidate>; CANDIDATES_MAX],
}

impl Candidates {
    /// The candidates, cheapest first.
    pub fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.list.iter().flatten()
    }

    /// The winner's codec.
    pub fn codec(&self) -> &'static dyn Codec {
        self.iter()
            .next()
            .map_or_else(fallback, |winner| winner.codec)
    }

    /// Puts `candidate` in its place; at equal cost the earlier one stays first.
    fn insert(&mut self, candidate: Candidate) {
        let mut carried = Some(candidate);
        for slot in &mut self.list {
            let cheaper = match (&carried, &*slot) {
                (Some(new), Some(old)) => new.scan_ns < old.scan_ns,
                (Some(_), None) => true,
                (None, _) => return,
            };
            if cheaper {
                std::mem::swap(slot, &mut carried);
            }
        }
    }
}

/// Prices every codec that accepts `input` with the table that ships.
///
/// # Cost
/// About a thousand rows are looked at by each codec; no allocation.
pub fn choose(input: &Input<'_>) -> Candidates {
    choose_with(input, &CostTable::DEFAULT)
}

/// Prices every codec that accepts `input` with `costs`.
pub fn choose_with(input: &Input<'_>, costs: &CostTable) -> Candidates {
    let (windows, count) = sample(input.rows());
    let mut candidates = Candidates::default();
    for codec in CODECS.iter().filter(|codec| codec.accepts(input)) {
        let bytes_per_row = codec.estimate(input, &windows[..count]);
        let scan_ns = costs.scan_ns(codec.id(), bytes_per_row);
        candidates.insert(Candidate {
            codec: *codec,
            bytes_per_row,
            scan_ns,
        });
    }
    candidates
}

/// Up to [`WINDOWS`] windows, or the whole chunk when it is small.
fn sample(rows: usize) -> ([Range<usize>; WINDOWS], usize) {
    let mut windows = [0..rows, 0..0, 0..0, 0..0];
    if rows <= WINDOWS * WINDOW_ROWS {
        return (windows, 1);
    }
    for (index, window) in windows.iter_mut().enumerate() {
        let start = (rows - WINDOW_ROWS) / (WINDOWS - 1) * index / GROUP_ROWS * GROUP_ROWS;
        *window = start..start + WINDOW_ROWS;
    }
    (windows, WINDOWS)
}
