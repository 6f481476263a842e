//! What lies between which ends: the zone maps of a snapshot, for who looks for the first rows of
//! an order.

use tersecades_columnar::stats::Stats;
use tersecades_columnar::types::Physical;

use crate::version::Snapshot;

/// Rows that lie together, and two numbers that all of their values of a column lie between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// How many rows there are.
    pub rows: u64,
    /// No value is less.
    pub low: i128,
    /// No value is greater.
    pub high: i128,
}

impl Snapshot {
    /// The parts that all rows lie in, by the ends of `column`, whole numbers or times.
    ///
    /// `None` where a part does not know them or has nulls, and where other columns decide which
    /// rows are there: a primary key, or the age of rows.
    pub fn ends_of(&self, column: &str) -> Option<Vec<Ends>> {
        let schema = self.schema();
        let field = schema.fields().field_with_name(column).ok()?;
        let physical = Physical::of(field.data_type()).ok()?;
        if schema.is_primary() || !matches!(physical, Physical::Integer { .. }) {
            return None;
        }
        self.version.check(|_| true).ok()?;
        let floor = self.version.floor();
        let gone_below = match floor.limit() {
            Some((time, limit)) if time == column => i128::from(limit),
            Some(_) => return None,
            None => i128::MIN,
        };
        let ends = |rows: u64, nulls: u64, stats: Stats| {
            let (low, high) = (physical.value_of(stats.min), physical.value_of(stats.max));
            // Of a part that reaches below the limit nobody knows how many rows are left.
            let rows = if low < gone_below { 0 } else { rows };
            (stats.known && nulls == 0).then_some(Ends { rows, low, high })
        };
        let mut parts = Vec::new();
        for run in &self.version.runs {
            let index = run.fields().index_of(column).ok()?;
            for group in run.groups() {
                let chunk = group.chunks[index];
                let (rows, nulls) = (u64::from(group.rows), u64::from(chunk.nulls));
                parts.push(ends(rows, nulls, chunk.stats)?);
            }
        }
        for batch in self.memory.iter().filter(|batch| batch.rows() > 0) {
            let chunk = batch.column(batch.schema().index_of(column).ok()?);
            parts.push(ends(
                batch.rows() as u64,
                chunk.nulls() as u64,
                chunk.stats(),
            )?);
        }
        Some(parts)
    }
}
