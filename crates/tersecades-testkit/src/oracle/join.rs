//! Joins, by their definitions: every left row is held against every right one.

use tersecades_columnar::types::Value;
use tersecades_engine::operator::join::JoinKind;
use tersecades_engine::operator::join::as_of::Direction;

use super::Row;
use super::order::order;

/// A pair of positions; the side that is absent has nulls.
pub type Pair = (Option<usize>, Option<usize>);

/// Whether two rows have equal values in the columns `on`; null equals null only if asked.
pub fn equal_keys(left: &Row, right: &Row, on: &[(usize, usize)], null_equals_null: bool) -> bool {
    on.iter().all(|(l, r)| {
        let (l, r) = (&left[*l], &right[*r]);
        match (l == &Value::Null, r == &Value::Null) {
            (true, true) => null_equals_null,
            (false, false) => order(l, r).is_eq(),
            _ => false,
        }
    })
}

/// What a join of `kind` hands on of the positions `left` and `right`: left rows in order, each
/// with its right rows in theirs, then right rows.
pub fn join(
    kind: JoinKind,
    left: &[usize],
    right: &[usize],
    matches: impl Fn(usize, usize) -> bool,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for l in left {
        let found: Vec<usize> = right.iter().copied().filter(|r| matches(*l, *r)).collect();
        match kind {
            JoinKind::LeftSemi if !found.is_empty() => pairs.push((Some(*l), None)),
            JoinKind::LeftAnti if found.is_empty() => pairs.push((Some(*l), None)),
            JoinKind::Left | JoinKind::Full if found.is_empty() => pairs.push((Some(*l), None)),
            JoinKind::Inner
            | JoinKind::Left
            | JoinKind::Right
            | JoinKind::Full
            | JoinKind::Cross => {
                pairs.extend(found.iter().map(|r| (Some(*l), Some(*r))));
            }
            _ => {}
        }
    }
    for r in right {
        let paired = left.iter().any(|l| matches(*l, *r));
        let shown = match kind {
            JoinKind::Right | JoinKind::Full | JoinKind::RightAnti => !paired,
            JoinKind::RightSemi => paired,
            _ => false,
        };
        if shown {
            pairs.push((None, Some(*r)));
        }
    }
    pairs
}

/// The watermark before each row: the largest time of earlier rows less the lateness.
pub fn watermarks(times: &[Option<i64>], lateness: i64) -> Vec<Option<i64>> {
    let mut newest: Option<i64> = None;
    let mut before = Vec::new();
    for time in times {
        before.push(newest.map(|newest| newest - lateness));
        newest = newest.max(*time);
    }
    before
}

/// Positions of the rows that have a time not before their watermark.
pub fn on_time(times: &[Option<i64>], lateness: i64) -> Vec<usize> {
    let before = watermarks(times, lateness);
    (0..times.len())
        .filter(|row| times[*row].is_some_and(|time| before[*row].is_none_or(|mark| time >= mark)))
        .collect()
}

/// Rows whose times differ by `lower..=upper`, in order of the time at which each comes out.
pub fn interval(
    kind: JoinKind,
    (left, right): (&[Option<i64>], &[Option<i64>]),
    (left_late, right_late): (i64, i64),
    (lower, upper): (i64, i64),
    equal: impl Fn(usize, usize) -> bool,
) -> Vec<Pair> {
    let near = |l: usize, r: usize| match (left[l], right[r]) {
        (Some(l), Some(r)) => (lower..=upper).contains(&(r - l)),
        _ => false,
    };
    let (lefts, rights) = (on_time(left, left_late), on_time(right, right_late));
    let mut pairs = join(kind, &lefts, &rights, |l, r| near(l, r) && equal(l, r));
    pairs.sort_by_key(|(l, r)| {
        let (own, other) = (l.and_then(|l| left[l]), r.and_then(|r| right[r]));
        let time = match kind {
            JoinKind::Right => other.or(own),
            _ => own.or(other),
        };
        (time, l.unwrap_or(usize::MAX), r.unwrap_or(usize::MAX))
    });
    pairs
}

/// Each left row with the one right row that is nearest, in order of time.
pub fn as_of(
    kind: JoinKind,
    (left, right): (&[Option<i64>], &[Option<i64>]),
    (left_late, right_late): (i64, i64),
    (direction, tolerance): (Direction, Option<i64>),
    equal: impl Fn(usize, usize) -> bool,
) -> Vec<Pair> {
    let mut lefts = on_time(left, left_late);
    lefts.sort_by_key(|row| (left[*row], *row));
    let rights = on_time(right, right_late);
    let mut pairs = Vec::new();
    for l in lefts {
        let away = |r: usize| right[r].unwrap() - left[l].unwrap();
        let allowed = |r: &usize| {
            let side = match direction {
                Direction::Backward => away(*r) <= 0,
                Direction::Forward => away(*r) >= 0,
                Direction::Before => away(*r) < 0,
                Direction::After => away(*r) > 0,
                Direction::Nearest => true,
            };
            side && tolerance.is_none_or(|most| away(*r).abs() <= most) && equal(l, *r)
        };
        // Of rows as near, an earlier one; of rows at one time, the one next to this row.
        let best = rights.iter().copied().filter(allowed).min_by_key(|r| {
            let after = away(*r) > 0 || direction == Direction::Forward;
            let arrival = if after { *r as i64 } else { -(*r as i64) };
            (away(*r).abs(), after, arrival)
        });
        match (kind, best) {
            (JoinKind::Inner | JoinKind::Left, Some(r)) => pairs.push((Some(l), Some(r))),
            (JoinKind::Left | JoinKind::LeftAnti, None) => pairs.push((Some(l), None)),
            (JoinKind::LeftSemi, Some(_)) => pairs.push((Some(l), None)),
            _ => {}
        }
    }
    pairs
}

/// The joins of all windows `[start, start + size)` with `start` a multiple of `slide`, each with
/// its start.
pub fn window(
    kind: JoinKind,
    (left, right): (&[Option<i64>], &[Option<i64>]),
    (left_late, right_late): (i64, i64),
    (size, slide): (i64, i64),
    equal: impl Fn(usize, usize) -> bool,
) -> Vec<(i64, Pair)> {
    let marks = (watermarks(left, left_late), watermarks(right, right_late));
    let all: Vec<i64> = left.iter().chain(right).flatten().copied().collect();
    let (Some(first), Some(last)) = (all.iter().min(), all.iter().max()) else {
        return Vec::new();
    };
    let mut pairs = Vec::new();
    let mut start = (first - size).div_euclid(slide) * slide;
    while start <= *last {
        let inside = |times: &[Option<i64>], marks: &[Option<i64>]| -> Vec<usize> {
            let holds = |time: i64| start <= time && time < start + size;
            (0..times.len())
                .filter(|row| times[*row].is_some_and(holds))
                .filter(|row| marks[*row].is_none_or(|mark| start + size > mark))
                .collect()
        };
        let (lefts, rights) = (inside(left, &marks.0), inside(right, &marks.1));
        let joined = join(kind, &lefts, &rights, &equal);
        pairs.extend(joined.into_iter().map(|pair| (start, pair)));
        start += slide;
    }
    pairs
}
