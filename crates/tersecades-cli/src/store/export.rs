//! `store export`: rows of a store as a file.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tersecades::Error;
use tersecades::arrow_array::{ArrayRef, TimestampSecondArray};
use tersecades::arrow_schema::{DataType, Field, TimeUnit};
use tersecades::engine::expression::cast_time;
use tersecades::engine::sink::{self, SinkOptions, conform};
use tersecades::engine::source::csv::timestamp::parse_iso;
use tersecades::store::{Scan, Snapshot, Store};

use crate::console;
use crate::figure;
use crate::outcome::Outcome;

/// Write rows to a Parquet, Arrow, CSV or JSON file
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Folder of the store
    dir: PathBuf,

    /// The file, its format told by its suffix
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Rows from this time on: a date, a time as 2018-07-11T00:00:00Z, or units of the time column
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    from: Option<String>,

    /// Rows before this time
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    until: Option<String>,

    /// Rows of the runs of this level, without those that only the log holds
    #[arg(long)]
    level: Option<u32>,
}

/// Scans and writes.
pub(crate) fn run(arguments: &ExportArguments) -> Outcome {
    let store = Store::open_read_only(&arguments.dir)?;
    let schema = store.schema();
    let mut scan = Scan {
        level: arguments.level,
        ..Scan::default()
    };
    if arguments.from.is_some() || arguments.until.is_some() {
        let time = schema
            .time_column()
            .ok_or_else(|| Error::invalid("the store has no time column to choose rows by"))?;
        let time = schema.fields().field(time);
        let read = |text: &Option<String>, option| {
            let text = text.as_deref();
            text.map(|text| ticks_of(text, option, time)).transpose()
        };
        let from = read(&arguments.from, "--from")?;
        let until = read(&arguments.until, "--until")?;
        let (first, last) = match (from, until.map(|at| at.checked_sub(1))) {
            (from, None) => (from.unwrap_or(i64::MIN), i64::MAX),
            (from, Some(Some(last))) => (from.unwrap_or(i64::MIN), last),
            // There is no time before the first.
            (_, Some(None)) => (i64::MAX, i64::MIN),
        };
        scan = scan.between(time.name(), first, last);
    }
    let snapshot = store.snapshot();
    if let Some(level) = arguments.level {
        check_level(&snapshot, level)?;
    }
    let scan = snapshot.scan(&scan)?;
    let fields = schema.fields();
    let mut sink = sink::create(&arguments.output, fields, &SinkOptions::by_processor())?;
    let mut rows = 0;
    for found in scan {
        // As plain text, since codes bring the texts of rows that are not here along.
        let batch = conform(found?.to_arrow()?, fields)?;
        rows += batch.num_rows() as u64;
        sink.write(&batch)?;
    }
    sink.finish()?;
    console::say(format_args!("{} rows written", figure::grouped(rows)));
    Ok(())
}

/// The first unit of the column `time` that is not before the time that `text` names.
///
/// Times without an offset are of the zone of the column, or of UTC where it has none.
fn ticks_of(text: &str, option: &str, time: &Field) -> tersecades::Result<i64> {
    let text = text.trim();
    if let Ok(ticks) = text.parse() {
        return Ok(ticks);
    }
    let wrong = |what: &str| Error::invalid(format!("`{text}` of {option} {what}"));
    let DataType::Timestamp(unit, zone) = time.data_type() else {
        return Err(wrong("is no whole number")
            .column(time.name())
            .hint("the time column holds whole numbers: write one of them"));
    };
    let moment = parse_iso(text).ok_or_else(|| {
        let units = match unit {
            TimeUnit::Second => "seconds",
            TimeUnit::Millisecond => "milliseconds",
            TimeUnit::Microsecond => "microseconds",
            TimeUnit::Nanosecond => "nanoseconds",
        };
        wrong("is no time").column(time.name()).hint(format!(
            "write 2018-07-11, '2018-07-11 00:00:00', 2018-07-11T00:00:00Z or {units} since 1970"
        ))
    })?;
    let mut seconds = moment.seconds;
    if let Some(zone) = zone.as_ref().filter(|_| !moment.zoned) {
        let local: ArrayRef = Arc::new(TimestampSecondArray::from(vec![seconds]));
        let instant = cast_time(
            &local,
            &DataType::Timestamp(TimeUnit::Second, Some(zone.clone())),
        );
        let instant = instant.map_err(|error| wrong(&error.to_string()).column(time.name()))?;
        let instant = instant.as_any().downcast_ref::<TimestampSecondArray>();
        seconds = instant.map_or(seconds, |instant| instant.value(0));
    }
    let nanoseconds_per_unit = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let units = i128::from(seconds) * i128::from(1_000_000_000 / nanoseconds_per_unit)
        + i128::from(moment.nanoseconds.div_ceil(nanoseconds_per_unit));
    i64::try_from(units)
        .map_err(|_| wrong("is further off than the time column reaches").column(time.name()))
}

/// Refuses a level that has no runs.
fn check_level(snapshot: &Snapshot, level: u32) -> Outcome {
    let levels = snapshot.stats(false)?.levels;
    let levels: Vec<String> = levels.iter().map(|it| it.level.to_string()).collect();
    match levels.contains(&level.to_string()) {
        true => Ok(()),
        false => {
            let error = Error::invalid(format!("no run is of level {level}"));
            Err(error
                .hint(format!("runs are of the levels: {}", levels.join(", ")))
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(text: &str, data_type: DataType) -> tersecades::Result<i64> {
        ticks_of(text, "--from", &Field::new("ts", data_type, true))
    }

    fn time(unit: TimeUnit, zone: Option<&str>) -> DataType {
        DataType::Timestamp(unit, zone.map(Into::into))
    }

    #[test]
    fn times_are_read_in_the_units_and_the_zone_of_the_column() {
        let millis = || time(TimeUnit::Millisecond, None);
        for text in [
            "1970-01-02",
            "1970-01-02 00:00:00",
            "1970-01-02T02:00:00+02:00",
        ] {
            assert_eq!(ticks(text, millis()).unwrap(), 86_400_000);
        }
        assert_eq!(ticks("-5", millis()).unwrap(), -5);
        assert_eq!(ticks(" 1970-01-01T00:00:00.0015Z", millis()).unwrap(), 2);
        assert_eq!(ticks("1969-12-31 23:59:59.9995", millis()).unwrap(), 0);
        let berlin = || time(TimeUnit::Second, Some("Europe/Berlin"));
        assert_eq!(ticks("1970-01-01 01:00", berlin()).unwrap(), 0);
        assert_eq!(ticks("1970-01-01 01:00Z", berlin()).unwrap(), 3_600);
        let nanos = time(TimeUnit::Nanosecond, Some("UTC"));
        assert_eq!(
            ticks("1970-01-01 00:00:00.000000001", nanos.clone()).unwrap(),
            1
        );
        let error = ticks("2300-01-01", nanos).unwrap_err();
        assert!(error.message().contains("further off"), "{error}");
        let error = ticks("1970-01-01", DataType::Int64).unwrap_err();
        assert!(
            error.message().contains("of --from is no whole number"),
            "{error}"
        );
        assert_eq!(ticks("7", DataType::Int64).unwrap(), 7);
    }
}
