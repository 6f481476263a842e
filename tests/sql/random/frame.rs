//! Functions over frames of every kind, several in one query.

use super::Maker;
use super::shape::ALL;

impl Maker<'_> {
    /// Some calls over windows of their own, and what is computed and filtered by them.
    pub(super) fn frames(&mut self) -> String {
        let count = 1 + self.random.below(3);
        let calls: Vec<String> = (0..count).map(|_| self.framed()).collect();
        let named: Vec<String> = calls
            .iter()
            .enumerate()
            .map(|(number, call)| format!("{call} AS w{number}"))
            .collect();
        let (selection, named) = (self.selection(), named.join(", "));
        match self.random.below(4) {
            0 => format!("SELECT {ALL}, {named} FROM t{selection} QUALIFY w0 IS NOT NULL"),
            1 => format!(
                "SELECT w0, count(*) AS n, sum(a) AS m FROM (SELECT {ALL}, {named} \
                 FROM t{selection}) AS w GROUP BY w0"
            ),
            2 => format!(
                "SELECT k, s, sum(sum(a)) OVER (PARTITION BY k ORDER BY s) AS w1, \
                 rank() OVER (ORDER BY count(*) DESC) AS w2 FROM t{selection} GROUP BY k, s"
            ),
            _ => format!("SELECT {ALL}, {named} FROM t{selection}"),
        }
    }

    /// A call whose value is the same for rows that are equal.
    pub(super) fn framed(&mut self) -> String {
        let partition = self.pick(&[
            "",
            "PARTITION BY k ",
            "PARTITION BY s, p ",
            "PARTITION BY d ",
        ]);
        let direction = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        let edges = [
            "UNBOUNDED PRECEDING",
            "3 PRECEDING",
            "1 PRECEDING",
            "CURRENT ROW",
            "1 FOLLOWING",
            "2 FOLLOWING",
            "UNBOUNDED FOLLOWING",
        ];
        let first = self.random.below(6);
        let last = (first + self.random.below(7 - first)).max(1);
        // DuckDB 2.0 is wrong about distances behind the first row, of more than 2,048 rows.
        let first = if last < 3 { first.max(1) } else { first };
        let (first, last) = (edges[first], edges[last]);
        let (key, order, unit) = match self.random.below(4) {
            0 => ("a", format!("a{direction}"), "RANGE"),
            1 => ("d", format!("d{direction}"), "RANGE"),
            2 => ("s", format!("s{direction}, k"), "GROUPS"),
            _ => ("a", format!("a{direction}, {ALL}"), "ROWS"),
        };
        let days = |edge: &str| match edge.split_once(' ') {
            Some((count @ ("1" | "2" | "3"), side)) => {
                format!("INTERVAL '{count}' DAY {side}")
            }
            _ => edge.to_owned(),
        };
        let (first, last) = match (key, unit) {
            ("d", "RANGE") => (days(first), days(last)),
            _ => (first.to_owned(), last.to_owned()),
        };
        let over = format!("OVER ({partition}ORDER BY {order} {unit} BETWEEN {first} AND {last})");
        match self.random.below(10) {
            0 => format!("sum({}) {over}", self.integer(1)),
            1 => format!("count({}) {over}", self.text(1)),
            2 => format!("min({}) {over}", self.float(1)),
            3 => format!("max({}) {over}", self.pick(&["ts", "d", "s", "p"])),
            4 => format!("avg({}) {over}", self.float(0)),
            5 if unit == "ROWS" => format!("last_value({}) {over}", self.text(1)),
            6 if unit == "ROWS" => format!("nth_value({}, 2) {over}", self.integer(1)),
            5 | 6 => format!("first_value({key}) {over}"),
            7 => format!(
                "lead({}, {}, {}) OVER ({partition}ORDER BY {ALL})",
                self.integer(1),
                self.random.below(4),
                self.random.between(-3, 3)
            ),
            8 => {
                let function = self.pick(&["stddev_samp", "var_pop"]);
                format!("{function}({}) {over}", self.float(0))
            }
            _ => format!(
                "{}({}) OVER ({partition})",
                self.pick(&["sum", "count", "max"]),
                self.integer(1)
            ),
        }
    }
}
