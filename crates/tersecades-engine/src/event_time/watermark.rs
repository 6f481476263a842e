//! The watermark of one stream, and where a batch must be cut.

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::values::Values;

use crate::window::Boundaries;

use super::key_range;

/// Rows `first_row..` of a batch are judged by `watermark` (until the next cut).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// First row, inside the batch.
    pub first_row: usize,
    /// The watermark before it; the smallest time when there is none.
    pub watermark: i64,
}

/// How far a stream has come.
#[derive(Debug, Clone)]
pub struct Watermark {
    lateness: i64,
    /// Largest event time seen.
    newest: Option<i64>,
    times: Values,
    found: Selection,
}

impl Watermark {
    /// Nothing seen yet; rows may be `lateness` ticks behind the newest.
    pub fn new(lateness: i64) -> Self {
        Watermark {
            lateness,
            newest: None,
            times: Values::default(),
            found: Selection::default(),
        }
    }

    /// The watermark before the next row; the smallest time when no row was seen.
    pub fn current(&self) -> i64 {
        self.newest
            .map_or(i64::MIN, |newest| newest.saturating_sub(self.lateness))
    }

    /// The largest event time seen.
    pub fn newest(&self) -> Option<i64> {
        self.newest
    }

    /// Continues from a snapshot.
    pub fn resume(&mut self, newest: Option<i64>) {
        self.newest = newest;
    }

    /// Takes in the times of a batch; fills `cuts`, of which the first is at row 0.
    ///
    /// A further cut stands where a row would otherwise be counted into a window that closed
    /// earlier in the same batch.
    ///
    /// # Cost
    /// Nothing per row unless the batch closes a window.
    pub fn pass(
        &mut self,
        time: &Chunk,
        windows: Option<&dyn Boundaries>,
        cuts: &mut Vec<Cut>,
        work: &mut Work,
    ) {
        cuts.clear();
        cuts.push(Cut {
            first_row: 0,
            watermark: self.current(),
        });
        let stats = time.stats();
        if !stats.known {
            return;
        }
        let batch_newest = time.physical().value_of(stats.max) as i64;
        let before = self.current();
        let newest = self
            .newest
            .map_or(batch_newest, |newest| newest.max(batch_newest));
        let after = newest.saturating_sub(self.lateness);
        let oldest = time.physical().value_of(stats.min) as i64;
        if let Some(windows) = windows {
            let first_end = windows.ending_after(before.max(oldest)).end;
            if first_end <= i128::from(after) {
                let last_end = windows.last_end(after);
                if self.may_cut(time, (first_end as i64, last_end as i64), work) {
                    self.cut_batch(time, windows, cuts, work);
                }
            }
        }
        self.newest = Some(newest);
    }

    /// Whether a row that a closing window could hold stands behind the row that closes the first.
    ///
    /// Two comparisons of the time column, which skip most blocks.
    fn may_cut(
        &mut self,
        time: &Chunk,
        (first_end, last_end): (i64, i64),
        work: &mut Work,
    ) -> bool {
        let closing = first_end.saturating_add(self.lateness);
        if self.newest.is_some_and(|newest| newest >= closing) {
            return true;
        }
        let physical = time.physical();
        let everything = Selection::all(time.rows());
        let closers = key_range(physical, closing, i64::MAX);
        time.compare(&closers, &everything, &mut self.found, work);
        let Some(closer) = self.found.first() else {
            return false;
        };
        let held = key_range(physical, i64::MIN, last_end.saturating_sub(1));
        time.compare(&held, &everything, &mut self.found, work);
        self.found.last().is_some_and(|row| row > closer)
    }

    /// Walks the rows of a batch that closes a window.
    fn cut_batch(
        &mut self,
        time: &Chunk,
        windows: &dyn Boundaries,
        cuts: &mut Vec<Cut>,
        work: &mut Work,
    ) {
        let mut times = std::mem::take(&mut self.times);
        time.gather(&Selection::all(time.rows()), &mut times, work);
        let mut newest = self.newest;
        let mut judged_by = self.current();
        for row in (0..times.len()).filter(|row| times.is_valid(*row)) {
            let at = times.integer(row) as i64;
            let watermark = newest.map_or(i64::MIN, |newest| newest.saturating_sub(self.lateness));
            if watermark > judged_by {
                // The first window that holds the row and had not closed when last judged.
                let window = windows.ending_after(at.max(judged_by));
                if window.start <= i128::from(at) && window.end <= i128::from(watermark) {
                    cuts.push(Cut {
                        first_row: row,
                        watermark,
                    });
                    judged_by = watermark;
                }
            }
            newest = Some(newest.map_or(at, |newest| newest.max(at)));
        }
        self.times = times;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use arrow_array::{ArrayRef, Int64Array};
    use tersecades_columnar::encoder::ColumnEncoder;

    use crate::window::{Windowing, hop};

    use super::*;

    #[test]
    fn a_row_is_cut_off_when_only_a_later_one_of_its_windows_has_closed_since() {
        let times: ArrayRef = Arc::new(Int64Array::from(vec![100, 35, 115, 55]));
        let chunk = ColumnEncoder::new(times.data_type())
            .unwrap()
            .encode_new(&times)
            .unwrap();
        let window = hop(Duration::from_secs(60), Duration::from_secs(10));
        let Ok(Windowing::Aligned(windows)) = window.bind(1_000_000_000) else {
            panic!("hops are aligned");
        };
        let (mut cuts, mut work) = (Vec::new(), Work::default());
        Watermark::new(0).pass(&chunk, Some(&*windows), &mut cuts, &mut work);
        let cuts: Vec<_> = cuts
            .iter()
            .map(|cut| (cut.first_row, cut.watermark))
            .collect();
        // The last window of row 3 ends at 110: after the watermark of row 1, before its own.
        assert_eq!(cuts, [(0, i64::MIN), (1, 100), (3, 115)]);
    }
}
