//! Rows of a batch by the pane that their times lie in.
//!
//! ```text
//! panes of rows  3 3 4 3 4 4 5 ──▶ ahead   3 3 4 4 4 5   no pane before the last one's
//!                                  behind  3             the others: few, and sorted
//! ```
//! Rows come roughly in order of time, so that few of them have to be sorted.

use crate::window::Span;

/// A pane, and whether its rows are in a window.
#[derive(Debug, Clone, Copy)]
struct Place {
    first: i64,
    last: i64,
    covered: bool,
}

impl Place {
    const NOWHERE: Place = Place {
        first: i64::MAX,
        last: i64::MIN,
        covered: false,
    };

    #[inline]
    fn holds(self, time: i64) -> bool {
        self.first <= time && time <= self.last
    }
}

/// Rows by pane; the memory is kept.
#[derive(Debug, Default)]
pub(super) struct Placed {
    ahead: Vec<u32>,
    /// Starts of panes, which ascend, with the ends of their rows in `ahead`.
    runs: Vec<(i64, usize)>,
    behind: Vec<(i64, u32)>,
    /// How many runs, and how many rows behind, were handed out.
    taken: (usize, usize),
}

impl Placed {
    /// Replaces all rows by those of `rows`, which ascend, each with its time; `pane` says which
    /// pane a time lies in, and whether rows of that pane are in a window. Returns how many are in
    /// none.
    pub(super) fn place(
        &mut self,
        rows: impl Iterator<Item = (u32, i64)>,
        pane: impl Fn(i64) -> (Span, bool),
    ) -> u64 {
        self.ahead.clear();
        self.runs.clear();
        self.behind.clear();
        self.taken = (0, 0);
        let mut skipped = 0;
        let (mut newest, mut older) = (Place::NOWHERE, Place::NOWHERE);
        for (row, time) in rows {
            if !newest.holds(time) && !older.holds(time) {
                let (pane, covered) = pane(time);
                let found = Place {
                    first: pane.first(),
                    last: pane.last(),
                    covered,
                };
                if found.first > newest.first || newest.first > newest.last {
                    self.end_run(newest);
                    newest = found;
                } else {
                    older = found;
                }
            }
            match newest.holds(time) {
                true if newest.covered => self.ahead.push(row),
                false if older.covered => self.behind.push((older.first, row)),
                _ => skipped += 1,
            }
        }
        self.end_run(newest);
        self.behind.sort_unstable();
        skipped
    }

    fn end_run(&mut self, of: Place) {
        let before = self.runs.last().map_or(0, |(_, end)| *end);
        if self.ahead.len() > before {
            self.runs.push((of.first, self.ahead.len()));
        }
    }

    /// Sets `rows` to the rows of the next pane, which ascend; its start.
    pub(super) fn next(&mut self, rows: &mut Vec<u32>) -> Option<i64> {
        let (runs, behind) = &mut self.taken;
        let run = self.runs.get(*runs);
        let late = &self.behind[*behind..];
        let starts = run.map(|(pane, _)| *pane).into_iter();
        let pane = starts.chain(late.first().map(|(pane, _)| *pane)).min()?;
        rows.clear();
        if let Some((_, end)) = run.filter(|(start, _)| *start == pane) {
            let before = runs.checked_sub(1).map_or(0, |before| self.runs[before].1);
            rows.extend_from_slice(&self.ahead[before..*end]);
            *runs += 1;
        }
        // A row behind came after all rows of its pane that lie ahead.
        let late = late.iter().take_while(|(start, _)| *start == pane);
        let ahead = rows.len();
        rows.extend(late.map(|(_, row)| *row));
        *behind += rows.len() - ahead;
        Some(pane)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn rows_of_a_pane_come_together_and_ascend() {
        let mut placed = Placed::default();
        let mut state = 3u64;
        let mut below = |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        };
        let pane = |time: i64| {
            let start = i128::from(time.div_euclid(10) * 10);
            let end = start + 10;
            (Span { start, end }, time.div_euclid(10) % 4 != 3)
        };
        for case in 0..400u64 {
            let (rows, jitter) = (below(90), 1 + case % 60);
            let time = |row: u32| (u64::from(row) * 2 + below(jitter)) as i64 - 50;
            let times: Vec<(u32, i64)> = (0..rows as u32).zip((0..).map(time)).collect();
            let mut expected: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
            let mut outside = 0;
            for (row, time) in &times {
                match pane(*time) {
                    (pane, true) => expected.entry(pane.first()).or_default().push(*row),
                    _ => outside += 1,
                }
            }
            assert_eq!(placed.place(times.into_iter(), pane), outside);
            let (mut found, mut last, mut list) = (BTreeMap::new(), i64::MIN, Vec::new());
            while let Some(pane) = placed.next(&mut list) {
                assert!(pane > last, "case {case}");
                last = pane;
                found.insert(pane, list.clone());
            }
            assert_eq!(found, expected, "case {case}");
        }
    }
}
