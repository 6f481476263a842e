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
    /// Keeps the rows whose `column` is at least `limit`, if there is one and a time before it.
    pub(crate) fn new(column: Option<&str>, limit: Option<i64>) -> Self {
        let limit = limit.filter(|limit| *limit > i64::MIN);
        Floor {
            limit: column.map(str::to_owned).zip(limit),
        }
    }

    /// The time column and the least time that is kept, before which there are others.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use arrow_array::TimestampMillisecondArray;
    use tersecades_columnar::types::Value;

    use crate::{Scan, Store, StoreOptions, StoreSchema};

    use super::*;

    /// A store that keeps rows for `keep_time`, with a run of these.
    fn store(times: ArrayRef, keep_time: i64) -> (tempfile::TempDir, Store) {
        let rows = RecordBatch::try_from_iter([("ts", times)]).unwrap();
        let schema = StoreSchema::new(&rows.schema()).unwrap();
        let options = StoreOptions {
            keep_time: Some(keep_time),
            ..StoreOptions::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let schema = schema.time("ts").unwrap();
        let store = Store::create(folder.path(), schema, options).unwrap();
        store.writer().unwrap().append(&rows).unwrap();
        store.flush().unwrap();
        (folder, store)
    }

    fn rows(store: &Store) -> usize {
        let found = store.snapshot().scan(&Scan::default()).unwrap();
        found.map(|found| found.unwrap().rows()).sum()
    }

    #[test]
    fn what_is_kept_for_ever_keeps_the_least_time() {
        let times: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN, -5]));
        let (_folder, store) = store(times, i64::MAX);
        assert_eq!(rows(&store), 2);
        let mut reader = store.snapshot().point_reader(&["ts"]).unwrap();
        let least = Value::Integer(i64::MIN.into());
        assert_eq!(reader.find(&[least]).unwrap().len(), 1);
    }

    #[test]
    fn a_row_of_the_far_future_lets_no_others_go() {
        const DAY: i64 = 24 * 60 * 60 * 1_000;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap().as_millis() as i64;
        let times = [now - 9 * DAY, now - DAY, now + 365 * DAY];
        let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(times.to_vec()));
        let (_folder, store) = store(times, 7 * DAY);
        assert_eq!(rows(&store), 2, "what is older than that against the clock");
        let floor = store.snapshot().version.catalog.floor.unwrap();
        let late = Duration::from_secs(60).as_millis() as i64;
        assert!((now - 7 * DAY - late..=now - 7 * DAY + late).contains(&floor));
    }
}
