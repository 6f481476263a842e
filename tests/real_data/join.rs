//! Joins of two parts of one data set answer as DuckDB's joins do.

use std::time::Duration;

use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::operator::join::as_of::Direction;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::stream::Stream;

use crate::data_set::{FLIGHTS, Loaded};
use crate::duckdb::answers_to_sql;
use crate::row::{Row, assert_rows_agree, rows_of};

/// Minutes that grow with scheduled departures.
const MINUTES_SQL: &str = "((month * 31 + day) * 24 + hour) * 60 + minute";

fn minutes() -> Expression {
    let days = col("month") * lit(31) + col("day");
    (days * lit(24) + col("hour")) * lit(60) + col("minute")
}

/// Flights for which `condition` is true, their times, planes and lengths.
fn part(loaded: &Loaded, condition: Expression) -> Stream {
    let columns = ["origin", "tailnum", "distance"].map(|name| (name, col(name)));
    Stream::from_batches(loaded.schema.clone(), loaded.cut(4_096, usize::MAX))
        .filter(condition)
        .project([("t", minutes())].into_iter().chain(columns))
        .event_time(col("t"), Duration::from_secs(1_000_000))
}

fn left(loaded: &Loaded) -> Stream {
    part(loaded, col("month").eq(1).and(col("day").lt_eq(9)))
}

fn right(loaded: &Loaded) -> Stream {
    part(loaded, col("month").eq(1).and(col("carrier").eq("UA")))
}

fn parts_sql() -> String {
    let part = |condition: &str| {
        format!(
            "(SELECT origin, tailnum, distance, {MINUTES_SQL} AS t FROM stream WHERE {condition})"
        )
    };
    let (left, right) = (
        part("month = 1 AND day <= 9"),
        part("month = 1 AND carrier = 'UA'"),
    );
    format!("WITH l AS {left}, r AS {right}")
}

/// Pairs and the sum of `summed` of each origin.
fn totals(joined: Stream, summed: &str) -> Vec<Row> {
    let run = joined
        .group_by(["origin"])
        .aggregate([count().alias("n"), call("sum", col(summed)).alias("total")])
        .run()
        .unwrap();
    rows_of(&run.map(Result::unwrap).collect::<Vec<_>>())
}

#[test]
fn joins_of_flights_agree_with_duckdb() {
    let Some(loaded) = FLIGHTS.load() else { return };
    let kinds = [
        ("inner", JoinKind::Inner, "JOIN"),
        ("left", JoinKind::Left, "LEFT JOIN"),
        ("right", JoinKind::Right, "RIGHT JOIN"),
        ("full", JoinKind::Full, "FULL JOIN"),
        ("semi", JoinKind::LeftSemi, "SEMI JOIN"),
        ("anti", JoinKind::LeftAnti, "ANTI JOIN"),
    ];
    let parts = parts_sql();
    let mut queries = Vec::new();
    for (name, kind, sql) in kinds {
        let summed = if kind.shows_right() { "r.t" } else { "l.t" };
        let query = format!(
            "{parts} SELECT l.origin AS origin, count(*)::BIGINT, sum({summed})::BIGINT
             FROM l {sql} r ON l.tailnum = r.tailnum AND l.distance < r.distance
             GROUP BY l.origin ORDER BY origin NULLS LAST"
        );
        queries.push((name, query));
    }
    queries.push((
        "as_of",
        format!(
            "{parts} SELECT l.origin AS origin, count(*)::BIGINT, sum(r.t)::BIGINT
             FROM l ASOF LEFT JOIN r ON l.tailnum = r.tailnum AND l.t >= r.t
             GROUP BY l.origin ORDER BY origin NULLS LAST"
        ),
    ));
    let Some(answers) = answers_to_sql(&FLIGHTS, &loaded, &queries) else {
        return;
    };
    let on = [("tailnum", "tailnum")];
    for ((name, kind, _), expected) in kinds.iter().zip(&answers) {
        let summed = if kind.shows_right() { "t_right" } else { "t" };
        let options = JoinOptions {
            residual: Some(col("distance").lt(col("distance_right"))),
            ..JoinOptions::default()
        };
        let joined = left(&loaded).join(right(&loaded), *kind, &on, options);
        let got = totals(joined.unwrap(), summed);
        assert!(got.len() >= 3, "{name}");
        assert_rows_agree(name, &got, expected);
    }
    let backward = (Direction::Backward, None);
    let nearest = left(&loaded)
        .asof_join(right(&loaded), &on, backward, JoinKind::Left)
        .unwrap();
    assert_rows_agree("as of", &totals(nearest, "t_right"), &answers[kinds.len()]);
}
