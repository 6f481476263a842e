//! Set algebra on the ranges of predicates, so that several comparisons of one column become one.

use tersecades_columnar::predicate::{KeyRange, Predicate};
use tersecades_columnar::types::Physical;

/// A type whose inclusive ranges can be combined.
trait Key: Copy + Ord {
    /// The next larger value; `None` for the largest.
    fn next(self) -> Option<Self>;

    /// The next smaller value; `None` for the smallest.
    fn previous(self) -> Option<Self>;
}

macro_rules! key {
    ($($t:ty),*) => {$(
        impl Key for $t {
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }

            fn previous(self) -> Option<Self> {
                self.checked_sub(1)
            }
        }
    )*};
}
key!(u64, i128);

/// Values in both sets; each is sorted and disjoint, and so is the result.
fn intersect<K: Key>(a: &[(K, K)], b: &[(K, K)]) -> Vec<(K, K)> {
    let mut both = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (low, high) = (x.0.max(y.0), x.1.min(y.1));
        if low <= high {
            both.push((low, high));
        }
        if x.1 < y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    both
}

/// Values in `least..=most` that are in no range.
fn complement<K: Key>(ranges: &[(K, K)], least: K, most: K) -> Vec<(K, K)> {
    let mut rest = Vec::new();
    let mut start = Some(least);
    for (low, high) in ranges {
        if let (Some(start), Some(before)) = (start, low.previous())
            && start <= before
        {
            rest.push((start, before));
        }
        start = high.next();
    }
    if let Some(start) = start.filter(|start| *start <= most) {
        rest.push((start, most));
    }
    rest
}

fn pairs(ranges: &[KeyRange]) -> Vec<(u64, u64)> {
    ranges.iter().map(|range| (range.low, range.high)).collect()
}

fn keys(pairs: &[(u64, u64)]) -> Predicate {
    Predicate::Keys(
        pairs
            .iter()
            .map(|(low, high)| KeyRange {
                low: *low,
                high: *high,
            })
            .collect(),
    )
}

/// The values that fail `predicate`; `None` for text, whose predicates are opaque.
pub(super) fn negate(predicate: &Predicate, physical: Physical) -> Option<Predicate> {
    match predicate {
        Predicate::Keys(ranges) => Some(keys(&complement(&pairs(ranges), 0, physical.key_max()))),
        Predicate::Wide(ranges) => Some(Predicate::Wide(complement(ranges, i128::MIN, i128::MAX))),
        Predicate::Text(_) => None,
    }
}

/// The values that pass both predicates; `None` for text.
pub(super) fn both(a: &Predicate, b: &Predicate) -> Option<Predicate> {
    match (a, b) {
        (Predicate::Keys(a), Predicate::Keys(b)) => Some(keys(&intersect(&pairs(a), &pairs(b)))),
        (Predicate::Wide(a), Predicate::Wide(b)) => Some(Predicate::Wide(intersect(a, b))),
        _ => None,
    }
}

/// The values that pass at least one predicate; `None` for text.
pub(super) fn either(a: &Predicate, b: &Predicate, physical: Physical) -> Option<Predicate> {
    let neither = both(&negate(a, physical)?, &negate(b, physical)?)?;
    negate(&neither, physical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algebra_agrees_with_membership_at_every_key() {
        let physical = Physical::Integer {
            bytes: 1,
            signed: false,
        };
        let sets: Vec<Vec<(u64, u64)>> = vec![
            vec![],
            vec![(0, 255)],
            vec![(0, 0), (255, 255)],
            vec![(3, 9), (11, 11), (200, 255)],
            vec![(0, 10), (12, 199)],
        ];
        for a in &sets {
            let not = negate(&keys(a), physical).unwrap();
            for b in &sets {
                let (x, y) = (keys(a), keys(b));
                let and = both(&x, &y).unwrap();
                let or = either(&x, &y, physical).unwrap();
                for key in 0..=255 {
                    let (p, q) = (x.matches_key(key), y.matches_key(key));
                    assert_eq!(and.matches_key(key), p && q);
                    assert_eq!(or.matches_key(key), p || q);
                    assert_eq!(not.matches_key(key), !p);
                }
            }
        }
        let float = Physical::Float { bytes: 8 };
        let all = negate(&keys(&[]), float).unwrap();
        assert!(all.matches_key(u64::MAX) && all.matches_key(0));
    }
}
