//! Aggregates and sets of groups beyond the common ones.

use super::Maker;

impl Maker<'_> {
    /// An aggregate whose value does not hang on the order of rows.
    pub(super) fn statistic(&mut self) -> String {
        let filter = match self.random.one_in(3) {
            true => format!(" FILTER (WHERE {})", self.condition(1)),
            false => String::new(),
        };
        let call = match self.random.below(24) {
            0 => format!("stddev_samp({})", self.float(0)),
            1 => format!("var_pop({})", self.integer(1)),
            2 => format!("bool_and({})", self.condition(1)),
            3 => format!("bool_or({})", self.condition(1)),
            4 => {
                let name = self.pick(&["bit_and", "bit_or", "bit_xor"]);
                format!("{name}(CAST({} AS BIGINT))", self.integer(1))
            }
            5 => format!("count(nullif({}, false))", self.condition(1)),
            6 => "arg_min(ts, ts)".to_owned(),
            7 => format!("arg_max(a + 1, {})", self.pick(&["a", "nullif(a, 7)"])),
            8 => format!("quantile_disc({}, 0.75)", self.integer(1)),
            9 => format!(
                "percentile_disc(0.4) WITHIN GROUP (ORDER BY {})",
                self.float(0)
            ),
            10 => {
                let text = format!("coalesce(s, {})", self.text(1));
                format!("string_agg({text}, '-' ORDER BY {text})")
            }
            11 => "string_agg(DISTINCT s, ',' ORDER BY s DESC)".to_owned(),
            12 => format!("sum(DISTINCT {})", self.integer(1)),
            13 => format!("avg(DISTINCT {})", self.integer(0)),
            14 => format!("count(DISTINCT {})", self.text(1)),
            15 => format!("count(DISTINCT {})", self.pick(&["x", "d", "ts", "p"])),
            16 => format!("min({})", self.pick(&["ts", "d", "p"])),
            17 => format!("max({})", self.pick(&["ts", "d", "p"])),
            18 => format!("max({})", self.text(1)),
            19 => format!("sum(CAST({} AS DECIMAL(22, 2)))", self.integer(1)),
            20 => format!("avg(CAST({} AS DECIMAL(22, 2)))", self.integer(0)),
            21 => format!("regr_count({}, {})", self.integer(1), self.float(0)),
            22 => format!("regr_count({}, {})", self.float(0), self.integer(0)),
            _ => format!("median({})", self.integer(1)),
        };
        format!("{call}{filter}")
    }

    /// Values computed of several aggregates.
    pub(super) fn statistics(&mut self) -> String {
        let key = self.pick(&["k", "s", "p", "d", "x", "k % 2", "k, b", "s, d"]);
        let selection = self.selection();
        let (one, two) = (self.statistic(), self.statistic());
        let having = match self.random.one_in(3) {
            true => format!(" HAVING {two} IS NOT NULL"),
            false => String::new(),
        };
        format!(
            "SELECT {key}, {one} AS m0, CASE WHEN count(*) > 2 THEN {two} END AS m1, \
             coalesce(sum(a), 0) + count(b) * 2 AS m2 FROM t{selection} GROUP BY {key}{having}"
        )
    }

    /// Sets of groups by expressions, filtered by which they are.
    pub(super) fn more_sets(&mut self) -> String {
        let (key, sets) = *self.random.pick(&[
            ("k, s, p", "ROLLUP(p, k, s)"),
            ("k, s, p", "CUBE(k, s, p)"),
            ("k, s, p", "GROUPING SETS ((k, s), (k), (k), (p, s), ())"),
            ("k, s, p", "p, ROLLUP(k, s)"),
            ("k, s, p", "CUBE(k), CUBE(s, p)"),
            ("k, s, d", "ROLLUP(k), ROLLUP(s, d)"),
            ("b, x, d", "GROUPING SETS ((b, x), (d), ())"),
        ]);
        let (aggregates, selection) = (self.aggregates(), self.selection());
        let last = key.split(", ").last().unwrap_or("k");
        let having = match self.random.one_in(3) {
            true => format!(" HAVING grouping({last}) = {}", self.random.below(2)),
            false => String::new(),
        };
        format!(
            "SELECT {key}, grouping({key}) AS g, {aggregates} FROM t{selection} \
             GROUP BY {sets}{having}"
        )
    }
}
