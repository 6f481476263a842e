//! Unions, intersections and differences, within each other.

use super::Maker;

impl Maker<'_> {
    /// A set of rows of a number, a text and a date; in an order, and some of them, or as it is.
    pub(super) fn set(&mut self) -> (String, bool) {
        let set = self.set_of(2);
        match self.random.below(4) {
            0 => {
                let number = self.random.below(9);
                let text = format!("{set} ORDER BY c1 DESC, c2, c3 LIMIT {number}");
                (text, true)
            }
            1 => {
                let text = format!(
                    "SELECT c2, count(*) AS n, sum(c1) AS total FROM ({set}) AS w GROUP BY c2"
                );
                (text, false)
            }
            _ => (set, false),
        }
    }

    fn set_of(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.one_in(4) {
            let (table, distinct) = (self.pick(&["t", "u"]), self.pick(&["", "DISTINCT "]));
            let number = match self.random.one_in(3) {
                true => self.integer(1),
                false => self.pick(&["a", "b", "k"]),
            };
            let text = match self.random.one_in(3) {
                true => self.text(1),
                false => self.pick(&["s", "NULL", "'a'"]),
            };
            let selection = self.selection();
            return format!(
                "SELECT {distinct}{number} AS c1, {text} AS c2, d AS c3 FROM {table}{selection}"
            );
        }
        let (left, right) = (self.set_of(depth - 1), self.set_of(depth - 1));
        let set = self.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT"]);
        format!("({left}) {set} ({right})")
    }
}
