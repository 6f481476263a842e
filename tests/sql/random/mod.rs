//! Random tables and random queries over them, in the SQL that both engines share.
//!
//! Integer division is the one operator the engines spell differently: `Query::ours` has `/`,
//! `Query::theirs` has `//`.

mod expression;
pub(crate) mod file;
mod frame;
mod pairing;
mod relation;
mod set;
mod shape;
mod statistic;
pub(crate) mod table;

use tersecades_testkit::random::Random;

/// A query in both spellings.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) ours: String,
    pub(crate) theirs: String,
    /// Whether its rows have an order.
    pub(crate) ordered: bool,
}

/// Columns of both tables: whole numbers, floats, text, truth, times, dates.
const INTEGERS: [&str; 3] = ["a", "b", "k"];
const FLOATS: [&str; 1] = ["x"];
const TEXTS: [&str; 1] = ["s"];
const TIMES: [&str; 2] = ["ts", "d"];

/// Parts of times, and units between them.
const PARTS: [&str; 9] = [
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "dayofyear",
    "dayofweek",
    "isodow",
    "minute",
];
const UNITS: [&str; 7] = ["second", "hour", "day", "week", "month", "quarter", "year"];

/// A query.
pub(crate) fn query(random: &mut Random) -> Query {
    let mut maker = Maker { random, prefix: "" };
    let query = maker.query();
    match maker.random.one_in(3) {
        true => maker.over_relation(query),
        false => query,
    }
}

impl Maker<'_> {
    /// A query over the tables themselves.
    fn query(&mut self) -> Query {
        let (ours, ordered) = match self.random.below(28) {
            0 => (self.join(), false),
            1 => (self.union(), false),
            2 | 3 => (self.plain(), false),
            4 => (self.sorted(), true),
            5 => (self.whole(), false),
            6 => (self.subquery(), false),
            7 => return self.windows(),
            8 | 9 => (self.over(), false),
            10 => (self.range(), false),
            11 => (self.sets(), false),
            12 => (self.distinct_on(), true),
            13 => (self.correlated(), false),
            14 => (self.joins(), false),
            15 => (self.as_of(), false),
            16 => (self.first_ranks(), false),
            17 => self.set(),
            18 | 19 => (self.pairing(), false),
            20 => (self.using(), false),
            21 | 22 => (self.frames(), false),
            23 => (self.statistics(), false),
            24 => (self.more_sets(), false),
            _ => (self.grouped(), false),
        };
        Query {
            theirs: ours.replace(" / ", " // "),
            ours,
            ordered,
        }
    }
}

struct Maker<'r> {
    random: &'r mut Random,
    prefix: &'static str,
}

impl Maker<'_> {
    fn pick(&mut self, choices: &[&str]) -> String {
        (*self.random.pick(choices)).to_owned()
    }

    fn column(&mut self, names: &[&str]) -> String {
        let name = self.pick(names);
        format!("{}{name}", self.prefix)
    }

    fn integer(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.one_in(3) {
            return match self.random.one_in(3) {
                true => self.random.between(-9, 9).to_string(),
                false => self.column(&INTEGERS),
            };
        }
        let below = depth - 1;
        match self.random.below(24) {
            17..=23 => self.more_integer(below),
            12 => {
                let part = self.pick(&PARTS);
                format!("{part}({})", self.column(&TIMES))
            }
            13 => {
                let (count, unit) = (self.pick(&["date_diff", "date_sub"]), self.pick(&UNITS));
                let (from, to) = (self.column(&TIMES), self.column(&TIMES));
                format!("{count}('{unit}', {from}, {to})")
            }
            14 => format!("({} // {})", self.integer(below), self.integer(below)),
            15 => format!("xor({}, {})", self.integer(below), self.integer(below)),
            16 => format!(
                "CAST(bit_count(CAST({} AS BIGINT)) AS BIGINT)",
                self.integer(below)
            ),
            0..=2 => {
                let operator = self.pick(&["+", "-", "*"]);
                format!(
                    "({} {operator} {})",
                    self.integer(below),
                    self.integer(below)
                )
            }
            3 => format!("({} / {})", self.integer(below), self.integer(below)),
            4 => format!("({} % {})", self.integer(below), self.integer(below)),
            5 => format!("abs({})", self.integer(below)),
            6 => format!("length({})", self.text(below)),
            7 => format!("coalesce({}, {})", self.integer(below), self.integer(below)),
            8 => {
                let part = self.pick(&["month", "day", "hour", "minute", "dow", "quarter"]);
                format!("CAST(extract({part} FROM {}ts) AS BIGINT)", self.prefix)
            }
            9 => format!("nullif({}, {})", self.integer(below), self.integer(below)),
            10 => format!("greatest({}, {})", self.integer(below), self.integer(below)),
            _ => {
                let condition = self.condition(below);
                let (yes, no) = (self.integer(below), self.integer(below));
                match self.random.one_in(2) {
                    true => format!("CASE WHEN {condition} THEN {yes} ELSE {no} END"),
                    false => format!("if({condition}, {yes}, {no})"),
                }
            }
        }
    }

    fn float(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.one_in(2) {
            return self.column(&FLOATS);
        }
        let below = depth - 1;
        match self.random.below(9) {
            6..=8 => self.more_float(below),
            4 => format!("even({})", self.float(below)),
            5 => format!("fmod({}, 2.5)", self.float(below)),
            0 => format!("({} + {})", self.float(below), self.float(below)),
            1 => format!("({} * 0.5)", self.float(below)),
            2 => format!("floor({})", self.float(below)),
            _ => format!("CAST({} AS DOUBLE)", self.integer(below)),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.one_in(2) {
            return match self.random.one_in(5) {
                true => self.pick(&["''", "'a'", "'x y'"]),
                false => self.column(&TEXTS),
            };
        }
        let below = depth - 1;
        match self.random.below(20) {
            14..=19 => self.more_text(below),
            11 => format!("strftime({}, '%a %-d %b %j %U')", self.column(&TIMES)),
            12 => format!("dayname({})", self.column(&TIMES)),
            13 => format!("regexp_extract({}, '[a-c]([a-z])?', 1)", self.text(below)),
            0 => format!("upper({})", self.text(below)),
            1 => format!("lower({})", self.text(below)),
            2 => format!("({} || {})", self.text(below), self.text(below)),
            3 => format!("substr({}, 1, 2)", self.text(below)),
            4 => format!("replace({}, 'b', 'q')", self.text(below)),
            5 => format!("CAST({} AS VARCHAR)", self.integer(below)),
            6 => format!("reverse({})", self.text(below)),
            7 => format!("left({}, 2)", self.text(below)),
            8 => format!("lpad({}, 4, '*')", self.text(below)),
            9 => format!("nullif({}, 'a')", self.text(below)),
            _ => format!("trim({})", self.text(below)),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth > 0 && self.random.one_in(2) {
            let below = depth - 1;
            return match self.random.below(4) {
                0 => format!("NOT ({})", self.condition(below)),
                1 => format!("({} OR {})", self.condition(below), self.condition(below)),
                _ => format!("({} AND {})", self.condition(below), self.condition(below)),
            };
        }
        let below = depth.saturating_sub(1);
        let compare = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
        match self.random.below(24) {
            16..=23 => self.more_condition(below),
            13 => format!("regexp_matches({}, '[ab]c?$')", self.text(below)),
            14 => format!("(prefix({}, 'A') OR suffix({0}, 'b'))", self.column(&TEXTS)),
            15 => {
                let width = self.pick(&["90 seconds", "5 days", "2 months"]);
                format!(
                    "time_bucket(INTERVAL '{width}', {}ts) {compare} \
                     TIMESTAMP '2024-01-01 00:01:30'",
                    self.prefix
                )
            }
            10 => {
                let unit = self.pick(&["minute", "hour", "day"]);
                format!(
                    "date_trunc('{unit}', {}ts) {compare} TIMESTAMP '2024-01-01 00:02:00'",
                    self.prefix
                )
            }
            11 => format!("{}d {compare} DATE '2024-02-10'", self.prefix),
            12 => format!(
                "({} IS DISTINCT FROM {})",
                self.integer(below),
                self.integer(below)
            ),
            0..=2 => format!("{} {compare} {}", self.integer(below), self.integer(below)),
            3 => format!("{} {compare} {}", self.float(below), self.float(below)),
            4 => format!("{} {compare} {}", self.text(below), self.text(below)),
            5 => format!("{} IS NULL", self.integer(below)),
            6 => format!(
                "{} IN (1, 2, {})",
                self.integer(below),
                self.random.between(-3, 3)
            ),
            7 => format!(
                "{} BETWEEN -3 AND {}",
                self.integer(below),
                self.random.between(-3, 9)
            ),
            8 => {
                let pattern = self.pick(&["'a%'", "'%b%'", "'_b'", "'%'", "'A__'"]);
                format!("{} LIKE {pattern}", self.text(below))
            }
            _ => format!("{}p", self.prefix),
        }
    }

    fn selection(&mut self) -> String {
        match self.random.one_in(3) {
            true => String::new(),
            false => format!(" WHERE {}", self.condition(2)),
        }
    }

    fn plain(&mut self) -> String {
        let distinct = if self.random.one_in(4) {
            "DISTINCT "
        } else {
            ""
        };
        let columns = [self.integer(2), self.text(2), self.float(1)];
        let selection = self.selection();
        let [integer, text, float] = columns;
        format!("SELECT {distinct}{integer} AS c1, {text} AS c2, {float} AS c3 FROM t{selection}")
    }

    fn sorted(&mut self) -> String {
        let (key, direction) = (self.integer(1), self.pick(&["ASC", "DESC"]));
        let nulls = self.pick(&["", " NULLS FIRST", " NULLS LAST"]);
        let limit = match self.random.one_in(2) {
            true => format!(
                " LIMIT {} OFFSET {}",
                self.random.below(6),
                self.random.below(4)
            ),
            false => String::new(),
        };
        let selection = self.selection();
        // Every column decides the order, so that it is one.
        format!(
            "SELECT {key} AS c1, a, b, k, x, s, ts FROM t{selection} \
             ORDER BY c1 {direction}{nulls}, a, b, k, x, s, ts{limit}"
        )
    }

    fn aggregates(&mut self) -> String {
        let count = 1 + self.random.below(3);
        let mut calls = Vec::new();
        for number in 0..count {
            let call = match self.random.below(16) {
                11..=15 => self.statistic(),
                0 => "count(*)".to_owned(),
                1 => format!("count({})", self.integer(1)),
                2 => format!("sum({})", self.integer(1)),
                3 => format!("min({})", self.integer(1)),
                4 => format!("max({})", self.float(1)),
                5 => format!("avg({})", self.integer(1)),
                6 => format!("count(DISTINCT {})", self.integer(1)),
                7 => format!("min({})", self.text(0)),
                8 => format!("median({})", self.float(0)),
                9 => format!("quantile_cont({}, 0.25)", self.float(0)),
                _ => format!(
                    "sum({}) FILTER (WHERE {})",
                    self.integer(1),
                    self.condition(1)
                ),
            };
            calls.push(format!("{call} AS m{number}"));
        }
        calls.join(", ")
    }

    fn whole(&mut self) -> String {
        let (aggregates, selection) = (self.aggregates(), self.selection());
        format!("SELECT {aggregates} FROM t{selection}")
    }

    fn grouped(&mut self) -> String {
        let keys = match self.random.below(4) {
            0 => vec![self.pick(&["k", "s", "p", "b"])],
            1 => vec!["k".to_owned(), "s".to_owned()],
            2 => vec![self.integer(1)],
            _ => vec!["p".to_owned(), self.text(1)],
        };
        let named: Vec<String> = keys
            .iter()
            .enumerate()
            .map(|(number, key)| format!("{key} AS g{number}"))
            .collect();
        let grouped: Vec<String> = (1..=keys.len())
            .map(|position| position.to_string())
            .collect();
        let having = match self.random.one_in(3) {
            true => match self.random.one_in(2) {
                true => format!(" HAVING count(*) > {}", self.random.below(3)),
                false => format!(
                    " HAVING sum(a) > {} OR min(s) IS NULL",
                    self.random.below(9)
                ),
            },
            false => String::new(),
        };
        let (aggregates, selection) = (self.aggregates(), self.selection());
        format!(
            "SELECT {}, {aggregates} FROM t{selection} GROUP BY {}{having}",
            named.join(", "),
            grouped.join(", ")
        )
    }

    fn join(&mut self) -> String {
        let kind = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let keys = self.pick(&[
            "t.k = u.k",
            "t.k = u.k AND t.b = u.b",
            "t.s = u.s",
            "t.a = u.b",
        ]);
        self.prefix = "t.";
        let (integer, selection) = (self.integer(1), self.selection());
        self.prefix = "";
        format!("SELECT {integer} AS c1, t.a, u.a AS ua, u.s FROM t {kind} u ON {keys}{selection}")
    }

    fn union(&mut self) -> String {
        let all = self.pick(&["UNION ALL", "UNION"]);
        let (a, b) = (self.integer(1), self.integer(1));
        let (x, y) = (self.selection(), self.selection());
        format!("SELECT {a} AS c1, s FROM t{x} {all} SELECT {b} AS c1, s FROM u{y}")
    }

    fn subquery(&mut self) -> String {
        let (inner, outer) = (self.selection(), self.condition(1));
        match self.random.below(4) {
            0 => format!(
                "WITH w AS (SELECT k, count(*) AS n, sum(a) AS total FROM t{inner} GROUP BY k) \
                 SELECT k, n, total FROM w WHERE n > 1"
            ),
            1 => format!("SELECT a, s FROM t WHERE k IN (SELECT k FROM u{inner}) AND {outer}"),
            2 => format!("SELECT a FROM t WHERE a > (SELECT avg(a) FROM u{inner}) AND {outer}"),
            _ => format!(
                "SELECT c, count(*) AS n FROM (SELECT {} AS c FROM t{inner}) AS w GROUP BY c",
                self.integer(1)
            ),
        }
    }
}
