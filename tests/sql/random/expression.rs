//! Expressions beyond the common ones.

use super::{FLOATS, Maker, TEXTS, TIMES};

impl Maker<'_> {
    pub(super) fn more_integer(&mut self, below: usize) -> String {
        match self.random.below(14) {
            0 => format!(
                "strpos({}, {})",
                self.text(below),
                self.pick(&["'b'", "''", "s"])
            ),
            1 => format!("ascii({})", self.text(below)),
            2 => format!("least({}, {})", self.integer(below), self.integer(below)),
            3 => format!("CAST({} AS BIGINT)", self.condition(below)),
            4 => format!(
                "TRY_CAST(replace({}, '.', 'p') AS BIGINT)",
                self.text(below)
            ),
            5 => format!(
                "CASE {} WHEN 1 THEN {} WHEN b THEN 7 ELSE {} END",
                self.integer(below),
                self.integer(below),
                self.integer(below)
            ),
            6 => format!("CAST(floor({}) AS BIGINT)", self.float(below)),
            7 => format!("(- {})", self.integer(below)),
            8 => format!("({}d - DATE '2024-02-01')", self.prefix),
            9 => format!("({} & {})", self.integer(below), self.integer(below)),
            10 => format!("({} | {})", self.integer(below), self.integer(below)),
            11 => format!("position('c' IN {})", self.text(below)),
            12 => {
                let time = self.column(&TIMES);
                let unit = self.pick(&["week", "month", "quarter", "year"]);
                format!("day(date_trunc('{unit}', {time}))")
            }
            _ => {
                let days = self.random.between(-40, 40);
                format!("dayofyear({} + INTERVAL '{days}' DAY)", self.column(&TIMES))
            }
        }
        .replace("WHEN b ", &format!("WHEN {}b ", self.prefix))
        .replace(", s)", &format!(", {}s)", self.prefix))
    }

    pub(super) fn more_float(&mut self, below: usize) -> String {
        match self.random.below(9) {
            0 => format!("coalesce({}, {})", self.float(below), self.float(below)),
            1 => format!("abs({})", self.float(below)),
            2 => format!("ceil({})", self.float(below)),
            3 => format!("round({})", self.float(below)),
            4 => format!("greatest({}, {})", self.float(below), self.float(below)),
            5 => format!("(- {})", self.float(below)),
            6 => format!("nullif({}, 2.5)", self.float(below)),
            7 => format!("({} - {})", self.float(below), self.integer(below)),
            _ => format!(
                "CASE WHEN {} THEN {} END",
                self.condition(below),
                self.float(below)
            ),
        }
    }

    pub(super) fn more_text(&mut self, below: usize) -> String {
        match self.random.below(19) {
            0 => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.condition(below),
                self.text(below),
                self.text(below)
            ),
            1 => format!("coalesce({}, {})", self.text(below), self.text(below)),
            2 => format!("concat({}, {})", self.text(below), self.integer(below)),
            3 => format!(
                "concat_ws('-', {}, {}, 'e')",
                self.text(below),
                self.text(below)
            ),
            4 => format!("repeat({}, 2)", self.text(below)),
            5 => format!("rpad({}, 3, '.')", self.text(below)),
            6 => format!("right({}, 2)", self.text(below)),
            7 => format!(
                "split_part({}, ' ', {})",
                self.text(below),
                self.random.between(1, 2)
            ),
            8 => format!("translate({}, 'abz', 'xy')", self.text(below)),
            9 => format!(
                "substr({}, {})",
                self.text(below),
                self.random.between(1, 3)
            ),
            10 => format!("ltrim({})", self.text(below)),
            11 => format!("rtrim({}, 'bc')", self.text(below)),
            12 => format!("CAST({}d AS VARCHAR)", self.prefix),
            13 => format!("CAST({} AS VARCHAR)", self.condition(below)),
            14 => format!(
                "CAST(CAST({} AS DECIMAL(22, 2)) AS VARCHAR)",
                self.integer(below)
            ),
            15 => format!("regexp_replace({}, '[ab]', 'z')", self.text(below)),
            16 => format!("greatest({}, {})", self.text(below), self.text(below)),
            17 => format!("left({}, -1)", self.text(below)),
            _ => format!("monthname({})", self.column(&TIMES)),
        }
    }

    pub(super) fn more_condition(&mut self, below: usize) -> String {
        let compare = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
        let prefix = self.prefix;
        match self.random.below(19) {
            0 => {
                let is = self.pick(&["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN"]);
                format!("(({}) IS {is})", self.condition(below))
            }
            1 => format!(
                "{} NOT IN (3, {})",
                self.integer(below),
                self.integer(below)
            ),
            2 => format!("{} NOT IN (3, NULL)", self.integer(below)),
            3 => format!(
                "{} NOT BETWEEN {} AND {}",
                self.integer(below),
                self.integer(below),
                self.integer(below)
            ),
            4 => {
                let like = self.pick(&["ILIKE", "NOT LIKE", "NOT ILIKE"]);
                let pattern = self.pick(&["'a%'", "'%B%'", "'_b'", "''", "'A__'"]);
                format!("{} {like} {pattern}", self.text(below))
            }
            5 => format!("{} IN ('a', 'ab', {})", self.text(below), self.text(below)),
            6 => format!("{} BETWEEN 'a' AND {}", self.text(below), self.text(below)),
            7 => format!(
                "{prefix}ts BETWEEN TIMESTAMP '2024-01-01 00:01:00' AND \
                 TIMESTAMP '2024-01-01 00:01:00' + INTERVAL '100' SECOND"
            ),
            8 => format!("{prefix}d + INTERVAL '1' MONTH {compare} DATE '2024-03-15'"),
            9 => format!("{prefix}ts - INTERVAL '90' SECOND {compare} {prefix}d"),
            10 => format!("{} {compare} {}", self.float(below), self.integer(below)),
            11 => format!(
                "CAST({} AS DECIMAL(22, 2)) {compare} CAST({} AS DECIMAL(24, 3))",
                self.integer(below),
                self.integer(below)
            ),
            12 => format!("({prefix}p IS DISTINCT FROM ({}))", self.condition(below)),
            13 => format!("contains({}, 'b')", self.text(below)),
            14 => format!("starts_with({}, {})", self.column(&TEXTS), self.text(below)),
            15 => format!("coalesce({prefix}p, {})", self.condition(below)),
            16 => format!("CAST({} AS BIGINT) {compare} 2.5", self.integer(below)),
            17 => format!("{} IN (1.5, -2.25, 8)", self.column(&FLOATS)),
            _ => format!(
                "CASE WHEN {} THEN {} ELSE {prefix}p END",
                self.condition(below),
                self.condition(below)
            ),
        }
    }
}
