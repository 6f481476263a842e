//! Values for the benches: seeded ones, and those of a source.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_columnar::Result;
use tersecades_columnar::codec::Codec;
use tersecades_columnar::registry::CODECS;
use tersecades_engine::source::Source;

/// Xorshift: fast, repeatable, good enough to keep a predictor guessing.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed | 1)
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`, which is above 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.bits() >> 20) % bound
    }
}

/// First timestamp, milliseconds.
pub(crate) const START_MS: i64 = 1_700_000_003_217;

/// Pingmesh-like event times in milliseconds: 100 rows each millisecond-tenth, up to 10 ms of
/// jitter, and `late_per_mille` rows in a thousand up to 2.5 s late.
pub(crate) fn timestamps(rows: usize, late_per_mille: u64, seed: u64) -> Vec<i64> {
    let mut random = Random::new(seed);
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let arrival = START_MS + i64::try_from(row / 100).unwrap_or(i64::MAX);
        let mut delay = random.below(11);
        if late_per_mille > 0 && random.below(1000) < late_per_mille {
            delay += random.below(2_500);
        }
        values.push(arrival - i64::try_from(delay).unwrap_or(0));
    }
    values
}

/// `values` as arrays of `rows` rows that share its memory.
pub(crate) fn slices(values: Vec<i64>, rows: usize) -> Vec<ArrayRef> {
    let whole = Int64Array::from(values);
    let starts = (0..whole.len()).step_by(rows.max(1));
    let slice = |start: usize| whole.slice(start, rows.min(whole.len() - start));
    starts
        .map(|start| Arc::new(slice(start)) as ArrayRef)
        .collect()
}

/// The batches of `source`.
pub(crate) fn batches(source: &mut dyn Source) -> impl Iterator<Item = Result<RecordBatch>> {
    std::iter::from_fn(|| source.next().transpose())
}

/// The codec called `name`, or the first of the list.
pub(crate) fn codec(name: &str) -> &'static dyn Codec {
    let found = CODECS.iter().find(|codec| codec.name() == name);
    *found.unwrap_or(&CODECS[0])
}
