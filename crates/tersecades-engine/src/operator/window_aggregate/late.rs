//! Late rows: how many each window missed, and the rows themselves as bytes.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use tersecades_columnar::error::{Error, Result};

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

/// Writes rows, each batch as an Arrow stream of its own.
///
/// # Errors
/// What Arrow says.
pub fn write_rows(batches: &[RecordBatch], out: &mut StateWriter) -> Result<()> {
    out.u64(batches.len() as u64);
    for batch in batches {
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema())?;
        writer.write(batch)?;
        writer.finish()?;
        drop(writer);
        out.blob(&bytes);
    }
    Ok(())
}

/// Reads what [`write_rows`] wrote.
///
/// # Errors
/// `Corrupt` when the bytes are no such rows.
pub fn read_rows(from: &mut StateReader<'_>) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for _ in 0..from.count()? {
        let mut reader = StreamReader::try_new(from.blob()?, None)?;
        let batch = reader
            .next()
            .ok_or_else(|| Error::corrupt("a snapshot lacks the late rows it claims"))?;
        batches.push(batch?);
    }
    Ok(batches)
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
