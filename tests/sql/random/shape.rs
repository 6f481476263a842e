//! Shapes of random queries that go beyond one table and one group-by.

use super::{Maker, Query};

/// The columns that decide an order among all rows.
pub(super) const ALL: &str = "a, b, k, x, s, p, ts, d";

impl Maker<'_> {
    /// Ranks, neighbours and running aggregates; every column decides the order.
    pub(super) fn over(&mut self) -> String {
        let partition = self.pick(&["", "PARTITION BY k ", "PARTITION BY s, p "]);
        let direction = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        let key = self.pick(&["a", "ts", "x", "s", "d"]);
        let order = format!("ORDER BY {key}{direction}, {ALL}");
        let frame = self.pick(&[
            "",
            " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
        ]);
        let call = match self.random.below(9) {
            0 => format!("sum({}) OVER ({partition}{order}{frame})", self.integer(1)),
            1 => format!("min({}) OVER ({partition}{order}{frame})", self.text(1)),
            2 => format!("max({}) OVER ({partition}{order}{frame})", self.float(1)),
            3 => format!("avg({}) OVER ({partition}{order}{frame})", self.integer(0)),
            4 => format!("count({}) OVER ({partition}{order}{frame})", self.text(0)),
            5 => format!("lag({}, 2) OVER ({partition}{order})", self.integer(1)),
            6 => format!("lead({}) OVER ({partition}{order})", self.text(1)),
            7 => format!(
                "first_value({}) OVER ({partition}{order}{frame})",
                self.float(0)
            ),
            _ => format!("ntile(3) OVER ({partition}{order})"),
        };
        let rank = self.pick(&["rank()", "dense_rank()", "percent_rank()", "cume_dist()"]);
        let selection = self.selection();
        format!(
            "SELECT {ALL}, {call} AS w1, {rank} OVER ({partition}ORDER BY {key}{direction}) AS w2, \
             row_number() OVER ({partition}{order}) AS w3 FROM t{selection}"
        )
    }

    /// An aggregate over peers, by distance or by group.
    pub(super) fn range(&mut self) -> String {
        let call = self.pick(&["sum(b)", "count(*)", "max(a)", "min(x)"]);
        let (key, frame) = match self.random.below(4) {
            0 => ("a", " RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING"),
            1 => (
                "ts",
                " RANGE BETWEEN INTERVAL '90' SECOND PRECEDING AND CURRENT ROW",
            ),
            2 => ("a", " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
            _ => ("b", ""),
        };
        let direction = self.pick(&["", " DESC"]);
        let selection = self.selection();
        format!(
            "SELECT {ALL}, {call} OVER (ORDER BY {key}{direction}{frame}) AS w FROM t{selection}"
        )
    }

    pub(super) fn sets(&mut self) -> String {
        let sets = self.pick(&[
            "ROLLUP(k, s)",
            "CUBE(p, k)",
            "GROUPING SETS ((k), (s, p), ())",
            "k, ROLLUP(p)",
        ]);
        let (aggregates, selection) = (self.aggregates(), self.selection());
        let keys = match sets.as_str() {
            "ROLLUP(k, s)" => "k, s, grouping(k) AS g",
            "CUBE(p, k)" | "k, ROLLUP(p)" => "k, p, grouping(p) AS g",
            _ => "k, s, p",
        };
        format!("SELECT {keys}, {aggregates} FROM t{selection} GROUP BY {sets}")
    }

    pub(super) fn distinct_on(&mut self) -> String {
        let key = self.pick(&["k", "s", "p", "b"]);
        let direction = self.pick(&["", " DESC"]);
        let selection = self.selection();
        format!(
            "SELECT DISTINCT ON ({key}) {ALL} FROM t{selection} ORDER BY {key}, a{direction}, {ALL}"
        )
    }

    /// The first ranks of each key, of all rows or of some.
    pub(super) fn first_ranks(&mut self) -> String {
        let partition = self.pick(&[
            "",
            "PARTITION BY k ",
            "PARTITION BY s, p ",
            "PARTITION BY x ",
        ]);
        let direction = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        let keys = ["a", "ts", "x", "s", "d", "k, b", "p, x", "s, a"];
        let key = self.pick(&keys);
        let rank = self.pick(&["rank()", "dense_rank()", "row_number()"]);
        let order = match rank.as_str() {
            "row_number()" => format!("{key}{direction}, {ALL}"),
            _ => format!("{key}{direction}"),
        };
        let beside = self.pick(&["lag(b)", "rank()", "count(b)"]);
        let number = 1 + self.random.below(5);
        let limit = self.pick(&["<=", "<", "="]);
        let also = match self.random.one_in(3) {
            true => format!(" AND {}", self.condition_of("")),
            false => String::new(),
        };
        let over = format!("OVER ({partition}ORDER BY {order})");
        let selection = self.selection();
        match self.random.one_in(2) {
            true => format!(
                "SELECT {ALL} FROM t{selection} QUALIFY {rank} {over} {limit} {number}{also}"
            ),
            false => format!(
                "SELECT * FROM (SELECT {ALL}, {rank} {over} AS n, {beside} OVER \
                 ({partition}ORDER BY {key}{direction}, {ALL}) AS w FROM t{selection}) AS r \
                 WHERE n {limit} {number}{also}"
            ),
        }
    }

    /// Subqueries that read the outer row, and lists of them beside other conditions.
    pub(super) fn correlated(&mut self) -> String {
        let inner = self.condition_of("u.");
        let outer = self.condition_of("t.");
        match self.random.below(6) {
            0 => format!(
                "SELECT a, s FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND {inner})"
            ),
            1 => format!(
                "SELECT a, s FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND {inner})"
            ),
            2 => format!(
                "SELECT a, (SELECT max(u.a) FROM u WHERE u.k = t.k AND {inner}) AS m FROM t"
            ),
            3 => format!("SELECT a, s FROM t WHERE k NOT IN (SELECT k FROM u WHERE {inner})"),
            4 => {
                format!("SELECT a, s FROM t WHERE b IN (SELECT b FROM u WHERE {inner}) OR {outer}")
            }
            _ => format!(
                "SELECT a, s FROM t WHERE a > (SELECT avg(u.a) FROM u WHERE u.s = t.s) OR {outer}"
            ),
        }
    }

    pub(super) fn condition_of(&mut self, prefix: &'static str) -> String {
        self.prefix = prefix;
        let condition = self.condition(1);
        self.prefix = "";
        condition
    }

    /// Joins of three tables, and conditions besides equal keys.
    pub(super) fn joins(&mut self) -> String {
        let (first, second) = (
            self.pick(&["JOIN", "LEFT JOIN"]),
            self.pick(&["JOIN", "LEFT JOIN"]),
        );
        let residual = self.pick(&[
            "t.a < u.a",
            "t.a + u.b > 3",
            "u.s IS NOT NULL",
            "t.ts >= u.ts",
        ]);
        let selection = match self.random.one_in(2) {
            true => format!(" WHERE {}", self.condition_of("t.")),
            false => format!(" WHERE u.a > {}", self.random.between(-9, 9)),
        };
        format!(
            "SELECT t.a, u.a AS ua, w.n FROM t {first} u ON t.k = u.k AND {residual} {second} \
             (SELECT s, count(*) AS n FROM u GROUP BY s) AS w ON t.s = w.s{selection}"
        )
    }

    /// As-of joins; times of `u` are made distinct, so that the nearest row is one.
    pub(super) fn as_of(&mut self) -> String {
        let kind = self.pick(&["ASOF JOIN", "ASOF LEFT JOIN"]);
        let compare = self.pick(&[">=", "<="]);
        format!(
            "SELECT t.a, t.ts, u.n FROM (SELECT * FROM t WHERE ts IS NOT NULL) AS t {kind} \
             (SELECT k, ts, sum(a) AS n FROM u WHERE ts IS NOT NULL GROUP BY k, ts) AS u \
             ON t.k = u.k AND t.ts {compare} u.ts"
        )
    }

    /// Windows of time, which DuckDB writes as buckets.
    pub(super) fn windows(&mut self) -> Query {
        let size = *self.random.pick(&[10, 30, 60]);
        let slide = size / *self.random.pick(&[1, 1, 2, 5]);
        let (aggregates, key) = (self.aggregates(), self.pick(&["", ", k", ", s"]));
        let condition = self.condition(1);
        let ours = format!(
            "SELECT window_start, window_end{key}, {aggregates} FROM HOP(TABLE t, DESCRIPTOR(ts), \
             INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND) WHERE {condition} \
             GROUP BY window_start, window_end{key}"
        );
        let theirs = format!(
            "SELECT ws, ws + INTERVAL '{size}' SECOND AS we{key}, {aggregates} FROM (SELECT *, \
             time_bucket(INTERVAL '{slide}' SECOND, ts) - INTERVAL 1 SECOND * n * {slide} AS ws \
             FROM t, range({}) AS r(n) WHERE ts IS NOT NULL) AS t WHERE {condition} \
             GROUP BY ws{key}",
            size / slide
        );
        Query {
            ours,
            theirs: theirs.replace(" / ", " // "),
            ordered: false,
        }
    }
}
