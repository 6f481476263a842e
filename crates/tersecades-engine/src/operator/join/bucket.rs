//! Rows of one input of a join by time: kept encoded, found by key and time, dropped when old.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use hashbrown::HashMap;
use tersecades_columnar::error::Result;

use crate::operator::row::kept::KeptRows;
use crate::runtime::state::{StateReader, StateWriter};

/// Rows held before the first look for old ones.
const SWEEP_ROWS_MIN: usize = 1_024;

/// A row that may still be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// Its event time.
    pub time: i64,
    /// Its number among the rows of its input.
    pub row: u64,
    /// Whether it has had a pair.
    pub paired: bool,
}

/// How many of `rows`, which are `early` up to some place, are so, looked for from `near` on.
///
/// # Cost
/// The logarithm of the distance from `near`.
pub fn early_rows(rows: &[Held], near: usize, early: impl Fn(&Held) -> bool) -> usize {
    let near = near.min(rows.len());
    if rows[..near].last().is_some_and(|held| !early(held)) {
        return rows[..near].partition_point(early);
    }
    let (mut from, mut step) = (near, 1);
    while let Some(held) = rows.get(from + step - 1)
        && early(held)
    {
        from += step;
        step *= 2;
    }
    let to = rows.len().min(from + step - 1);
    from + rows[from..to].partition_point(early)
}

/// The rows of one key, in order of time and arrival.
struct Bucket {
    rows: Vec<Held>,
    /// Where they were [parted](Buckets::parted) last.
    near: usize,
}

/// Rows of one input by key, each key's in order of time and arrival.
pub struct Buckets {
    rows: KeptRows,
    by_key: HashMap<Box<[u8]>, Bucket, foldhash::fast::FixedState>,
    held: usize,
    sweep_at: usize,
    key_bytes: usize,
}

impl Buckets {
    /// No rows of `schema` yet.
    ///
    /// # Errors
    /// `Unsupported` for types that cannot be encoded.
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        Ok(Buckets {
            rows: KeptRows::new(schema)?,
            by_key: HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0)),
            held: 0,
            sweep_at: SWEEP_ROWS_MIN,
            key_bytes: 0,
        })
    }

    /// Keeps `rows`; the first gets the number that is returned.
    ///
    /// # Errors
    /// What encoding says.
    pub fn keep(&mut self, rows: RecordBatch) -> Result<u64> {
        self.rows.push(rows)
    }

    /// Makes a kept row findable.
    pub fn insert(&mut self, key: &[u8], time: i64, row: u64) {
        let held = Held {
            time,
            row,
            paired: false,
        };
        self.held += 1;
        if let Some(Bucket { rows, .. }) = self.by_key.get_mut(key) {
            let early = |known: &Held| (known.time, known.row) < (time, row);
            match rows.last().is_none_or(early) {
                true => rows.push(held),
                false => rows.insert(rows.partition_point(early), held),
            }
            return;
        }
        self.key_bytes += key.len();
        let rows = vec![held];
        self.by_key.insert(key.into(), Bucket { rows, near: 0 });
    }

    /// The rows of `key`, in order of time and arrival.
    pub fn of(&mut self, key: &[u8]) -> &mut [Held] {
        let bucket = self.by_key.get_mut(key);
        bucket.map_or(&mut [], |bucket| &mut bucket.rows)
    }

    /// The rows of `key` that are `early`, which are the first ones, and those behind them.
    ///
    /// # Cost
    /// Little where they are parted not far from where they were the last time.
    pub fn parted(&mut self, key: &[u8], early: impl Fn(&Held) -> bool) -> (&[Held], &[Held]) {
        let Some(bucket) = self.by_key.get_mut(key) else {
            return (&[], &[]);
        };
        bucket.near = early_rows(&bucket.rows, bucket.near, early);
        bucket.rows.split_at(bucket.near)
    }

    /// Whether enough rows came since the last sweep for another to be worth it.
    pub fn wants_sweep(&self) -> bool {
        self.held >= self.sweep_at
    }

    /// Drops what `old` says of each key's rows: how many of the first; they are passed to `gone`.
    pub fn sweep(&mut self, old: impl Fn(&[Held]) -> usize, mut gone: impl FnMut(Held)) {
        let (held, key_bytes) = (&mut self.held, &mut self.key_bytes);
        self.by_key.retain(|key, Bucket { rows, near }| {
            let count = old(rows);
            *held -= count;
            *near = near.saturating_sub(count);
            rows.drain(..count).for_each(&mut gone);
            if rows.is_empty() {
                *key_bytes -= key.len();
            }
            !rows.is_empty()
        });
        self.sweep_at = SWEEP_ROWS_MIN.max(self.held * 2);
    }

    /// Says that the columns of `row` will not be asked for again.
    pub fn release(&mut self, row: u64) {
        self.rows.release(row);
    }

    /// The columns of the rows with these numbers.
    ///
    /// # Errors
    /// What decoding says.
    pub fn pick(&mut self, rows: &[u64]) -> Result<Vec<ArrayRef>> {
        self.rows.pick(rows)
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// What encoding says.
    pub fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.rows.snapshot_numbered(out)?;
        out.list(self.by_key.iter(), |out, (key, bucket)| {
            out.blob(key);
            out.list(bucket.rows.iter(), |out, held| {
                out.i64(held.time);
                out.u64(held.row);
                out.bool(held.paired);
            });
        });
        Ok(())
    }

    /// Reads what [`Buckets::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.rows.restore_numbered(from)?;
        for _ in 0..from.count()? {
            let key = from.blob()?;
            let rows: Vec<Held> = from.list(|from| {
                Ok(Held {
                    time: from.i64()?,
                    row: from.u64()?,
                    paired: from.bool()?,
                })
            })?;
            self.held += rows.len();
            self.key_bytes += key.len();
            self.by_key.insert(key.into(), Bucket { rows, near: 0 });
        }
        self.sweep_at = SWEEP_ROWS_MIN.max(self.held * 2);
        Ok(())
    }

    /// Bytes of memory.
    pub fn byte_size(&self) -> usize {
        let cells = self.by_key.capacity() * size_of::<(Box<[u8]>, Bucket)>();
        self.rows.byte_size() + self.held * size_of::<Held>() + self.key_bytes + cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_rows_are_found_from_wherever_they_are_looked_for() {
        for count in [0usize, 1, 2, 7, 40] {
            let held = |row: usize| Held {
                time: row as i64 / 3,
                row: row as u64,
                paired: false,
            };
            let rows: Vec<Held> = (0..count).map(held).collect();
            for time in -1..=count as i64 / 3 + 1 {
                let early = |held: &Held| held.time < time;
                let wanted = rows.partition_point(early);
                for near in 0..=count + 3 {
                    assert_eq!(early_rows(&rows, near, early), wanted, "{time} from {near}");
                }
            }
        }
    }
}
