//! Tables of thousands of rows in Parquet files of several row groups, and queries over them.

use std::path::Path;

use tersecades_testkit::random::Random;

use super::shape::ALL;
use super::{Maker, Query};

/// Aggregates of all kinds of columns.
const AGGREGATES: &str = "count(*) AS n, sum(a) AS m, min(s) AS l, count(DISTINCT b) AS c, \
                          max(ts) AS h";

/// A statement that makes a table, as each engine is told it.
pub(crate) struct Made {
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

/// Statements that write two files with DuckDB, and make the tables `t` and `u` of them.
pub(crate) fn file_tables(random: &mut Random, folder: &Path, seed: u64) -> Vec<Made> {
    let mut statements = Vec::new();
    for name in ["t", "u"] {
        let path = folder.join(format!("{name}_{seed}.parquet"));
        let path = path.display();
        statements.push(Made {
            ours: "SELECT 1".to_owned(),
            theirs: format!(
                "COPY ({}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)",
                rows(random)
            ),
        });
        let kind = random.pick(&["TABLE", "VIEW"]);
        statements.push(Made {
            ours: format!("CREATE {kind} {name} AS SELECT {ALL} FROM '{path}'"),
            theirs: format!("CREATE TABLE {name} AS SELECT {ALL} FROM '{path}'"),
        });
    }
    statements
}

/// A query of DuckDB for rows whose columns are sorted, in runs, constant or neither.
fn rows(random: &mut Random) -> String {
    let count = 1 + random.below(9_000);
    let numbers = [
        "i",
        "i // 100",
        "9000 - i",
        "hash(i) % 1000",
        "hash(i) % 5",
        "i % 97 - 40",
        "CASE WHEN i % 1000 = 7 THEN 4000 ELSE 3 END",
        "1000000000000 + i * 1000",
        "7",
    ];
    let texts = [
        "'v' || hash(i) % 9",
        "'text ' || i",
        "chr(97 + CAST(i // 700 % 26 AS INTEGER))",
        "'a'",
        "md5(CAST(i AS VARCHAR))",
    ];
    let seconds = [
        "i",
        "i // 50",
        "9000 - i",
        "hash(i) % 9000",
        "i + hash(i) % 30",
    ];
    let mut columns = Vec::new();
    for (name, kind) in ALL.split(", ").zip([
        "BIGINT",
        "INTEGER",
        "BIGINT",
        "DOUBLE",
        "VARCHAR",
        "BOOLEAN",
        "TIMESTAMP",
        "DATE",
    ]) {
        let value = match kind {
            "BIGINT" => (*random.pick(&numbers)).to_owned(),
            "INTEGER" => (*random.pick(&numbers[..7])).to_owned(),
            "DOUBLE" => format!("({}) / 4.0 - 200", random.pick(&numbers[..7])),
            "VARCHAR" => (*random.pick(&texts)).to_owned(),
            "BOOLEAN" => format!("({}) % 3 = 0", random.pick(&numbers)),
            "TIMESTAMP" => format!(
                "TIMESTAMP '2024-01-01' + to_seconds(CAST({} AS BIGINT))",
                random.pick(&seconds)
            ),
            _ => format!(
                "DATE '2024-01-01' + CAST(({}) // 64 AS INTEGER)",
                random.pick(&seconds)
            ),
        };
        let number = columns.len();
        let null = match random.below(5) {
            0 => format!("hash(i + {number}) % 7 = 0"),
            1 => "i BETWEEN 1500 AND 4700".to_owned(),
            _ => "false".to_owned(),
        };
        columns.push(format!(
            "CAST(CASE WHEN {null} THEN NULL ELSE {value} END AS {kind}) AS {name}"
        ));
    }
    format!("SELECT {} FROM range({count}) AS r(i)", columns.join(", "))
}

/// A query over tables of files.
pub(crate) fn file_query(random: &mut Random) -> Query {
    let mut maker = Maker { random, prefix: "" };
    let (ours, ordered) = match maker.random.below(16) {
        0 => (maker.whole(), false),
        1 | 2 => (maker.grouped(), false),
        3 => (maker.sorted(), true),
        4 => (maker.first_ranks(), false),
        5 => (maker.statistics(), false),
        6 => (maker.subquery(), false),
        7 => return maker.windows(),
        8 => (maker.distinct_on(), true),
        9 => (maker.frames(), false),
        _ => maker.far(),
    };
    Query {
        theirs: ours.replace(" / ", " // "),
        ours,
        ordered,
    }
}

impl Maker<'_> {
    /// A term with a constant that lies somewhere in a column.
    fn term(&mut self) -> String {
        let compare = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
        let number = self.random.between(-50, 9_000);
        match self.random.below(12) {
            0..=2 => format!("{} {compare} {number}", self.pick(&["a", "b", "k"])),
            3 => format!("x {compare} {}.25", number / 4),
            4 => format!(
                "s {compare} {}",
                self.pick(&["'v3'", "'c'", "'text 4'", "'a'", "'5'"])
            ),
            5 => format!(
                "s LIKE {}",
                self.pick(&["'v%'", "'%1'", "'text 3%'", "'_'", "'b%c%'"])
            ),
            6 => format!(
                "ts {compare} TIMESTAMP '2024-01-01 0{}:{:02}:00'",
                self.random.below(3),
                self.random.below(60)
            ),
            7 => format!("d {compare} DATE '2024-0{}-11'", 1 + self.random.below(6)),
            8 => format!(
                "{} BETWEEN {number} AND {}",
                self.pick(&["a", "k"]),
                number + self.random.between(0, 900)
            ),
            9 => format!("{} IS NOT NULL", self.pick(&["a", "x", "s", "ts", "p"])),
            10 => format!("{} IN (3, 7, {number}, 21)", self.pick(&["a", "b", "k"])),
            _ => self.pick(&["p", "NOT p", "p IS NULL"]),
        }
    }

    fn terms(&mut self) -> String {
        match self.random.below(5) {
            0 => String::new(),
            1 => format!(" WHERE {}", self.term()),
            2 => format!(" WHERE {} AND {}", self.term(), self.term()),
            3 => format!(
                " WHERE ({} OR {}) AND {}",
                self.term(),
                self.term(),
                self.term()
            ),
            _ => format!(" WHERE NOT ({} AND {})", self.term(), self.term()),
        }
    }

    /// What reads some rows of many: first rows, groups of keys that hardly repeat, lookups.
    fn far(&mut self) -> (String, bool) {
        let selection = self.terms();
        let direction = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        let (key, number) = (
            self.pick(&["a", "b", "k", "x", "s", "ts", "d", "p", "a + b", "upper(s)"]),
            1 + self.random.below(40),
        );
        let skip = self.pick(&["", " OFFSET 3", " OFFSET 2100"]);
        let first = format!(
            "SELECT {ALL} FROM t{selection} ORDER BY {key}{direction}, {ALL} LIMIT {number}{skip}"
        );
        match self.random.below(10) {
            0 | 1 => (first, true),
            2 => (
                format!("SELECT count(*) AS n, sum(a) AS m, max(s) AS l FROM ({first}) AS w"),
                false,
            ),
            3 | 4 => {
                let keys = self.pick(&["a", "s", "ts", "k, s", "a, b", "d, x", "p", "x"]);
                let order = format!("n DESC, {keys}");
                let order = self.pick(&[&order, &keys, &format!("m, {keys}")]);
                (
                    format!(
                        "SELECT {keys}, {AGGREGATES} FROM t{selection} GROUP BY {keys} \
                         ORDER BY {order} LIMIT {number}{skip}"
                    ),
                    true,
                )
            }
            5 => (format!("SELECT {AGGREGATES} FROM t{selection}"), false),
            6 => {
                let keys = self.pick(&["a", "s", "k, p", "b, d", "x", "ts"]);
                let limit = self.pick(&["", " ORDER BY ALL LIMIT 30"]);
                let text = format!("SELECT DISTINCT {keys} FROM t{selection}{limit}");
                (text, !limit.is_empty())
            }
            7 | 8 => (self.paired(&selection), false),
            _ => {
                let call = self.framed();
                (
                    format!(
                        "SELECT w, count(*) AS n, sum(a) AS m FROM (SELECT a, {call} AS w \
                         FROM t{selection}) AS v GROUP BY w ORDER BY w LIMIT 50"
                    ),
                    true,
                )
            }
        }
    }

    /// What is counted of a join by a key that is one row of the right side, or of a list.
    fn paired(&mut self, selection: &str) -> String {
        let key = self.pick(&["a", "s", "ts", "k", "b", "d", "x"]);
        let other = self.terms();
        if self.random.one_in(2) {
            let negated = self.pick(&["", "NOT "]);
            return format!(
                "SELECT {AGGREGATES} FROM (SELECT * FROM t{selection}) AS t \
                 WHERE {key} {negated}IN (SELECT {key} FROM u{other})"
            );
        }
        let kind = self.pick(&["JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"]);
        format!(
            "SELECT count(*) AS n, count(t.{key}) AS tn, count(u.n) AS un, sum(t.a) AS m, \
             sum(u.n) AS o, max(t.s) AS l FROM (SELECT * FROM t{selection}) AS t {kind} \
             (SELECT {key}, count(*) AS n, max(s) AS l FROM u{other} GROUP BY {key}) AS u \
             ON t.{key} = u.{key}"
        )
    }
}
