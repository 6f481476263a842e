//! Cut points: where classes of values begin that comparisons with constants cannot tell apart.
//!
//! A comparison with constants passes whole ranges of values, so of each value it only matters
//! between which ends of such ranges it lies. Values of one class give the same answer to every
//! predicate whose points are among the cuts.

use crate::predicate::Predicate;

/// The first values of classes, ascending and distinct; what is below the first is a class too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutPoints {
    /// Keys of integers or floats.
    Keys(Vec<u64>),
    /// 128-bit values.
    Wide(Vec<i128>),
    /// Bytes of text.
    Text(Vec<Vec<u8>>),
}

impl Default for CutPoints {
    fn default() -> Self {
        CutPoints::Keys(Vec::new())
    }
}

impl CutPoints {
    /// How many there are; the classes are one more.
    pub fn len(&self) -> usize {
        match self {
            CutPoints::Keys(points) => points.len(),
            CutPoints::Wide(points) => points.len(),
            CutPoints::Text(points) => points.len(),
        }
    }

    /// Whether all values are one class.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the points of `other`, which are of the same kind where both have any.
    pub fn merge(&mut self, other: CutPoints) {
        match (&mut *self, other) {
            (_, other) if other.is_empty() => {}
            (CutPoints::Keys(points), CutPoints::Keys(more)) => join(points, more),
            (CutPoints::Wide(points), CutPoints::Wide(more)) => join(points, more),
            (CutPoints::Text(points), CutPoints::Text(more)) => join(points, more),
            (_, other) => *self = other,
        }
    }

    /// Whether every point of `other` is one of these.
    pub fn covers(&self, other: &CutPoints) -> bool {
        match (self, other) {
            (_, other) if other.is_empty() => true,
            (CutPoints::Keys(points), CutPoints::Keys(asked)) => holds(points, asked),
            (CutPoints::Wide(points), CutPoints::Wide(asked)) => holds(points, asked),
            (CutPoints::Text(points), CutPoints::Text(asked)) => holds(points, asked),
            _ => false,
        }
    }
}

fn join<P: Ord>(points: &mut Vec<P>, more: Vec<P>) {
    points.extend(more);
    points.sort_unstable();
    points.dedup();
}

fn holds<P: Ord>(points: &[P], asked: &[P]) -> bool {
    asked
        .iter()
        .all(|point| points.binary_search(point).is_ok())
}

/// Starts and first values after the ends of inclusive ranges.
fn ends<P: Copy + Ord>(
    ranges: impl Iterator<Item = (P, P)>,
    least: P,
    next: impl Fn(P) -> Option<P>,
) -> Vec<P> {
    let mut points = Vec::new();
    for (low, high) in ranges {
        points.extend((low > least).then_some(low));
        points.extend(next(high));
    }
    points.sort_unstable();
    points.dedup();
    points
}

impl Predicate {
    /// Where values that pass and values that do not may meet.
    ///
    /// # Examples
    /// ```
    /// use arrow_schema::DataType;
    /// use tersecades_columnar::cut::CutPoints;
    /// use tersecades_columnar::predicate::{Comparison, Predicate};
    /// let slow = Predicate::compare(&DataType::UInt16, Comparison::GreaterOrEqual, &100.into());
    /// // The second point is the first value that the type does not hold.
    /// assert_eq!(slow.unwrap().cut_points(), CutPoints::Keys(vec![100, 65_536]));
    /// ```
    pub fn cut_points(&self) -> CutPoints {
        match self {
            Predicate::Keys(ranges) => {
                let ranges = ranges.iter().map(|range| (range.low, range.high));
                CutPoints::Keys(ends(ranges, 0, |high| high.checked_add(1)))
            }
            Predicate::Wide(ranges) => {
                let next = |high: i128| high.checked_add(1);
                CutPoints::Wide(ends(ranges.iter().copied(), i128::MIN, next))
            }
            Predicate::Text(text) => CutPoints::Text(text.cut_points()),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use crate::predicate::Comparison;

    use super::*;

    #[test]
    fn a_predicate_is_constant_between_its_cuts() {
        let small = DataType::Int8;
        for constant in [-128, -3, 0, 5, 127] {
            for how in [
                Comparison::Equal,
                Comparison::NotEqual,
                Comparison::Less,
                Comparison::GreaterOrEqual,
            ] {
                let predicate = Predicate::compare(&small, how, &constant.into()).unwrap();
                let CutPoints::Keys(points) = predicate.cut_points() else {
                    panic!("integers have keys");
                };
                for key in 1..=255u64 {
                    let changes = predicate.matches_key(key) != predicate.matches_key(key - 1);
                    assert!(
                        !changes || points.contains(&key),
                        "{how:?} {constant} at {key}"
                    );
                }
            }
        }
        let text = Predicate::compare(&DataType::Utf8, Comparison::Equal, &"b".into()).unwrap();
        let points = CutPoints::Text(vec![b"b".to_vec(), b"b\0".to_vec()]);
        assert_eq!(text.cut_points(), points);
    }

    #[test]
    fn cuts_cover_what_was_merged_into_them() {
        let mut cuts = CutPoints::default();
        cuts.merge(CutPoints::Wide(vec![3, 9]));
        cuts.merge(CutPoints::Wide(vec![5, 9]));
        assert_eq!(cuts, CutPoints::Wide(vec![3, 5, 9]));
        assert!(cuts.covers(&CutPoints::Wide(vec![5])) && cuts.covers(&CutPoints::default()));
        assert!(!cuts.covers(&CutPoints::Wide(vec![4])));
    }
}
