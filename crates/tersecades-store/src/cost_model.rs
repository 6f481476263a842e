//! What reads and writes cost, from the shape of the tree and what one group costs.
//!
//! # Source
//! Compression: CPU vs. Memory Tradeoff (`lsm-compression-tradeoff`), section 2, tables 3 and 4;
//! completed by filters, leveled trees and write amplification.

use crate::option::Layout;

/// What coding and moving data costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitCosts {
    /// Bytes of a page, the unit of movement.
    pub page_bytes: f64,
    /// Nanoseconds to move a page.
    pub page_ns: f64,
    /// Nanoseconds to encode or decode a row.
    pub row_ns: f64,
}

impl UnitCosts {
    /// `C` and `D` of the paper: coding `rows` rows of `raw_bytes` that become `ratio` of that, and
    /// moving them.
    ///
    /// # Examples
    /// 2,047 pairs of 8 bytes at a quarter of their size are moved as one page, the optimum that
    /// the paper finds; a few more take two.
    /// ```
    /// use tersecades_store::UnitCosts;
    /// let costs = UnitCosts { page_bytes: 4096.0, page_ns: 1.0, row_ns: 0.0 };
    /// assert_eq!(costs.coding_ns(2_047.0, 2_047.0 * 8.0, 0.25), 1.0);
    /// assert_eq!(costs.coding_ns(2_048.0, 2_048.0 * 8.0, 0.25), 2.0);
    /// ```
    pub fn coding_ns(&self, rows: f64, raw_bytes: f64, ratio: f64) -> f64 {
        let pages = (ratio * raw_bytes / self.page_bytes).floor() + 1.0;
        rows * self.row_ns + pages * self.page_ns
    }
}

/// A tree as the model sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeShape {
    /// Rows in all.
    pub rows: f64,
    /// Rows of memory before they become a run.
    pub buffer_rows: f64,
    /// Runs of a level that become one.
    pub level_ratio: f64,
    /// How runs are merged.
    pub layout: Layout,
}

impl TreeShape {
    /// Parts of the size of the buffer that are looked at until a key is found, `phi` of the paper:
    /// with `selectivity` 1 the first has it, with 0 all are looked at.
    pub fn parts_read(&self, selectivity: f64) -> f64 {
        (1.0 - selectivity) * (self.rows / self.buffer_rows).floor() + 1.0
    }

    /// A point read without fences and filters: `PQ` of the paper.
    pub fn point_read_ns(&self, part_ns: f64, selectivity: f64) -> f64 {
        part_ns * self.parts_read(selectivity)
    }

    /// A read of `keys` keys: `RQ` of the paper, in which no part is read twice.
    pub fn range_read_ns(&self, keys: f64, part_ns: f64, selectivity: f64) -> f64 {
        let parts = keys * self.parts_read(selectivity);
        part_ns * parts.min((self.rows / self.buffer_rows).floor() + 1.0)
    }

    /// Levels below memory.
    pub fn levels(&self) -> f64 {
        let parts = (self.rows / self.buffer_rows).max(1.0);
        (parts.ln() / self.level_ratio.ln()).ceil().max(1.0)
    }

    /// Times that a row is written to a run.
    pub fn write_amplification(&self) -> f64 {
        match self.layout {
            Layout::Tiered => self.levels(),
            // On its way through a level a row is merged into it, and half of the merges of the
            // level that follow write it again.
            Layout::Leveled => 1.0 + (self.levels() - 1.0) * (self.level_ratio + 1.0) / 2.0,
        }
    }
}

/// Runs that a point read of a key in one of `runs` opens, when a filter of `bits` per key lets few
/// others pass.
pub fn runs_opened(runs: f64, bits: f64) -> f64 {
    let passes = match bits > 0.0 {
        // A filter with the best number of hashes lets 0.6185^bits pass.
        true => 0.6185_f64.powf(bits),
        false => 1.0,
    };
    1.0 + (runs - 1.0).max(0.0) * passes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: TreeShape = TreeShape {
        rows: 10_000_000.0,
        buffer_rows: 2_048.0,
        level_ratio: 10.0,
        layout: Layout::Tiered,
    };

    #[test]
    fn the_functions_of_the_paper_are_reproduced() {
        // phi: between one part and all of them.
        assert_eq!(TREE.parts_read(1.0), 1.0);
        assert_eq!(TREE.parts_read(0.0), 4_882.0 + 1.0);
        // A range read costs as much as its point reads, but never more than everything.
        let point = TREE.point_read_ns(7.0, 0.999);
        assert_eq!(TREE.range_read_ns(1.0, 7.0, 0.999), point);
        assert_eq!(TREE.range_read_ns(1e9, 7.0, 0.0), 7.0 * 4_883.0);
    }

    #[test]
    fn the_best_buffer_is_the_one_that_fills_a_page() {
        // Rows at a quarter of 8 bytes: reading a part moves whole pages, so that time per row is
        // least where a part just fills one.
        let costs = UnitCosts {
            page_bytes: 4_096.0,
            page_ns: 4_000.0,
            row_ns: 2.0,
        };
        let point = |pairs: f64| costs.coding_ns(pairs, pairs * 8.0, 0.25);
        let load_of_row = |pairs: f64| point(pairs) / pairs;
        let best = [256.0, 512.0, 1_024.0, 2_047.0]
            .into_iter()
            .min_by(|a, b| load_of_row(*a).total_cmp(&load_of_row(*b)));
        assert_eq!(best, Some(2_047.0));
        assert!(point(2_047.0) < point(2_100.0), "one page more");
    }

    #[test]
    fn deeper_trees_write_more_and_filters_open_fewer_runs() {
        assert_eq!(TREE.levels(), 4.0);
        assert_eq!(TREE.write_amplification(), 4.0);
        let leveled = TreeShape {
            layout: Layout::Leveled,
            ..TREE
        };
        assert_eq!(leveled.write_amplification(), 1.0 + 3.0 * 5.5);
        assert_eq!(runs_opened(10.0, 0.0), 10.0);
        assert!((runs_opened(10.0, 10.0) - 1.074).abs() < 0.01);
    }
}
