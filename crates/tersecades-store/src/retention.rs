//! Which rows are old enough to go.

use arrow_array::{Array as _, ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::stats::Stats;

use crate::run::{Group, Run};

/// The bit that turns a signed value into its key.
const FLIP: u64 = 1 << 63;

/// A time before which rows are gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Floor {
    /// The time column and the least time that is kept.
    limit: Option<(String, i64)>,
}

/// The time behind a key of a statistic.
pub(crate) fn time_of(key: u64) -> i64 {
    (key ^ FLIP).cast_signed()
}

impl Floor {
    /// Keeps the rows whose `column` is at least `limit`, if there is one.
    pub(crate) fn new(column: Option<&str>, limit: Option<i64>) -> Self {
        Floor {
            limit: column.map(str::to_owned).zip(limit),
        }
    }

    /// The time column and the least time that is kept.
    pub(crate) fn limit(&self) -> Option<(&str, i64)> {
        self.limit
            .as_ref()
            .map(|(name, limit)| (name.as_str(), *limit))
    }

    fn stats(&self, run: &Run, group: &Group) -> Option<(Stats, u32, i64)> {
        let (name, limit) = self.limit.as_ref()?;
        let chunk = &group.chunks[run.fields().index_of(name).ok()?];
        chunk
            .stats
            .known
            .then_some((chunk.stats, chunk.nulls, *limit))
    }

    /// Whether no row of a group is left; rows without a time stay.
    pub(crate) fn drops(&self, run: &Run, group: &Group) -> bool {
        self.stats(run, group)
            .is_some_and(|(stats, nulls, limit)| nulls == 0 && time_of(stats.max) < limit)
    }

    /// Whether a row of a group is gone.
    pub(crate) fn cuts(&self, run: &Run, group: &Group) -> bool {
        self.stats(run, group)
            .is_some_and(|(stats, _, limit)| time_of(stats.min) < limit)
    }

    /// The rows that are left.
    ///
    /// # Errors
    /// What filtering says.
    pub(crate) fn apply(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let Some((name, limit)) = &self.limit else {
            return Ok(rows);
        };
        let Some(times) = rows.column_by_name(name) else {
            return Ok(rows);
        };
        let times = cast(times, &DataType::Int64)?;
        let kept = at_least(&times, *limit);
        match kept.true_count() == rows.num_rows() {
            true => Ok(rows),
            false => Ok(arrow_select::filter::filter_record_batch(&rows, &kept)?),
        }
    }
}

fn at_least(times: &ArrayRef, limit: i64) -> BooleanArray {
    let times = Int64Array::from(times.to_data());
    times
        .iter()
        .map(|time| Some(time.is_none_or(|time| time >= limit)))
        .collect()
}
