//! Sessions, orders and interval joins of streams as they were recorded answer as DuckDB's window
//! functions and joins do.

use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, TimeUnit};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::operator::join::interval::IntervalSpec;
use tersecades_engine::operator::join::table::{JoinSpec, JoinTime};
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::session;

use crate::data_set::{DataSet, FLIGHTS, GEOLIFE, GITHUB, Loaded, RIPE_ATLAS};
use crate::duckdb::answers_to_sql;
use crate::report;
use crate::row::{Row, assert_rows_agree, row_order, rows_of};

/// A column to tell sessions apart by, a time in seconds, and the silence that ends a session.
struct Question {
    set: &'static DataSet,
    key: &'static str,
    time: fn() -> Expression,
    time_sql: &'static str,
    gap_s: u64,
}

static QUESTIONS: &[Question] = &[
    Question {
        set: &GEOLIFE,
        key: "user",
        time: || col("timestamp").cast(DataType::Int64) / 1_000,
        time_sql: "epoch_us(timestamp) // 1000000",
        gap_s: 1_800,
    },
    Question {
        set: &GITHUB,
        key: "actor",
        time: || col("dt").cast(DataType::Int64) / 1_000_000,
        time_sql: "epoch_us(dt) // 1000000",
        gap_s: 300,
    },
    Question {
        set: &RIPE_ATLAS,
        key: "probe_id",
        time: || col("epoch").cast(DataType::Int64) / 1_000_000,
        time_sql: "epoch_us(epoch) // 1000000",
        gap_s: 900,
    },
    Question {
        set: &FLIGHTS,
        key: "tailnum",
        time: || Expression::MakeTimestamp(["year", "month", "day", "hour"].map(col).to_vec()),
        time_sql: "epoch_us(make_timestamp(year, month, day, hour, 0, 0)) // 1000000",
        gap_s: 86_400,
    },
];

impl Question {
    /// Key, number of rows, first and last time of every session.
    fn sql(&self) -> String {
        let Question {
            key,
            time_sql,
            gap_s,
            ..
        } = self;
        format!(
            "WITH timed AS (SELECT \"{key}\" AS k, ({time_sql})::BIGINT AS t FROM stream),
             marked AS (SELECT k, t, CASE WHEN t - lag(t) OVER (PARTITION BY k ORDER BY t) < {gap_s}
                 THEN 0 ELSE 1 END AS first FROM timed WHERE t IS NOT NULL),
             numbered AS (SELECT k, t, sum(first) OVER (PARTITION BY k ORDER BY t
                 ROWS UNBOUNDED PRECEDING) AS id FROM marked)
             SELECT k, count(*)::BIGINT, min(t)::BIGINT, max(t)::BIGINT FROM numbered
             GROUP BY k, id"
        )
    }

    fn answer(&self, loaded: &Loaded) -> Vec<Row> {
        let at = (self.time)().cast(DataType::Int64);
        let run = Stream::from_batches(loaded.schema.clone(), loaded.cut(8_192, usize::MAX))
            .event_time((self.time)(), self.set.lateness)
            .event_time_unit(TimeUnit::Second)
            .project([(self.key, col(self.key)), ("at", at)])
            .window(session(Duration::from_secs(self.gap_s)))
            .group_by([self.key])
            .aggregate([count(), call("min", col("at")), call("max", col("at"))]);
        let mut run = run.run().unwrap();
        let batches: Vec<RecordBatch> = run.by_ref().map(Result::unwrap).collect();
        assert_eq!(run.metrics().late_rows, 0, "{}", self.set.name);
        // Window bounds are left out: DuckDB's answer has none.
        let shown = batches
            .iter()
            .map(|batch| batch.project(&[2, 3, 4, 5]).unwrap());
        rows_of(&shown.collect::<Vec<_>>())
    }
}

#[test]
fn sessions_of_recorded_streams_agree_with_duckdb() {
    for question in QUESTIONS {
        let Some(loaded) = question.set.load() else {
            continue;
        };
        let queries = [("sessions", question.sql())];
        let Some(mut answers) = answers_to_sql(question.set, &loaded, &queries) else {
            return;
        };
        let mut expected = answers.remove(0);
        let mut got = question.answer(&loaded);
        expected.sort_by(row_order);
        got.sort_by(row_order);
        let name = question.set.name;
        report(&format!("{name}: {} sessions", got.len()));
        assert!(got.len() > 10, "{name}");
        assert_rows_agree(name, &got, &expected);
    }
}

/// Positions of one user, with the altitude.
fn positions(loaded: &Loaded, user: i64) -> Stream {
    let columns = ["timestamp", "user", "altitude_ft"].map(|name| (name, col(name)));
    Stream::from_batches(loaded.schema.clone(), loaded.cut(8_192, usize::MAX))
        .filter(col("user").eq(user))
        .project(columns)
        .event_time(col("timestamp"), GEOLIFE.lateness)
        .event_time_unit(TimeUnit::Second)
}

#[test]
fn interval_joins_with_a_condition_agree_with_duckdb() {
    let Some(loaded) = GEOLIFE.load() else { return };
    let part = |user| format!("(SELECT * FROM stream WHERE \"user\" = {user})");
    let sql = format!(
        "SELECT l.\"user\" AS k, count(r.\"user\")::BIGINT,
             sum(epoch_us(r.timestamp) - epoch_us(l.timestamp))::BIGINT
         FROM {} l LEFT JOIN {} r
             ON epoch_us(r.timestamp) - epoch_us(l.timestamp) BETWEEN 0 AND 5000000
             AND l.altitude_ft < r.altitude_ft
         GROUP BY k ORDER BY k",
        part(0),
        part(1)
    );
    let Some(answers) = answers_to_sql(&GEOLIFE, &loaded, &[("near", sql)]) else {
        return;
    };
    let spec = JoinSpec {
        kind: JoinKind::Left,
        on: Vec::new(),
        time: JoinTime::Interval(IntervalSpec {
            lower_ns: 0,
            upper_ns: 5_000_000_000,
        }),
        options: JoinOptions {
            residual: Some(col("altitude_ft").lt(col("altitude_ft_right"))),
            ..JoinOptions::default()
        },
    };
    let joined = positions(&loaded, 0)
        .join_with(positions(&loaded, 1), spec)
        .unwrap();
    let at = |name: &str| col(name).cast(DataType::Int64);
    let apart = at("timestamp_right") - at("timestamp");
    let run = joined
        .project([
            ("user", col("user")),
            ("with", col("user_right")),
            ("apart", apart),
        ])
        .group_by(["user"])
        .aggregate([call("count", col("with")), call("sum", col("apart"))])
        .run()
        .unwrap();
    let got = rows_of(&run.map(Result::unwrap).collect::<Vec<_>>());
    assert_eq!(got.len(), 1);
    assert_rows_agree("geolife", &got, &answers[0]);
}

#[test]
fn positions_in_order_are_those_of_the_sorted_file() {
    let Some(loaded) = GEOLIFE.load() else { return };
    let sql = "SELECT count(*)::BIGINT, sum(CASE WHEN t < before THEN 1 ELSE 0 END)::BIGINT FROM
         (SELECT timestamp AS t, lag(timestamp) OVER (ORDER BY timestamp) AS before FROM stream
         WHERE \"user\" < 10)";
    let queries = [("order", sql.to_owned())];
    let Some(answers) = answers_to_sql(&GEOLIFE, &loaded, &queries) else {
        return;
    };
    let none: [&str; 0] = [];
    let run = Stream::from_batches(loaded.schema.clone(), loaded.cut(8_192, usize::MAX))
        .filter(col("user").lt(10))
        .project([("timestamp", col("timestamp"))])
        .event_time(col("timestamp"), GEOLIFE.lateness)
        .event_time_unit(TimeUnit::Second)
        .in_order()
        .unwrap()
        .lag("timestamp", 1, none, "before")
        .aggregate([
            count(),
            call("count_if", col("timestamp").lt(col("before"))),
        ]);
    let batches: Vec<RecordBatch> = run.run().unwrap().map(Result::unwrap).collect();
    assert_rows_agree("geolife", &rows_of(&batches), &answers[0]);
}
