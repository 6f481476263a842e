//! What a store is used for, as it was seen, and what follows for the codecs of its levels.

use std::sync::atomic::{AtomicU64, Ordering};

use tersecades_columnar::goal::Uses;

/// Reads and writes since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Workload {
    scans: AtomicU64,
    points: AtomicU64,
    rows: AtomicU64,
}

/// Reads of a run of the first level that the chooser counts with at least: the merge that ends it.
const READS_LEAST: f64 = 2.0;
/// The same of deeper levels, which hold most of the bytes whether they are read or not.
const READS_DEEP: f64 = 32.0;
const READS_MOST: f64 = 1e6;

impl Workload {
    /// Counts a scan.
    pub(crate) fn scanned(&self) {
        self.scans.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a read by key.
    pub(crate) fn found(&self) {
        self.points.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts rows that were written.
    pub(crate) fn wrote(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Scans, reads by key, and rows written.
    pub(crate) fn read(&self) -> (u64, u64, u64) {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (get(&self.scans), get(&self.points), get(&self.rows))
    }
}

/// What a run of `level` is used for while it lives; the default where no read was seen.
///
/// Of `rows` rows that were written, `buffer_rows` make a run; one of the first level lives until
/// there are `level_ratio` of them, and each level lives so many times longer. A scan looks at each
/// row, a read by key at one of a run.
///
/// # Source
/// The choice by level and workload that "Compression: CPU vs. Memory Tradeoff" leaves to further
/// work (section 6).
pub(crate) fn uses(
    (scans, points, rows): (u64, u64, u64),
    buffer_rows: f64,
    level_ratio: f64,
    level: u32,
) -> Uses {
    if scans + points == 0 {
        return Uses::default();
    }
    let runs = (rows as f64 / buffer_rows).max(1.0);
    let life = level_ratio.powi(level.min(9) as i32 + 1) / runs;
    let gathers = points as f64 / buffer_rows.max(1.0);
    let reads = scans as f64 + gathers;
    let least = match level {
        0 => READS_LEAST,
        _ => READS_DEEP,
    };
    Uses {
        compare: scans as f64 / reads,
        fold: scans as f64 / reads,
        gather: gathers / reads,
        decode: 0.0,
        reads: (reads * life).clamp(least, READS_MOST),
        keyed: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_a_level_is_read_while_it_lives_the_more_its_reads_count() {
        let of = |seen, level| uses(seen, 1e6, 10.0, level);
        assert_eq!(of((0, 0, 1_000_000_000), 0), Uses::default());
        // A thousand runs were written and ten scans seen: a run of level 0 lives for ten others.
        let few = (10, 0, 1_000_000_000);
        assert_eq!(of(few, 0).reads, READS_LEAST);
        assert_eq!(of(few, 1).reads, READS_DEEP);
        assert_eq!(of(few, 3).reads, 100.0);
        assert_eq!(of((100_000, 0, 1_000_000_000), 0).reads, 1_000.0);
        let by_key = of((0, 5_000, 1_000_000), 1);
        assert_eq!((by_key.compare, by_key.gather), (0.0, 1.0));
        let mixed = of((3, 1_000_000, 1_000_000), 1);
        assert_eq!((mixed.compare, mixed.gather), (0.75, 0.25));
    }
}
