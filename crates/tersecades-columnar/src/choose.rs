//! Which codec a chunk gets: every codec prices a sample, the cheapest scan wins.
//!
//! The losers' numbers are kept with the chunk, so `inspect` and `explain` can show why.

use std::ops::Range;

use arrow_schema::DataType;

use crate::block::{GROUP_ROWS, UNIT_ROWS};
use crate::chunk::Chunk;
use crate::codec::Codec;
use crate::goal::Goal;
use crate::input::{Input, Lanes};
use crate::registry::{CODECS, fallback};
use crate::types::Physical;

/// Most candidates kept with a chunk: every codec.
pub const CANDIDATES_MAX: usize = CODECS.len();

/// Windows sampled from a chunk, spread evenly, of [`WINDOW_ROWS`] each.
const WINDOWS: usize = 4;
const WINDOW_ROWS: usize = 2 * GROUP_ROWS;

/// Most rows of a sample.
pub(crate) const SAMPLE_ROWS_MAX: usize = WINDOWS * WINDOW_ROWS;

/// Most codecs around another; those that compose count one more.
const NESTED_MAX: usize = 2;

/// What one codec would have cost.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// The codec.
    pub codec: &'static dyn Codec,
    /// Expected bytes per row.
    pub bytes_per_row: f64,
    /// Expected nanoseconds per row and read, by the goal's uses.
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

    /// What the codec with wire id `id` is expected to cost, if it is a candidate.
    pub(crate) fn scan_ns(&self, id: u8) -> Option<f64> {
        let mut known = self.iter();
        let found = known.find(|candidate| candidate.codec.id() == id);
        found.map(|candidate| candidate.scan_ns)
    }

    /// The same candidates, each costing `times` as much as expected.
    pub(crate) fn corrected(&self, times: impl Fn(u8) -> f64) -> Candidates {
        let mut corrected = Candidates::default();
        for candidate in self.iter() {
            corrected.insert(Candidate {
                scan_ns: candidate.scan_ns * times(candidate.codec.id()),
                ..*candidate
            });
        }
        corrected
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

/// The rows of a column that codecs are priced on.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// The column.
    pub input: &'a Input<'a>,
    /// The sampled rows.
    pub windows: &'a [Range<usize>],
    /// Rows of what is encoded: of the column, or of what a codec that composes makes of it.
    pub encoded_rows: usize,
    /// What the column is encoded for.
    pub goal: &'a Goal,
    /// Where codecs inside the priced one stand; for the chooser, where the priced one does.
    place: Place,
}

/// Where a codec stands in a cascade.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// Codecs around it.
    pub(crate) depth: usize,
    /// Wire id of the one directly around it.
    pub(crate) around: Option<u8>,
}

impl Place {
    /// The place directly inside the codec with wire id `id`, which stands here.
    fn inside(self, id: u8) -> Self {
        Place {
            depth: self.depth + 1,
            around: Some(id),
        }
    }

    /// Whether it makes sense for `codec` to stand here.
    fn suits(self, codec: &dyn Codec) -> bool {
        let deep = self.depth + usize::from(codec.inner_max() > 0) > NESTED_MAX;
        let twice = self.around == Some(codec.id()) && !codec.nests_in_itself();
        !deep && !twice
    }
}

impl Sample<'_> {
    /// Number of sampled rows, at least one.
    pub fn rows(&self) -> usize {
        let rows: usize = self.windows.iter().map(|window| window.len()).sum();
        rows.max(1)
    }

    /// Runs for each row of the column, where the sampled windows have `runs`, each its own first.
    ///
    /// Runs end between windows as often as inside, and at least once.
    pub(crate) fn run_share(&self, runs: usize) -> f64 {
        let windows = self.windows.len();
        let ends = runs.saturating_sub(windows) as f64;
        let rows = self.input.rows().max(1) as f64;
        ends / self.rows() as f64 + windows as f64 / rows
    }

    /// The keys of the sampled rows that are not null, in their order, kept in `room`.
    pub(crate) fn keys<'k>(&self, room: &'k mut [u64; SAMPLE_ROWS_MAX]) -> &'k mut [u64] {
        let rows = self.windows.iter().cloned().flatten();
        let valid = rows.filter(|row| self.input.is_valid(*row));
        let mut count = 0;
        for (slot, row) in room.iter_mut().zip(valid) {
            *slot = self.input.key(row);
            count += 1;
        }
        &mut room[..count]
    }

    /// What the best codec makes of `lanes`, which a codec made of the sampled rows.
    ///
    /// Infinitely large when the cascade is deep enough.
    pub fn inner(&self, data_type: &DataType, lanes: Lanes<'_>) -> Estimate {
        let none = Estimate::from(f64::INFINITY);
        let Ok(physical) = Physical::of(data_type) else {
            return none;
        };
        let input = Input {
            data_type,
            physical,
            lanes,
            validity: None,
            array: None,
        };
        let window = 0..input.rows().min(SAMPLE_ROWS_MAX);
        let sample = Sample {
            input: &input,
            windows: std::slice::from_ref(&window),
            encoded_rows: (self.encoded_rows * input.rows()).div_ceil(self.rows()),
            goal: self.goal,
            place: self.place,
        };
        let candidates = sample.price();
        candidates.iter().next().map_or(none, |winner| Estimate {
            bytes_per_row: winner.bytes_per_row,
            inner_ns: winner.scan_ns - self.goal.read_ns(winner.bytes_per_row),
        })
    }

    /// Prices every codec that may encode the column.
    fn price(&self) -> Candidates {
        let mut candidates = Candidates::default();
        for codec in CODECS.iter().copied() {
            let tier_fits = codec.tier() <= self.goal.tier;
            if !self.place.suits(codec) || !tier_fits || codec.is_lossy() {
                continue;
            }
            if !codec.accepts(self.input) {
                continue;
            }
            let estimate = codec.estimate(&Sample {
                place: self.place.inside(codec.id()),
                ..*self
            });
            if !estimate.bytes_per_row.is_finite() {
                continue;
            }
            let own_ns = self.goal.cost_ns(codec, estimate.bytes_per_row);
            candidates.insert(Candidate {
                codec,
                bytes_per_row: estimate.bytes_per_row,
                scan_ns: own_ns + estimate.inner_ns,
            });
        }
        candidates
    }
}

/// What a codec expects of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Estimate {
    /// Bytes per row of the column, those of inner codecs included.
    pub bytes_per_row: f64,
    /// Nanoseconds per row and read that inner codecs compute, getting their bytes not counted, and
    /// that values take which are kept apart or dear to compute with.
    pub inner_ns: f64,
}

impl From<f64> for Estimate {
    fn from(bytes_per_row: f64) -> Self {
        Estimate {
            bytes_per_row,
            inner_ns: 0.0,
        }
    }
}

/// What `chunk` costs per row and read, by its real size and the goal's cost table.
pub fn price(chunk: &Chunk, goal: &Goal) -> f64 {
    let rows = chunk.rows().max(1) as f64;
    let inner = chunk.inner().map(|inner| {
        let computing_ns = price(inner, goal) * inner.rows() as f64;
        (computing_ns - goal.read_ns(inner.byte_size() as f64)) / rows
    });
    let own_ns = goal.cost_ns(chunk.codec(), chunk.byte_size() as f64 / rows);
    own_ns + chunk.codec().apart_ns(chunk, goal) + inner.sum::<f64>()
}

/// Prices every codec that accepts `input`.
///
/// # Cost
/// About a thousand rows are looked at by each codec, and by each codec inside it.
pub fn choose(input: &Input<'_>, goal: &Goal) -> Candidates {
    choose_inside(input, goal, Place::default())
}

/// Prices every codec that accepts the text of `input` by a whole unit, its last rows: what texts
/// have in common lies far apart.
pub(crate) fn choose_by_unit(input: &Input<'_>, goal: &Goal) -> Candidates {
    let window = input.rows().saturating_sub(UNIT_ROWS)..input.rows();
    let sample = Sample {
        input,
        windows: std::slice::from_ref(&window),
        encoded_rows: input.rows(),
        goal,
        place: Place::default(),
    };
    sample.price()
}

/// Prices every codec that accepts `input` at `place` of a cascade.
pub(crate) fn choose_inside(input: &Input<'_>, goal: &Goal, place: Place) -> Candidates {
    let (windows, count) = sample(input.rows());
    let sample = Sample {
        input,
        windows: &windows[..count],
        encoded_rows: input.rows(),
        goal,
        place,
    };
    sample.price()
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
