//! Joins of every kind by several keys and other conditions.

use super::Maker;

impl Maker<'_> {
    /// Rows of a join, or groups of them.
    pub(super) fn pairing(&mut self) -> String {
        let kind = self.pick(&["", "LEFT ", "RIGHT ", "FULL ", "SEMI ", "ANTI "]);
        let one_side = matches!(kind.as_str(), "SEMI " | "ANTI ");
        let on = self.pairs(kind == "FULL ");
        let right = self.pick(&["u", "t AS u", "(SELECT * FROM u WHERE b > -3) AS u"]);
        let selection = match self.random.below(3) {
            0 => String::new(),
            1 if !one_side => format!(" WHERE {}", self.condition_of("u.")),
            _ => format!(" WHERE {}", self.condition_of("t.")),
        };
        let join = format!("FROM t {kind}JOIN {right} ON {on}{selection}");
        match (one_side, self.random.below(3)) {
            (true, 0) => format!("SELECT t.k, count(*) AS n, sum(t.a) AS m {join} GROUP BY t.k"),
            (true, _) => format!("SELECT t.* {join}"),
            (false, 0) => format!(
                "SELECT t.s, u.k, count(*) AS n, sum(u.b) AS m, max(t.x) AS x {join} \
                 GROUP BY t.s, u.k"
            ),
            (false, 1) => format!("SELECT t.a, t.s, t.x, u.a AS ua, u.d, u.p {join}"),
            (false, _) => format!("SELECT count(*) AS n, min(u.s) AS m, max(t.ts) AS l {join}"),
        }
    }

    /// What pairs the rows of `t` and `u`.
    fn pairs(&mut self, equal_keys: bool) -> String {
        let keys = [
            "t.k = u.k",
            "t.s = u.s",
            "t.a = u.a",
            "t.x = u.x",
            "t.p = u.p",
            "t.d = u.d",
            "t.ts = u.ts",
            "t.a = u.b + 1",
            "t.b = u.x",
            "upper(t.s) = u.s",
            "(t.k IS NOT DISTINCT FROM u.k)",
            "(t.s IS NOT DISTINCT FROM u.s)",
        ];
        let count = match equal_keys {
            true => 1 + self.random.below(3),
            false => self.random.below(4),
        };
        let mut terms: Vec<String> = (0..count).map(|_| self.pick(&keys)).collect();
        if equal_keys && self.random.one_in(2) {
            return terms.join(" AND ");
        }
        let others = match count {
            0 => 1 + self.random.below(2),
            _ => self.random.below(3),
        };
        for _ in 0..others {
            let term = match self.random.below(5) {
                0 => self.condition_of("t."),
                1 => self.condition_of("u."),
                2 => format!("t.a < u.{}", self.pick(&["a", "b", "x"])),
                3 => "(t.b = u.b OR t.s > u.s)".to_owned(),
                _ => self.pick(&["t.ts >= u.ts", "t.d <> u.d", "t.p", "NOT u.p"]),
            };
            terms.push(format!("({term})"));
        }
        terms.join(" AND ")
    }

    /// Joins of columns of one name.
    pub(super) fn using(&mut self) -> String {
        let (first, second) = (
            self.pick(&["", "LEFT ", "RIGHT ", "FULL "]),
            self.pick(&["", "LEFT ", "RIGHT ", "FULL "]),
        );
        let keys = self.pick(&["k", "k, s", "s, p", "d"]);
        let third = "(SELECT k, s, p, d, count(*) AS n FROM u GROUP BY k, s, p, d) AS w";
        match self.random.below(3) {
            0 => format!("SELECT {keys}, t.a, u.a AS ua FROM t {first}JOIN u USING ({keys})"),
            1 => format!(
                "SELECT {keys}, t.a, u.a AS ua, w.n FROM t {first}JOIN u USING ({keys}) \
                 {second}JOIN {third} USING ({keys})"
            ),
            _ => format!(
                "SELECT {keys}, count(*) AS n, sum(t.b) AS m FROM t {first}JOIN u USING ({keys}) \
                 GROUP BY {keys}"
            ),
        }
    }
}
