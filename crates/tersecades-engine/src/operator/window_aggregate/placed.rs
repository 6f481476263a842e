//! Rows of a batch by the pane that their times lie in.
//!
//! ```text
//! panes of rows  3 3 4 3 4 4 5 ──▶ ahead   3 3 4 4 4 5   no pane before the last one's
//!                                  behind  3             the others: few, and sorted
//! ```
//! Rows come roughly in order of time, so that few of them have to be sorted.

/// Rows by pane; the memory is kept.
#[derive(Debug, Default)]
pub(super) struct Placed {
    ahead: Vec<(i64, u32)>,
    behind: Vec<(i64, u32)>,
    /// How many of each were handed out.
    taken: [usize; 2],
}

impl Placed {
    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.ahead.clear();
        self.behind.clear();
        self.taken = [0; 2];
    }

    /// Adds `row`, which comes after those added before, to the pane that starts at `pane`.
    #[inline]
    pub(super) fn push(&mut self, pane: i64, row: u32) {
        match self.ahead.last() {
            Some((last, _)) if *last > pane => self.behind.push((pane, row)),
            _ => self.ahead.push((pane, row)),
        }
    }

    /// Ends the adding of rows.
    pub(super) fn settle(&mut self) {
        self.behind.sort_unstable();
    }

    /// Appends the rows of the next pane, which ascend; its start.
    pub(super) fn next(&mut self, rows: &mut Vec<u32>) -> Option<i64> {
        let lists = [&self.ahead, &self.behind];
        let left = [0, 1].map(|list| &lists[list][self.taken[list]..]);
        let starts = left.iter().filter_map(|left| left.first());
        let pane = starts.map(|(pane, _)| *pane).min()?;
        // A row behind came after all rows of its pane that lie ahead.
        for (left, taken) in left.iter().zip(&mut self.taken) {
            let of_pane = left.iter().take_while(|(start, _)| *start == pane);
            let before = rows.len();
            rows.extend(of_pane.map(|(_, row)| *row));
            *taken += rows.len() - before;
        }
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
        for case in 0..200u64 {
            let (rows, jitter) = (below(90), 1 + case % 40);
            let mut expected: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
            placed.clear();
            for row in 0..rows {
                let pane = (row / 8 + below(jitter)) as i64 * 10 - 50;
                expected.entry(pane).or_default().push(row as u32);
                placed.push(pane, row as u32);
            }
            placed.settle();
            let mut found = BTreeMap::new();
            let mut last = i64::MIN;
            loop {
                let mut list = Vec::new();
                let Some(pane) = placed.next(&mut list) else {
                    break;
                };
                assert!(pane > last, "case {case}");
                last = pane;
                found.insert(pane, list);
            }
            assert_eq!(found, expected, "case {case}");
        }
    }
}
