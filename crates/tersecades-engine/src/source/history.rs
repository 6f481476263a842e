//! A store's rows as a table: encoded chunks enter queries as they lie on disk.

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::{DataType, SchemaRef, TimeUnit};
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};
use tersecades_store::{Scan, Scanned, Snapshot};

use crate::runtime::ingest::{EncodedSource, Origin};
use crate::runtime::option::RunOptions;

use super::passing::Passing;
use super::table::Table;

/// A snapshot of a store, read again by every query.
#[derive(Debug)]
pub struct HistoryTable {
    snapshot: Snapshot,
}

impl HistoryTable {
    /// The rows of `snapshot`.
    pub fn new(snapshot: Snapshot) -> Self {
        HistoryTable { snapshot }
    }

    /// The time column, and how late its rows come: groups of rows are read in the order of their
    /// earliest times.
    ///
    /// # Errors
    /// `Unsupported` for a store with a primary key, whose rows come in the order of their keys.
    pub fn event_time(&self) -> Result<Option<(String, Duration)>> {
        let schema = self.snapshot.schema();
        let Some(time) = schema.time_column() else {
            return Ok(None);
        };
        let field = schema.fields().field(time);
        if schema.is_primary() {
            return Err(
                Error::unsupported("rows come in the order of their primary key")
                    .column(field.name().as_str()),
            );
        }
        let ticks = self.snapshot.lateness()?.max(0).cast_unsigned();
        let lateness = match field.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => Duration::from_secs(ticks),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Duration::from_micros(ticks),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Duration::from_nanos(ticks),
            _ => Duration::from_millis(ticks),
        };
        Ok(Some((field.name().clone(), lateness)))
    }
}

impl Table for HistoryTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.snapshot.schema().fields())
    }

    fn ends(&self) -> bool {
        true
    }

    fn begins_again(&self) -> bool {
        false
    }

    fn may_reject(&self) -> bool {
        false
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_passing(columns, &RunOptions::default(), &Passing::default())
    }

    fn open_passing(
        &self,
        columns: Option<&[String]>,
        _options: &RunOptions,
        passing: &Passing,
    ) -> Result<Origin> {
        let passing = passing.within(|column| self.snapshot.ends_of(column));
        let scan = Scan {
            passing: passing.predicates(),
            ..Scan::default().some_columns(self.snapshot.schema(), columns)
        };
        let rows = self.snapshot.scan(&scan)?;
        let schema = rows.schema()?;
        Ok(Origin::Encoded(Box::new(rows), schema))
    }
}

impl EncodedSource for Scanned {
    fn next_batch(&mut self) -> Result<Option<Arc<Batch>>> {
        match self.next() {
            Some(found) => found?.into_batch().map(Some),
            None => Ok(None),
        }
    }

    fn rows_hint(&self) -> Option<u64> {
        Scanned::rows_hint(self)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use tersecades_store::{Store, StoreOptions, StoreSchema};

    use super::*;
    use crate::aggregate::count;
    use crate::expression::{col, lit};
    use crate::stream::Stream;
    use crate::window::tumble;

    /// Rows of three keys, in the order of their times, by a store that sorts by the key.
    fn history() -> (tempfile::TempDir, HistoryTable) {
        let folder = tempfile::tempdir().unwrap();
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..10_000).map(|n| n % 3)));
        let rows = RecordBatch::try_from_iter([("k", keys), ("ts", times)]).unwrap();
        let schema = StoreSchema::new(&rows.schema()).unwrap();
        let schema = schema.key(&["k"]).unwrap().time("ts").unwrap();
        let options = StoreOptions {
            buffer_rows: 3_000,
            chunk_rows: 512,
            ..StoreOptions::default()
        };
        let store = Store::create(folder.path(), schema, options).unwrap();
        let mut writer = store.writer().unwrap();
        for start in (0..10_000).step_by(1_000) {
            writer.append(&rows.slice(start, 1_000)).unwrap();
        }
        let table = HistoryTable::new(store.snapshot());
        (folder, table)
    }

    #[test]
    fn windows_over_history_miss_no_row() {
        let (_folder, table) = history();
        let (time, lateness) = table.event_time().unwrap().unwrap();
        let windows = Stream::from_table(table)
            .event_time(col(&time), lateness)
            .filter(col("k").not_eq(lit(1)))
            .window(tumble(Duration::from_millis(600)))
            .group_by(["k"])
            .aggregate([count().alias("n")])
            .run()
            .unwrap();
        let mut rows = 0;
        for batch in windows {
            let batch = batch.unwrap();
            let counts = batch
                .column_by_name("n")
                .unwrap()
                .as_primitive::<Int64Type>();
            rows += counts.values().iter().sum::<i64>();
        }
        assert_eq!(rows, 10_000 - 3_333);
    }

    #[test]
    fn groups_without_wanted_times_are_not_read() {
        let (_folder, table) = history();
        let counted = |condition| {
            let table = HistoryTable::new(table.snapshot.clone());
            let mut run = Stream::from_table(table)
                .filter(condition)
                .aggregate([count().alias("n")])
                .run()
                .unwrap();
            let rows = run.next().unwrap().unwrap();
            let found = rows.column(0).as_primitive::<Int64Type>().value(0);
            (found, run.metrics().rows)
        };
        let late = || col("ts").gt_eq(lit(9_500)).and(col("ts").lt(lit(9_600)));
        let (found, read) = counted(late());
        assert_eq!(found, 100);
        assert_eq!(read, 1_000, "those in memory");
        // Zone maps of what computes are not there.
        let (found, read) = counted((col("ts") + lit(1)).gt(lit(9_900)));
        assert_eq!((found, read), (100, 10_000));
        let (found, read) = counted(col("ts").lt(lit(0)).or(col("k").eq(lit(1))));
        assert_eq!((found, read), (3_333, 10_000));
        let (found, read) = counted(col("k").eq(lit(1)).and(late()));
        assert_eq!(found, 33);
        assert_eq!(read, 1_000, "those in memory");
        let (found, read) = counted(col("k").eq(lit(1)));
        assert_eq!(found, 3_333);
        assert!(read <= 1_000 + 3 * 3 * 512, "{read} rows read");
    }
}
