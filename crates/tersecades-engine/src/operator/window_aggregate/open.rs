//! Windows by the panes that have rows of them.

use std::collections::BTreeMap;

use crate::window::{Boundaries, Span};

/// The windows that end after `after` and hold one of `panes`, by their ends.
pub(super) fn windows_over<'a>(
    boundaries: &dyn Boundaries,
    panes: impl Iterator<Item = &'a i64>,
    after: i64,
) -> BTreeMap<i128, Span> {
    let mut windows = BTreeMap::new();
    for pane in panes {
        let mut window = boundaries.ending_after(after.max(*pane));
        while window.start <= i128::from(*pane) {
            windows.insert(window.end, window);
            let Ok(end) = i64::try_from(window.end) else {
                break;
            };
            window = boundaries.ending_after(end);
        }
    }
    windows
}

/// The last window that holds `time`.
pub(super) fn last_window(boundaries: &dyn Boundaries, time: i64) -> Span {
    let mut last = boundaries.ending_after(time);
    while let Ok(end) = i64::try_from(last.end) {
        let next = boundaries.ending_after(end);
        if next.start > i128::from(time) {
            break;
        }
        last = next;
    }
    last
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::window::{Windowing, hop};

    use super::*;

    #[test]
    fn windows_of_a_pane_are_those_that_hold_it() {
        let nanos = Duration::from_nanos;
        let Ok(Windowing::Aligned(hops)) = hop(nanos(60), nanos(20)).bind(1) else {
            panic!("hops are aligned");
        };
        let starts = |after| -> Vec<i128> {
            let windows = windows_over(&*hops, [45].iter(), after);
            windows.values().map(|window| window.start).collect()
        };
        assert_eq!(starts(i64::MIN), [0, 20, 40]);
        assert_eq!(starts(60), [20, 40]);
        assert_eq!(starts(100), [0i128; 0]);
        assert_eq!(last_window(&*hops, 45).start, 40);
    }
}
