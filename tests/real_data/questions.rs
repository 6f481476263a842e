//! What is asked of each data set.

use arrow_schema::{DataType, TimeUnit};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col, lit};

use crate::question::{Question, Time};

const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;

/// Questions over [`crate::data_set::RIPE_ATLAS`].
pub(crate) fn ripe_atlas() -> Vec<Question> {
    let epoch = || Time {
        expression: col("epoch"),
        unit: TimeUnit::Millisecond,
        sql: "epoch_us(epoch)",
        ticks_per_second: 1_000_000,
    };
    let seconds = Time {
        expression: col("epoch").cast(DataType::Int64) / 1_000_000,
        unit: TimeUnit::Second,
        sql: "epoch_us(epoch) // 1000000",
        ticks_per_second: 1,
    };
    vec![
        Question::new("hour_by_probe", epoch(), HOUR, HOUR)
            .filter(col("rtt").gt(0), "rtt > 0")
            .by(&["probe_id"])
            .ask(count(), "count(*)")
            .ask(call("mean", col("rtt")), "favg(rtt)")
            .ask(call("min", col("rtt")), "min(rtt)")
            .ask(call("max", col("rtt")), "max(rtt)")
            .ask(call("stddev", col("rtt")), "stddev_samp(rtt)"),
        Question::new("errors", epoch(), 6 * HOUR, HOUR)
            .ask(count(), "count(*)")
            .ask(
                call("count_if", col("rtt").lt(0)),
                "count_if(rtt < 0)::BIGINT",
            )
            .ask(
                call("count_if", col("cp").eq(1)),
                "count_if(cp = 1)::BIGINT",
            )
            .ask(call("sum", col("cp")), "sum(cp)::BIGINT"),
        Question::new("level_changes", epoch(), DAY, DAY)
            .filter(col("rtt").between(10, 300.5), "rtt BETWEEN 10 AND 300.5")
            .by(&["cp", "probe_id"])
            .ask(count(), "count(*)")
            .ask(call("sum", col("rtt")), "fsum(rtt)")
            .ask(call("variance", col("rtt")), "var_samp(rtt)"),
        Question::new("epoch_seconds", seconds, 2 * HOUR, HOUR)
            .filter(!col("rtt").gt(0), "NOT (rtt > 0)")
            .by(&["probe_id"])
            .ask(count(), "count(*)")
            .ask(call("min", col("rtt")), "min(rtt)"),
    ]
}

/// Questions over [`crate::data_set::GITHUB`].
pub(crate) fn github() -> Vec<Question> {
    let dt = || Time {
        expression: col("dt"),
        unit: TimeUnit::Microsecond,
        sql: "epoch_us(dt)",
        ticks_per_second: 1_000_000,
    };
    vec![
        Question::new("minute_by_type", dt(), 60, 60)
            .by(&["type", "action"])
            .ask(count(), "count(*)")
            .ask(call("sum", col("commits")), "sum(commits)::BIGINT")
            .ask(call("max", col("commits")), "max(commits)"),
        Question::new("pushes_by_actor", dt(), HOUR, HOUR / 2)
            .filter(col("type").eq("push"), "type = 'push'")
            .by(&["actor"])
            .ask(count(), "count(*)")
            .ask(call("mean", col("commits")), "favg(commits)"),
    ]
}

/// Questions over [`crate::data_set::SEATTLE`], whose slices count as seconds.
pub(crate) fn seattle() -> Vec<Question> {
    let time = |expression| Time {
        expression,
        unit: TimeUnit::Second,
        sql: "slice",
        ticks_per_second: 1,
    };
    let column = || time(col("slice"));
    let computed = || {
        time(Expression::EpochTime(
            Box::new(col("slice")),
            TimeUnit::Second,
        ))
    };
    vec![
        Question::new("ten_slices_by_source", column(), 10, 10)
            .filter(
                col("rtt_s").gt(0).and(col("src").not_eq(col("dst"))),
                "rtt_s > 0 AND src <> dst",
            )
            .by(&["src"])
            .ask(count(), "count(*)")
            .ask(call("mean", col("rtt_s")), "favg(rtt_s)")
            .ask(call("max", col("rtt_s")), "max(rtt_s)"),
        Question::new("pairs", computed(), 20, 5)
            .filter(col("src").lt(12), "src < 12")
            .by(&["src", "dst"])
            .ask(count(), "count(*)")
            .ask(
                call("count_if", col("rtt_s").gt_eq(0.5)),
                "count_if(rtt_s >= 0.5)::BIGINT",
            )
            .ask(call("sum", col("rtt_s")), "fsum(rtt_s)")
            .ask(call("max", col("rtt_s")), "max(rtt_s)"),
        Question::new("all_pairs", column(), 25, 25)
            .ask(count(), "count(*)")
            .ask(call("stddev", col("rtt_s")), "stddev_samp(rtt_s)")
            .ask(call("min", col("rtt_s")), "min(rtt_s)")
            .ask(call("sum", col("dst")), "sum(dst)::BIGINT")
            .ask(call("variance", col("dst")), "var_samp(dst)"),
    ]
}

/// Questions over [`crate::data_set::AZURE`].
pub(crate) fn azure() -> Vec<Question> {
    let start = || Time {
        expression: col("starttime"),
        unit: TimeUnit::Millisecond,
        sql: "epoch_ms(starttime)",
        ticks_per_second: 1_000,
    };
    vec![
        Question::new("day_by_suite_and_unit", start(), DAY, DAY)
            .by(&["test_suite", "unit"])
            .ask(count(), "count(*)")
            .ask(call("mean", col("value")), "favg(value)")
            .ask(call("max", col("value")), "max(value)")
            .ask(call("min", col("runtime")), "min(runtime)"),
        Question::new("week_by_machine_kind", start(), 7 * DAY, DAY)
            .filter(col("runtime").gt(60), "runtime > 60")
            .by(&["vm_sku", "vm_lifespan"])
            .ask(count(), "count(*)")
            .ask(call("sum", col("runtime")), "fsum(runtime)")
            .ask(call("variance", col("runtime")), "var_samp(runtime)"),
        Question::new("cpu_by_machine", start(), 12 * HOUR, 12 * HOUR)
            .filter(
                col("test_name")
                    .eq("Test:_CPU")
                    .and(col("vm_sku").one_of(["B8ms", "none"])),
                "test_name = 'Test:_CPU' AND vm_sku = 'B8ms'",
            )
            .by(&["VM_id"])
            .ask(count(), "count(*)")
            .ask(call("mean", col("value")), "favg(value)")
            .ask(call("stddev", col("value")), "stddev_samp(value)"),
        Question::new("not_milliseconds", start(), 2 * DAY, 12 * HOUR)
            .filter(
                (!col("unit").one_of(["ms", "TPS"])).or(col("value").lt(1)),
                "unit NOT IN ('ms', 'TPS') OR value < 1",
            )
            .by(&["unit"])
            .ask(count(), "count(*)")
            .ask(
                call("count_if", col("vm_lifespan").eq("long")),
                "count_if(vm_lifespan = 'long')::BIGINT",
            )
            .ask(call("min", col("VM_id")), "min(\"VM_id\")::BIGINT"),
    ]
}

/// The hour that four columns name.
fn calendar_hour() -> Time {
    Time {
        expression: Expression::MakeTimestamp(["year", "month", "day", "hour"].map(col).to_vec()),
        unit: TimeUnit::Second,
        sql: "epoch_us(make_timestamp(year, month, day, hour, 0, 0)) // 1000000",
        ticks_per_second: 1,
    }
}

/// Local minute of the departure.
///
/// Cancelled flights have none, and 24:00 is no time: such rows are in no window.
fn departed() -> Time {
    let dep_time = || col("dep_time");
    let parts = [
        col("year"),
        col("month"),
        col("day"),
        dep_time() / 100,
        dep_time() % lit(100),
    ];
    Time {
        expression: Expression::MakeTimestamp(parts.to_vec()),
        unit: TimeUnit::Second,
        sql: "CASE WHEN dep_time < 2400 THEN epoch_us(make_timestamp(
            year, month, day, dep_time // 100, dep_time % 100, 0)) // 1000000 END",
        ticks_per_second: 1,
    }
}

/// Questions over [`crate::data_set::FLIGHTS`].
pub(crate) fn flights() -> Vec<Question> {
    let hour = Time {
        expression: col("time_hour"),
        unit: TimeUnit::Second,
        sql: "epoch_us(time_hour)",
        ticks_per_second: 1_000_000,
    };
    vec![
        Question::new("day_by_origin", calendar_hour(), DAY, DAY)
            .by(&["origin"])
            .ask(count(), "count(*)")
            .ask(call("count", col("dep_delay")), "count(dep_delay)")
            .ask(
                call("count_if", col("dep_delay").is_null()),
                "count_if(dep_delay IS NULL)::BIGINT",
            )
            .ask(call("sum", col("dep_delay")), "sum(dep_delay)::BIGINT")
            .ask(call("mean", col("arr_delay")), "avg(arr_delay)")
            .ask(call("max", col("arr_delay")), "max(arr_delay)"),
        Question::new("delayed_by_carrier", calendar_hour(), DAY, 6 * HOUR)
            .filter(
                (!col("dep_delay").is_null()).and(col("dep_delay").gt(15)),
                "dep_delay IS NOT NULL AND dep_delay > 15",
            )
            .by(&["carrier"])
            .ask(count(), "count(*)")
            .ask(call("stddev", col("arr_delay")), "stddev_samp(arr_delay)")
            .ask(call("sum", col("distance")), "sum(distance)::BIGINT")
            .ask(call("variance", col("distance")), "var_samp(distance)"),
        Question::new("week_by_tail_number", calendar_hour(), 7 * DAY, 7 * DAY)
            .filter(
                col("dest").one_of(["IAH", "MIA", "BOS"]),
                "dest IN ('IAH', 'MIA', 'BOS')",
            )
            .by(&["tailnum"])
            .ask(count(), "count(*)")
            .ask(call("min", col("air_time")), "min(air_time)"),
        Question::new("hour_by_route", hour, HOUR, HOUR)
            .filter(
                col("carrier").eq("UA").or(col("arr_delay").is_null()),
                "carrier = 'UA' OR arr_delay IS NULL",
            )
            .by(&["origin", "dest"])
            .ask(count(), "count(*)")
            .ask(call("mean", col("air_time")), "avg(air_time)")
            .ask(call("max", col("flight") % lit(100)), "max(flight % 100)"),
        Question::new("departed", departed(), 2 * HOUR, HOUR)
            .by(&["origin", "carrier"])
            .ask(count(), "count(*)")
            .ask(call("sum", col("air_time")), "sum(air_time)::BIGINT"),
    ]
}

/// Questions over [`crate::data_set::BEIJING`].
pub(crate) fn beijing() -> Vec<Question> {
    vec![
        Question::new("day_by_station", calendar_hour(), DAY, DAY)
            .by(&["station"])
            .ask(count(), "count(*)")
            .ask(call("mean", col("PM2.5")), "favg(\"PM2.5\")")
            .ask(call("min", col("TEMP")), "min(\"TEMP\")")
            .ask(call("max", col("TEMP")), "max(\"TEMP\")")
            .ask(call("stddev", col("PRES")), "stddev_samp(\"PRES\")"),
        Question::new("rain_by_wind", calendar_hour(), 3 * DAY, DAY)
            .filter(col("RAIN").gt(0), "\"RAIN\" > 0")
            .by(&["wd"])
            .ask(count(), "count(*)")
            .ask(call("sum", col("RAIN")), "fsum(\"RAIN\")")
            .ask(call("mean", col("WSPM")), "favg(\"WSPM\")"),
        Question::new("gases", calendar_hour(), 30 * DAY, 30 * DAY)
            .ask(count(), "count(*)")
            .ask(
                call("count_if", col("SO2").is_null()),
                "count_if(\"SO2\" IS NULL)::BIGINT",
            )
            .ask(call("count", col("CO")), "count(\"CO\")")
            .ask(call("variance", col("NO2")), "var_samp(\"NO2\")")
            .ask(call("sum", col("O3")), "fsum(\"O3\")"),
        Question::new("unmeasured", calendar_hour(), DAY, 8 * HOUR)
            .filter(
                col("SO2").is_null().and(!(col("TEMP") + col("DEWP")).lt(0)),
                "\"SO2\" IS NULL AND NOT (\"TEMP\" + \"DEWP\" < 0)",
            )
            .by(&["station", "wd"])
            .ask(count(), "count(*)")
            .ask(call("sum", col("TEMP")), "fsum(\"TEMP\")")
            .ask(call("max", col("PM10")), "max(\"PM10\")"),
    ]
}
