//! Relations with the columns of the tables, which take the place of the table `t`.

use super::shape::ALL;
use super::{Maker, Query};

impl Maker<'_> {
    /// The query over a relation in place of `t`.
    pub(super) fn over_relation(&mut self, query: Query) -> Query {
        let depth = 1 + self.random.below(2);
        let relation = self.relation(depth);
        let placed = |text: &str| {
            let text = ["FROM t ", "FROM t)", "FROM t\n"].iter().fold(
                format!("{text}\n"),
                |text, place| {
                    let behind = &place["FROM t".len()..];
                    text.replace(place, &format!("FROM v AS t{behind}"))
                },
            );
            match text.trim_end().strip_prefix("WITH ") {
                Some(rest) => format!("WITH v AS ({relation}), {rest}"),
                None => format!("WITH v AS ({relation}) {}", text.trim_end()),
            }
        };
        Query {
            ours: placed(&query.ours),
            theirs: placed(&query.theirs).replace(" / ", " // "),
            ordered: query.ordered,
        }
    }

    /// A query for the columns of the tables.
    fn relation(&mut self, depth: usize) -> String {
        let from = match depth {
            0 => self.pick(&["t", "u AS t"]),
            _ => match self.random.one_in(2) {
                true => "t".to_owned(),
                false => format!("({}) AS t", self.relation(depth - 1)),
            },
        };
        match self.random.below(13) {
            0 => format!("SELECT * FROM {from} WHERE {}", self.condition(1)),
            1 => format!("SELECT * FROM {from} UNION ALL SELECT * FROM u"),
            2 => format!("SELECT DISTINCT {ALL} FROM {from}"),
            3 => {
                let (order, count) = (self.pick(&["", "k DESC, ", "s, ", "ts DESC, "]), 12);
                format!("SELECT * FROM {from} ORDER BY {order}{ALL} LIMIT {count}")
            }
            4 => {
                let kind = self.pick(&["JOIN", "LEFT JOIN", "FULL JOIN"]);
                format!(
                    "SELECT t.a, u.b, t.k, u.x, t.s, u.p, t.ts, u.d FROM {from} {kind} u \
                     ON t.k = u.k AND t.s = u.s"
                )
            }
            5 => format!(
                "SELECT max(a) AS a, min(b) AS b, k, max(x) AS x, s, bool_or(p) AS p, \
                 min(ts) AS ts, max(d) AS d FROM {from} GROUP BY k, s"
            ),
            6 => format!(
                "SELECT lag(a) OVER (ORDER BY {ALL}) AS a, b, k, sum(x) OVER (PARTITION BY k \
                 ORDER BY {ALL}) AS x, max(s) OVER (PARTITION BY b) AS s, p, ts, d FROM {from}"
            ),
            7 => {
                let (a, x, s, p) = (
                    self.integer(1),
                    self.float(1),
                    self.text(1),
                    self.condition(1),
                );
                format!(
                    "SELECT CAST({a} AS BIGINT) AS a, b, k, {x} AS x, {s} AS s, {p} AS p, ts, d \
                     FROM {from}"
                )
            }
            8 => {
                let set = self.pick(&["EXCEPT", "INTERSECT", "UNION"]);
                format!("SELECT * FROM {from} {set} SELECT * FROM u WHERE b > 0")
            }
            9 => format!("SELECT * FROM {from} WHERE k IN (SELECT k FROM u WHERE b > 0)"),
            10 => format!(
                "SELECT CAST(3 AS BIGINT) AS a, b, CAST(NULL AS BIGINT) AS k, x, 'ab' AS s, \
                 true AS p, ts, DATE '2024-02-29' AS d FROM {from}"
            ),
            11 => format!(
                "SELECT a, b, k, x, s, p, ts, d FROM {from} QUALIFY row_number() OVER \
                 (PARTITION BY k ORDER BY {ALL}) <= 2"
            ),
            _ => format!("SELECT * FROM {from} WHERE a > 100"),
        }
    }
}
