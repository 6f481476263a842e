//! Tables for random queries: made of random values, or of rows of a real data set.

use std::path::{Path, PathBuf};

use tersecades_sql::Session;
use tersecades_testkit::random::Random;

use crate::answer::run;

/// Statements that make the tables `t` and `u` of random values.
pub(crate) fn random_tables(random: &mut Random) -> Vec<String> {
    ["t", "u"].map(|name| table(name, random)).to_vec()
}

fn table(name: &str, random: &mut Random) -> String {
    let count = 1 + random.below(30);
    let rows: Vec<String> = (0..count).map(|_| row(random)).collect();
    format!(
        "CREATE TABLE {name} AS SELECT CAST(c1 AS BIGINT) AS a, CAST(c2 AS INTEGER) AS b, \
         CAST(c3 AS BIGINT) AS k, CAST(c4 AS DOUBLE) AS x, CAST(c5 AS VARCHAR) AS s, \
         CAST(c6 AS BOOLEAN) AS p, CAST(c7 AS TIMESTAMP) AS ts, CAST(c8 AS DATE) AS d \
         FROM (VALUES {}) AS v(c1, c2, c3, c4, c5, c6, c7, c8)",
        rows.join(", ")
    )
}

fn row(random: &mut Random) -> String {
    let or_null = |value: String, random: &mut Random| match random.one_in(8) {
        true => "NULL".to_owned(),
        false => value,
    };
    let texts = ["''", "'a'", "'ab'", "'Abc'", "'b c'", "'%_'", "'zebra'"];
    let cells = [
        random.between(-20, 20).to_string(),
        random.between(-5, 5).to_string(),
        random.between(0, 4).to_string(),
        format!("{:.2}", random.between(-500, 500) as f64 / 4.0),
        (*random.pick(&texts)).to_owned(),
        (*random.pick(&["true", "false"])).to_owned(),
        format!(
            "'2024-01-01 00:{:02}:{:02}'",
            random.below(5),
            random.below(60)
        ),
        format!(
            "'2024-{:02}-{:02}'",
            1 + random.below(3),
            1 + random.below(28)
        ),
    ];
    let cells: Vec<String> = cells
        .into_iter()
        .map(|cell| or_null(cell, random))
        .collect();
    format!("({})", cells.join(", "))
}

/// The departures from New York of 2013, in the columns of the random tables.
const FLIGHTS: &str = "SELECT CAST(sched_dep_time AS BIGINT) % 60 - 20 AS a, \
     CAST(day AS INTEGER) AS b, \
     CAST(month AS BIGINT) AS k, CAST(distance AS DOUBLE) / 4.0 AS x, \
     CAST(carrier AS VARCHAR) AS s, origin = 'JFK' AS p, \
     CAST(substr(time_hour, 1, 19) AS TIMESTAMP) AS ts, \
     CAST(substr(time_hour, 1, 10) AS DATE) AS d, flight FROM";

/// Every so manieth flight goes into a table.
const FLIGHTS_STEP: usize = 4_000;

/// A Parquet file of real rows, if there is real data (`TERSECADES_DATA`).
pub(crate) fn real_rows(folder: &Path) -> Option<PathBuf> {
    let data = PathBuf::from(std::env::var_os("TERSECADES_DATA")?);
    let flights = data.join("nyc_flights_2013/flights.csv.gz");
    if !flights.exists() {
        return None;
    }
    let path = folder.join("flights.parquet");
    let (flights, file) = (flights.display(), path.display());
    let statement = format!(
        "CREATE STREAM flights (sched_dep_time BIGINT, day BIGINT, month BIGINT, distance DOUBLE, \
         carrier VARCHAR, origin VARCHAR, time_hour VARCHAR, flight BIGINT) FROM '{flights}'; \
         COPY ({FLIGHTS} flights) TO '{file}'"
    );
    run(&mut Session::default(), &statement).unwrap();
    Some(path)
}

/// Statements that make the tables `t` and `u` of real rows.
pub(crate) fn real_tables(random: &mut Random, rows: &Path) -> Vec<String> {
    let columns = "a, b, k, x, s, p, ts, d";
    let table = |(name, at): (&str, usize)| {
        format!(
            "CREATE TABLE {name} AS SELECT {columns} FROM '{}' \
             WHERE flight % {FLIGHTS_STEP} = {at}",
            rows.display()
        )
    };
    let at = 1 + random.below(FLIGHTS_STEP - 2);
    [("t", at), ("u", at + 1)].map(table).to_vec()
}
