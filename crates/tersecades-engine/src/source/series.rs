//! Numbers or times at equal steps as a table of one column, made as they are read.
//!
//! ```text
//! 1 to 10, step 4                                  ─▶ 1 5 9
//! 2024-01-31 to 2024-04-30, step a month           ─▶ 2024-01-31 2024-02-29 2024-03-29 2024-04-29
//! ```
//! Each value is the one before and a step, so that a month after the end of a long month stays on
//! the last day of a short one, as in PostgreSQL and DuckDB.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use chrono::{Months, NaiveDate, TimeDelta};
use tersecades_columnar::error::{Error, Result};

use super::table::Table;
use super::{BATCH_ROWS_DEFAULT, Rejected, Source};
use crate::runtime::ingest::Origin;

/// What one value is further than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeriesStep {
    /// Months of the calendar, of times.
    pub months: i64,
    /// Units of the column.
    pub units: i64,
}

/// From where to where, by which steps.
#[derive(Debug, Clone, Copy)]
struct Series {
    first: i64,
    last: i64,
    includes_last: bool,
    step: SeriesStep,
    units_per_day: i64,
}

impl Series {
    /// `value`, where it is not beyond the last one.
    fn within(&self, value: i64) -> Option<i64> {
        let is_down = self.step.months < 0 || self.step.units < 0;
        let is_before = if is_down {
            value > self.last
        } else {
            value < self.last
        };
        (is_before || self.includes_last && value == self.last).then_some(value)
    }

    /// The value behind `value`; `None` where there is none, or no time so far off.
    fn after(&self, value: i64) -> Option<i64> {
        let SeriesStep { months, units } = self.step;
        let moved = match months {
            0 => value,
            months => {
                let day = value.div_euclid(self.units_per_day);
                let moved = plus_months(day, months)?.checked_mul(self.units_per_day)?;
                moved.checked_add(value.rem_euclid(self.units_per_day))?
            }
        };
        moved.checked_add(units).and_then(|next| self.within(next))
    }
}

/// The day `months` behind `day`, both counted from 1970-01-01.
fn plus_months(day: i64, months: i64) -> Option<i64> {
    let epoch = NaiveDate::default();
    let date = epoch.checked_add_signed(TimeDelta::try_days(day)?)?;
    let by = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    let moved = match months < 0 {
        true => date.checked_sub_months(by)?,
        false => date.checked_add_months(by)?,
    };
    Some(moved.signed_duration_since(epoch).num_days())
}

/// A table of the values of a series.
#[derive(Debug)]
pub struct SeriesTable {
    schema: SchemaRef,
    series: Series,
}

impl SeriesTable {
    /// Values from the first of `ends` on, up to the second, which is among them where
    /// `includes_last`, as the column `name` of `data_type`, integers of 64 bits or timestamps.
    ///
    /// # Errors
    /// `InvalidArgument` for a step of nothing or in both directions, `Unsupported` for other types
    /// and for months of zones whose clocks change.
    ///
    /// # Examples
    /// ```
    /// use arrow_schema::DataType;
    /// use tersecades_engine::source::series::{SeriesStep, SeriesTable};
    /// use tersecades_engine::stream::Stream;
    /// let step = SeriesStep { units: 4, ..SeriesStep::default() };
    /// let table = SeriesTable::new("n", DataType::Int64, (1, 10), step, true)?;
    /// let first = Stream::from_table(table).run()?.next().unwrap()?;
    /// assert_eq!(first.num_rows(), 3);
    /// # Ok::<(), tersecades_columnar::error::Error>(())
    /// ```
    pub fn new(
        name: &str,
        data_type: DataType,
        ends: (i64, i64),
        step: SeriesStep,
        includes_last: bool,
    ) -> Result<Self> {
        let units_per_day = match &data_type {
            DataType::Int64 if step.months == 0 => 1,
            DataType::Timestamp(unit, zone) if is_utc(zone.as_deref()) => {
                86_400 * units_per_second(*unit)
            }
            other => {
                let message = format!("a series of {other} with steps of {} months", step.months);
                return Err(Error::unsupported(message)
                    .hint("use 64-bit integers, or times of UTC or without a zone"));
            }
        };
        if step == SeriesStep::default() {
            return Err(Error::invalid("the step of a series is zero")
                .hint("give one above zero, or below it to count down"));
        }
        if step.months.signum() * step.units.signum() < 0 {
            return Err(
                Error::invalid("the step of a series goes in both directions")
                    .hint("use months and shorter lengths of one sign"),
            );
        }
        let series = Series {
            first: ends.0,
            last: ends.1,
            includes_last,
            step,
            units_per_day,
        };
        let field = Field::new(name, data_type, false);
        Ok(SeriesTable {
            schema: Arc::new(Schema::new(vec![field])),
            series,
        })
    }
}

fn is_utc(zone: Option<&str>) -> bool {
    zone.is_none_or(|zone| matches!(zone, "UTC" | "Z" | "+00:00"))
}

fn units_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

impl Table for SeriesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn may_reject(&self) -> bool {
        false
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        Ok(Origin::Source(Box::new(SeriesSource {
            schema: Arc::clone(&self.schema),
            series: self.series,
            next: self.series.within(self.series.first),
            rejected: Rejected::default(),
        })))
    }
}

struct SeriesSource {
    schema: SchemaRef,
    series: Series,
    next: Option<i64>,
    rejected: Rejected,
}

impl Source for SeriesSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut values = Vec::new();
        while let Some(value) = self.next.filter(|_| values.len() < BATCH_ROWS_DEFAULT) {
            values.push(value);
            self.next = self.series.after(value);
        }
        if values.is_empty() {
            return Ok(None);
        }
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        let values = cast(&values, self.schema.field(0).data_type())?;
        Ok(Some(RecordBatch::try_new(self.schema(), vec![values])?))
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use proptest::prelude::*;

    use super::*;
    use crate::stream::Stream;

    fn values(data_type: DataType, ends: (i64, i64), step: SeriesStep, last: bool) -> Vec<i64> {
        let table = SeriesTable::new("n", data_type, ends, step, last).unwrap();
        let batches = Stream::from_table(table).run().unwrap();
        let column = batches.flat_map(|batch| {
            let column = cast(batch.unwrap().column(0), &DataType::Int64).unwrap();
            column.as_primitive::<Int64Type>().values().to_vec()
        });
        column.collect()
    }

    proptest! {
        #[test]
        fn integers_are_those_of_the_standard_library(
            first in -50i64..50, last in -50i64..50, step in 1i64..9, down: bool, with_last: bool,
        ) {
            let units = if down { -step } else { step };
            let step = step as usize;
            let wanted: Vec<i64> = match (down, with_last) {
                (false, true) => (first..=last).step_by(step).collect(),
                (false, false) => (first..last).step_by(step).collect(),
                (true, true) => (last..=first).rev().step_by(step).collect(),
                (true, false) => (last + 1..=first).rev().step_by(step).collect(),
            };
            let step = SeriesStep { months: 0, units };
            prop_assert_eq!(values(DataType::Int64, (first, last), step, with_last), wanted);
        }
    }

    #[test]
    fn series_end_with_their_type_and_are_made_batch_by_batch() {
        let step = SeriesStep {
            months: 0,
            units: 2,
        };
        let ends = (i64::MAX - 3, i64::MAX);
        let found = values(DataType::Int64, ends, step, true);
        assert_eq!(found, [i64::MAX - 3, i64::MAX - 1]);
        let table = SeriesTable::new("n", DataType::Int64, (0, i64::MAX), step, true).unwrap();
        let first = Stream::from_table(table).limit(3, 0).run().unwrap().next();
        assert_eq!(first.unwrap().unwrap().num_rows(), 3);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let day = |text: &str| {
            let date: NaiveDate = text.parse().unwrap();
            date.signed_duration_since(NaiveDate::default()).num_days() * 86_400
        };
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let month = |months| SeriesStep { months, units: 0 };
        let ends = (day("2024-01-31"), day("2024-04-29"));
        let found = values(seconds.clone(), ends, month(1), true);
        let wanted = ["2024-01-31", "2024-02-29", "2024-03-29", "2024-04-29"].map(day);
        assert_eq!(found, wanted);
        let ends = (day("2024-03-31") + 7, day("2023-12-01"));
        let found = values(seconds, ends, month(-1), true);
        let wanted = ["2024-03-31", "2024-02-29", "2024-01-29", "2023-12-29"];
        assert_eq!(found, wanted.map(|date| day(date) + 7));
    }

    #[test]
    fn steps_that_lead_nowhere_are_refused() {
        let table = |data_type, months, units| {
            let step = SeriesStep { months, units };
            SeriesTable::new("n", data_type, (0, 9), step, true)
                .map(|_| ())
                .unwrap_err()
        };
        assert!(table(DataType::Int64, 0, 0).message().contains("zero"));
        let times =
            |zone: Option<&str>| DataType::Timestamp(TimeUnit::Second, zone.map(Into::into));
        assert!(table(times(None), 1, -5).message().contains("both"));
        assert!(
            table(times(Some("Europe/Berlin")), 1, 0)
                .hint_text()
                .unwrap()
                .contains("UTC")
        );
        assert!(table(DataType::Int64, 1, 0).hint_text().is_some());
    }
}
