//! The watermark of one stream, and where a batch must be cut.

use std::sync::Arc;
use std::time::Duration;

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::values::Values;

use crate::runtime::state::{StateReader, StateWriter};
use crate::source::PartitionState;
use crate::window::{Boundaries, Emission};

use super::key_range;
use super::partition::Partitions;

/// Rows `first_row..` of a batch are judged by `watermark` (until the next cut).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// First row, inside the batch.
    pub first_row: usize,
    /// The watermark before it; the smallest time when there is none.
    pub watermark: i64,
}

/// The windows whose closing cuts batches.
#[derive(Debug, Clone, Copy)]
pub struct Closing<'a> {
    /// Where windows start and end.
    pub boundaries: &'a dyn Boundaries,
    /// When they come out, if that is not once, when they close.
    pub emission: Option<Emission>,
}

/// How far a stream has come.
#[derive(Debug, Clone)]
pub struct Watermark {
    lateness: i64,
    partitions: Partitions,
    /// The partition whose rows come next.
    partition: usize,
    /// It never goes back.
    reached: i64,
    /// Rows after this time do not move it.
    future_from: i64,
    future_rows: u64,
    /// It does not pass this time, whatever the rows say.
    held_at: i64,
    times: Values,
    found: Selection,
}

/// What the rows of one batch do to the watermark.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// The watermark before the batch.
    reached: i64,
    /// The newest time of its partition before the batch.
    newest: Option<i64>,
    /// Up to which newest time other partitions let it move.
    ceiling: i64,
    lateness: i64,
    future_from: i64,
    held_at: i64,
}

impl Course {
    /// The newest time of the batch's partition before it.
    pub fn newest(&self) -> Option<i64> {
        self.newest
    }

    /// The watermark when the newest time of the partition is `newest`.
    pub fn watermark(&self, newest: Option<i64>) -> i64 {
        let own = newest.map_or(i64::MIN, |newest| {
            behind(newest.min(self.ceiling), self.lateness)
        });
        own.min(self.held_at).max(self.reached)
    }

    /// The newest time after a row at `at`.
    pub fn after(&self, newest: Option<i64>, at: i64) -> Option<i64> {
        match at > self.future_from {
            true => newest,
            false => newest.max(Some(at)),
        }
    }
}

/// The watermark where the newest time is `newest`: before all times where nothing is late.
fn behind(newest: i64, lateness: i64) -> i64 {
    match lateness {
        i64::MAX => i64::MIN,
        _ => newest.saturating_sub(lateness),
    }
}

impl Watermark {
    /// Nothing seen yet; rows may be `lateness` ticks behind the newest.
    pub fn new(lateness: i64) -> Self {
        Watermark::of_partitions(lateness, 1)
    }

    /// As [`Watermark::new`], of a source with so many partitions.
    pub fn of_partitions(lateness: i64, partitions: usize) -> Self {
        Watermark {
            lateness,
            partitions: Partitions::new(partitions),
            partition: 0,
            reached: i64::MIN,
            future_from: i64::MAX,
            future_rows: 0,
            held_at: i64::MAX,
            times: Values::default(),
            found: Selection::default(),
        }
    }

    /// The watermark before the next row; the smallest time when no row was seen.
    pub fn current(&self) -> i64 {
        self.reached
    }

    /// The largest event time seen.
    pub fn newest(&self) -> Option<i64> {
        self.partitions.newest_of_all()
    }

    /// Rows that were too far in the future to move the watermark.
    pub fn future_rows(&self) -> u64 {
        self.future_rows
    }

    /// Rows after `time` do not move the watermark from here on.
    pub fn set_future(&mut self, time: i64) {
        self.future_from = time;
    }

    /// How far each partition has come.
    pub fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// The next rows are of the partition at `index`.
    pub fn set_partition(&mut self, index: usize) {
        self.partition = index.min(self.partitions.count() - 1);
    }

    /// Takes in how a partition stands, at a time of the clock; see [`Partitions::observe`].
    pub fn observe(&mut self, index: usize, state: PartitionState, clock: (Duration, Duration)) {
        self.partitions.observe(index, state, clock);
    }

    /// Goes where the partitions let it; whether it moved.
    pub fn settle(&mut self) -> bool {
        let least = self.partitions.least();
        let least = least.map_or(i64::MIN, |least| behind(least, self.lateness));
        self.advance_to(least.min(self.held_at))
    }

    /// Does not pass `time` from here on, whatever the rows say; whether that is news.
    pub fn hold_at(&mut self, time: i64) -> bool {
        std::mem::replace(&mut self.held_at, time) != time
    }

    /// Goes to `time` whatever the rows say; whether it moved.
    pub fn advance_to(&mut self, time: i64) -> bool {
        let moved = time > self.reached;
        self.reached = self.reached.max(time);
        moved
    }

    /// Continues from a snapshot of a stream without partitions.
    pub fn resume(&mut self, newest: Option<i64>) {
        self.partitions.set_newest(0, newest);
        self.settle();
    }

    /// Writes how far the stream has come.
    pub fn snapshot(&self, out: &mut StateWriter) {
        out.i64(self.reached);
        out.u64(self.future_rows);
        self.partitions.snapshot(out);
    }

    /// Reads what [`Watermark::snapshot`] wrote.
    ///
    /// # Errors
    /// What [`Partitions::restore`] says.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.reached = from.i64()?;
        self.future_rows = from.u64()?;
        self.partitions.restore(from)
    }

    /// What the rows of the next batch will do.
    pub fn course(&self) -> Course {
        Course {
            reached: self.reached,
            newest: self.partitions.newest(self.partition),
            ceiling: self.partitions.ceiling(self.partition),
            lateness: self.lateness,
            future_from: self.future_from,
            held_at: self.held_at,
        }
    }

    /// Takes in the times of a batch; fills `cuts`, of which the first is at row 0.
    ///
    /// A further cut stands where a row would otherwise be counted into a window that closed
    /// earlier in the same batch, or be missing in what came out of it.
    ///
    /// # Cost
    /// Nothing per row unless the batch closes a window.
    pub fn pass(
        &mut self,
        time: &Chunk,
        closing: Option<Closing<'_>>,
        cuts: &mut Vec<Cut>,
        work: &mut Work,
    ) {
        cuts.clear();
        cuts.push(Cut {
            first_row: 0,
            watermark: self.reached,
        });
        let stats = time.stats();
        if !stats.known {
            return;
        }
        let course = self.course();
        let newest = course.newest.max(self.batch_newest(time, work));
        let after = course.watermark(newest);
        let oldest = time.physical().value_of(stats.min) as i64;
        if let Some(closing) = closing
            && self.may_cut(time, &closing, course, (oldest, after), work)
        {
            self.cut_batch(time, &closing, course, cuts, work);
        }
        self.partitions.set_newest(self.partition, newest);
        self.reached = after;
    }

    /// As [`Watermark::pass`], with the cuts of all of `windows`.
    pub fn pass_all(
        &mut self,
        time: &Chunk,
        windows: &[Arc<dyn Boundaries>],
        cuts: &mut Vec<Cut>,
        work: &mut Work,
    ) {
        let mut all = Vec::new();
        for boundaries in windows {
            let closing = Closing {
                boundaries: &**boundaries,
                emission: None,
            };
            self.clone().pass(time, Some(closing), cuts, work);
            all.append(cuts);
        }
        self.pass(time, None, cuts, work);
        cuts.append(&mut all);
        cuts.sort_unstable_by_key(|cut| cut.first_row);
        cuts.dedup_by_key(|cut| cut.first_row);
    }

    /// The newest time of a batch that may move the watermark; counts those that may not.
    fn batch_newest(&mut self, time: &Chunk, work: &mut Work) -> Option<i64> {
        let newest = time.physical().value_of(time.stats().max) as i64;
        if newest <= self.future_from {
            return Some(newest);
        }
        let mut times = std::mem::take(&mut self.times);
        time.gather(&Selection::all(time.rows()), &mut times, work);
        let mut newest = None;
        for row in (0..times.len()).filter(|row| times.is_valid(*row)) {
            let at = times.integer(row) as i64;
            match at > self.future_from {
                true => self.future_rows += 1,
                false => newest = newest.max(Some(at)),
            }
        }
        self.times = times;
        newest
    }

    /// Whether a row whose judgement depends on a window that closes in the batch stands behind
    /// the row that closes it; `after` is the watermark behind the batch.
    fn may_cut(
        &mut self,
        time: &Chunk,
        closing: &Closing<'_>,
        course: Course,
        (oldest, after): (i64, i64),
        work: &mut Work,
    ) -> bool {
        let windows = closing.boundaries;
        if let Some(emission) = closing.emission {
            return emission.passes(windows, course.reached, after)
                && (emission.is_periodic() || i128::from(oldest) < windows.last_end(after));
        }
        let first_end = windows.ending_after(course.reached.max(oldest)).end;
        if first_end > i128::from(after) {
            return false;
        }
        let (first_end, last_end) = (first_end as i64, windows.last_end(after) as i64);
        self.stands_behind(time, course, (first_end, last_end), work)
    }

    /// Whether a row before `last_end` stands behind the first that closes a window at `first_end`.
    ///
    /// Two comparisons of the time column, which skip most blocks.
    fn stands_behind(
        &mut self,
        time: &Chunk,
        course: Course,
        (first_end, last_end): (i64, i64),
        work: &mut Work,
    ) -> bool {
        let closing = first_end.saturating_add(course.lateness);
        if course.newest.is_some_and(|newest| newest >= closing) {
            return true;
        }
        let physical = time.physical();
        let everything = Selection::all(time.rows());
        let closers = key_range(physical, closing, course.future_from);
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
        closing: &Closing<'_>,
        course: Course,
        cuts: &mut Vec<Cut>,
        work: &mut Work,
    ) {
        let mut times = std::mem::take(&mut self.times);
        time.gather(&Selection::all(time.rows()), &mut times, work);
        let mut newest = course.newest;
        let mut judged_by = course.reached;
        for row in 0..times.len() {
            let at = times.is_valid(row).then(|| times.integer(row) as i64);
            let watermark = course.watermark(newest);
            if watermark > judged_by && closing.cuts(at, judged_by, watermark) {
                cuts.push(Cut {
                    first_row: row,
                    watermark,
                });
                judged_by = watermark;
            }
            if let Some(at) = at {
                newest = course.after(newest, at);
            }
        }
        self.times = times;
    }
}

impl Closing<'_> {
    /// Whether a row at `at`, if it has a time, must not be judged together with rows that
    /// `judged_by` judged.
    fn cuts(&self, at: Option<i64>, judged_by: i64, watermark: i64) -> bool {
        // The first window that holds the row and ends after `after`.
        let has_closed = |after: i64, at: i64| {
            let window = self.boundaries.ending_after(at.max(after));
            window.start <= i128::from(at) && window.end <= i128::from(watermark)
        };
        match self.emission {
            None => at.is_some_and(|at| has_closed(judged_by, at)),
            Some(emission) => {
                emission.passes(self.boundaries, judged_by, watermark)
                    && (emission.is_periodic() || at.is_some_and(|at| has_closed(i64::MIN, at)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        let closing = Closing {
            boundaries: &*windows,
            emission: None,
        };
        Watermark::new(0).pass(&chunk, Some(closing), &mut cuts, &mut work);
        let cuts: Vec<_> = cuts
            .iter()
            .map(|cut| (cut.first_row, cut.watermark))
            .collect();
        // The last window of row 3 ends at 110: after the watermark of row 1, before its own.
        assert_eq!(cuts, [(0, i64::MIN), (1, 100), (3, 115)]);
    }
}
