//! Timing of things that are to be compared: they take turns, and medians are kept.
//!
//! A machine that is shared gets faster and slower by the second. Running `A B A B …` puts both
//! sides through the same weather, so their ratio holds even where the times do not.

use std::time::Instant;

/// What several repetitions of one thing took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// The median.
    pub(crate) median_s: f64,
    /// The middle half of the repetitions, from its shortest to its longest, over the median; one
    /// repetition has none.
    pub(crate) spread: Option<f64>,
}

impl Timing {
    /// `amount` per second, at the median.
    pub(crate) fn rate(&self, amount: f64) -> f64 {
        amount / self.median_s
    }

    /// Nanoseconds for each of `count`, at the median.
    pub(crate) fn ns_each(&self, count: f64) -> f64 {
        self.median_s * 1e9 / count
    }
}

/// The middle of numbers that were measured again and again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Middle {
    /// The median.
    pub(crate) median: f64,
    /// As [`Timing::spread`].
    pub(crate) spread: Option<f64>,
}

/// The middle of `numbers`.
pub(crate) fn middle(numbers: Vec<f64>) -> Middle {
    let Timing { median_s, spread } = summarise(numbers);
    Middle {
        median: median_s,
        spread,
    }
}

/// The seconds `over` in times of the seconds `under`, which took turns with them, turn by turn.
pub(crate) fn ratio(over: &[f64], under: &[f64]) -> Middle {
    let ratios = over.iter().zip(under).map(|(over, under)| over / under);
    middle(ratios.collect())
}

/// Runs every case once to warm up, then `repetitions` times in turn.
pub(crate) fn interleave<const N: usize>(
    repetitions: usize,
    cases: [&mut dyn FnMut(); N],
) -> [Timing; N] {
    take_turns(repetitions, cases).map(summarise)
}

/// The seconds of every repetition of [`interleave`].
pub(crate) fn take_turns<const N: usize>(
    repetitions: usize,
    mut cases: [&mut dyn FnMut(); N],
) -> [Vec<f64>; N] {
    let mut seconds: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(repetitions));
    cases.iter_mut().for_each(|case| case());
    for _ in 0..repetitions {
        for (case, seconds) in cases.iter_mut().zip(&mut seconds) {
            let start = Instant::now();
            case();
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    seconds
}

/// What the listed repetitions come to.
pub(crate) fn summarise(mut seconds: Vec<f64>) -> Timing {
    seconds.sort_unstable_by(f64::total_cmp);
    let at = |part: usize| {
        let place = (seconds.len() * part / 4).min(seconds.len().saturating_sub(1));
        seconds.get(place).copied().unwrap_or(f64::NAN)
    };
    Timing {
        median_s: at(2),
        spread: (seconds.len() > 1).then(|| (at(3) - at(1)) / at(2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_half_over_the_median() {
        let timing = summarise(vec![9.0, 2.0, 4.0, 3.0, 5.0]);
        assert!((timing.median_s - 4.0).abs() < 1e-12);
        assert!((timing.spread.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(summarise(vec![1.0]).spread, None);
    }

    #[test]
    fn a_ratio_is_taken_turn_by_turn() {
        let ratio = ratio(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0]);
        assert!((ratio.median - 2.0).abs() < 1e-12);
        assert!(ratio.spread.unwrap().abs() < 1e-12);
    }
}
