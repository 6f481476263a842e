//! How many late rows each window missed.

use std::collections::BTreeMap;

use tersecades_columnar::error::Result;

use crate::runtime::state::{StateReader, StateWriter};
use crate::window::Span;

/// Windows whose late rows are counted apart.
pub const LATE_WINDOWS_MAX: usize = 1_000;

/// How many late rows the last of their windows missed; the newest windows are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LateWindows {
    /// End and late rows, by start.
    windows: BTreeMap<i64, (i64, u64)>,
    /// Late rows of older windows.
    pub older: u64,
}

impl LateWindows {
    /// Counts `rows` late rows of `window`.
    pub fn count(&mut self, window: Span, rows: u64) {
        self.count_between(window.first(), window.last().saturating_add(1), rows);
    }

    fn count_between(&mut self, start: i64, end: i64, rows: u64) {
        let known = &mut self.windows.entry(start).or_insert((end, 0)).1;
        *known = known.saturating_add(rows);
        if self.windows.len() > LATE_WINDOWS_MAX
            && let Some((_, (_, oldest))) = self.windows.pop_first()
        {
            self.older = self.older.saturating_add(oldest);
        }
    }

    /// Start, end and late rows of each window that is told apart, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (i64, i64, u64)> {
        let windows = self.windows.iter();
        windows.map(|(start, (end, rows))| (*start, *end, *rows))
    }

    /// Adds what another worker has counted.
    pub fn merge(&mut self, other: &LateWindows) {
        self.older += other.older;
        for (start, end, rows) in other.iter() {
            self.count_between(start, end, rows);
        }
    }

    /// Writes the counts.
    pub fn snapshot(&self, out: &mut StateWriter) {
        out.u64(self.older);
        out.u64(self.windows.len() as u64);
        for (start, end, rows) in self.iter() {
            out.i64(start);
            out.i64(end);
            out.u64(rows);
        }
    }

    /// Reads what [`LateWindows::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` at the end of the bytes.
    pub fn restore(from: &mut StateReader<'_>) -> Result<Self> {
        let mut windows = LateWindows {
            older: from.u64()?,
            ..LateWindows::default()
        };
        for _ in 0..from.count()? {
            windows.count_between(from.i64()?, from.i64()?, from.u64()?);
        }
        Ok(windows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: i128) -> Span {
        Span {
            start,
            end: start + 10,
        }
    }

    #[test]
    fn only_the_newest_windows_are_told_apart() {
        let mut late = LateWindows::default();
        for start in (0..LATE_WINDOWS_MAX as i128 + 5).rev() {
            late.count(window(start), 2);
        }
        late.count(window(7), 1);
        assert_eq!(late.older, 10);
        assert_eq!(late.iter().next(), Some((5, 15, 2)));
        assert_eq!(late.iter().nth(2), Some((7, 17, 3)));
        let mut out = StateWriter::default();
        late.snapshot(&mut out);
        let sealed = out.seal();
        let mut reader = StateReader::open(&sealed).unwrap();
        assert_eq!(LateWindows::restore(&mut reader).unwrap(), late);
    }
}
