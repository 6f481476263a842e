//! The newest rows so far: what is given of rows that fail, where they move the watermark.

use arrow_array::{Array, ArrayRef};
use tersecades_columnar::arrow::lanes;
use tersecades_columnar::input::Lanes;
use tersecades_columnar::kernels::{Lane, WORD_LANES, kernels};
use tersecades_columnar::types::Physical;

/// Rows that pass, and before each and at the end the newest so far, with their times.
pub(super) struct Newest<W> {
    /// What makes integers of times that are in order.
    flip: W,
    newest: Option<W>,
    /// The newest row, if it is not given yet.
    pending: Option<(u32, W)>,
    rows: Vec<u32>,
    times: Vec<W>,
}

impl<W: Lane> Newest<W> {
    /// No rows so far, of times whose integers have `flip` flipped.
    pub(super) fn new(flip: u64) -> Self {
        Newest {
            flip: W::truncate(flip),
            newest: None,
            pending: None,
            rows: Vec::new(),
            times: Vec::new(),
        }
    }

    /// Whether `time` is newer than all so far.
    pub(super) fn is_newer(&self, time: W) -> bool {
        Some(time ^ self.flip) > self.newest
    }

    /// Takes in the rows of one word from `first` on: those of `passing` are given, only those of
    /// `candidates` may be newer than all before. `None` where `time` says so of a row.
    #[inline]
    pub(super) fn add(
        &mut self,
        first: usize,
        (passing, candidates): (u64, u64),
        time: impl Fn(usize) -> Option<W>,
    ) -> Option<()> {
        let mut ahead = passing | candidates;
        while ahead != 0 {
            let bit = ahead.trailing_zeros() as usize;
            ahead &= ahead - 1;
            let (row, time) = ((first + bit) as u32, time(bit)?);
            let passes = passing >> bit & 1 == 1;
            if passes {
                self.give_pending();
                self.give(row, time);
            }
            if self.is_newer(time) {
                self.newest = Some(time ^ self.flip);
                self.pending = (!passes).then_some((row, time));
            }
        }
        Some(())
    }

    /// The rows that are given, and their times.
    pub(super) fn finish(mut self) -> (Vec<u32>, Vec<W>) {
        self.give_pending();
        (self.rows, self.times)
    }

    fn give(&mut self, row: u32, time: W) {
        self.rows.push(row);
        self.times.push(time);
    }

    fn give_pending(&mut self) {
        if let Some((row, time)) = self.pending.take() {
            self.give(row, time);
        }
    }
}

/// The rows that are given of a batch with these `times`, where a bit is set in `passing` for each
/// that passes; `None` where the times have no order, or some row has none.
pub(super) fn newest_rows(times: &ArrayRef, passing: &[u64]) -> Option<Vec<u32>> {
    let physical = Physical::of(times.data_type()).ok();
    let physical = physical.filter(|physical| matches!(physical, Physical::Integer { .. }));
    let flip = physical.filter(|_| times.null_count() == 0)?.flip();
    match lanes(times)? {
        Lanes::U32(times) => of_lanes(times, flip, passing),
        Lanes::U64(times) => of_lanes(times, flip, passing),
        _ => None,
    }
}

fn of_lanes<W: Lane>(times: &[W], flip: u64, passing: &[u64]) -> Option<Vec<u32>> {
    let mut newest = Newest::new(flip);
    for (word, (times, passing)) in times.chunks(WORD_LANES).zip(passing).enumerate() {
        let mut candidates = [u64::MAX >> (WORD_LANES - times.len())];
        if let Some(key) = newest.newest {
            let span = W::truncate(u64::MAX) ^ key;
            (W::of(kernels()).range_mask_flat)(times, key ^ newest.flip, span, &mut candidates);
        }
        newest.add(word * WORD_LANES, (*passing, candidates[0]), |row| {
            times.get(row).copied()
        })?;
    }
    Some(newest.finish().0)
}
