//! What was found against what was put in.

use crate::query::Loss;

/// How many losses were found, and how many were not or were none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Score {
    pub(crate) injected: usize,
    pub(crate) found: usize,
    pub(crate) right: usize,
}

impl Score {
    /// Share of what was found that was put in.
    pub(crate) fn precision(&self) -> f64 {
        self.right as f64 / self.found.max(1) as f64
    }

    /// Share of what was put in that was found.
    pub(crate) fn recall(&self) -> f64 {
        self.right as f64 / self.injected.max(1) as f64
    }
}

/// Matches losses by machine and overlap, each at most once.
pub(crate) fn score(injected: &[Loss], found: &[Loss]) -> Score {
    let overlap = |a: &Loss, b: &Loss| {
        let ends_after = |a: &Loss, time| a.to_ms.is_none_or(|end| end > time);
        a.vm == b.vm && ends_after(a, b.from_ms) && ends_after(b, a.from_ms)
    };
    let mut left: Vec<&Loss> = found.iter().collect();
    let mut right = 0;
    for loss in injected {
        if let Some(index) = left.iter().position(|it| overlap(loss, it)) {
            left.swap_remove(index);
            right += 1;
        }
    }
    Score {
        injected: injected.len(),
        found: found.len(),
        right,
    }
}

/// The losses of a truth file: `network_lost` with `vm_id`, `from_ms`, `to_ms` in each line.
pub(crate) fn injected(truth: &str) -> Vec<Loss> {
    truth.lines().filter_map(injected_loss).collect()
}

fn injected_loss(line: &str) -> Option<Loss> {
    let value = |name: &str| {
        let rest = line.split_once(&format!("\"{name}\":"))?.1;
        let end = rest.find([',', '}'])?;
        Some(rest[..end].trim_matches('"'))
    };
    Some(Loss {
        vm: value("vm_id")?.to_owned(),
        from_ms: value("from_ms")?.parse().ok()?,
        to_ms: value("to_ms")?.parse().ok(),
    })
}
