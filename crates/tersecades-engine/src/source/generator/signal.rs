//! Shapes in time: rhythms and noise, both functions of the time alone.
//!
//! Like [`super::quantile`] this rests on the four IEEE operations, so that a seed makes the same
//! rows on every machine.

use std::f64::consts::TAU;

use super::random::{CounterStream, high, low, unit};

/// The sine of `turns` full turns (error below 1e-7).
pub(super) fn wave(turns: f64) -> f64 {
    let part = turns - turns.floor();
    let (sign, half) = match part >= 0.5 {
        true => (-1.0, part - 0.5),
        false => (1.0, part),
    };
    let quarter = if half > 0.25 { 0.5 - half } else { half };
    let x = quarter * TAU;
    let square = x * x;
    let series = (1..6).rev().fold(1.0, |sum, n| {
        let n = f64::from(n);
        1.0 - sum * square / (2.0 * n * (2.0 * n + 1.0))
    });
    sign * x * series
}

/// A bell-shaped value of mean 0 and variance 1 from one draw: the sum of four uniform ones.
pub(super) fn bell(draw: u64) -> f64 {
    const PART: f64 = 65_536.0;
    let parts = [draw, draw >> 16, draw >> 32, draw >> 48].map(|bits| (bits & 0xffff) as f64);
    let sum: f64 = parts.iter().sum();
    (sum / PART - 2.0) * 1.732_050_807_568_877_2
}

/// Noise that drifts: -1 to 1, a new value every `period` steps and a smooth way between.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drift {
    stream: CounterStream,
    period: u64,
}

impl Drift {
    /// Noise of stream number `stream` of `seed`; `period` is at least 1.
    pub(super) fn new(seed: u64, stream: u64, period: u64) -> Self {
        Drift {
            stream: CounterStream::new(seed, stream),
            period: period.max(1),
        }
    }

    /// The noise of `series` at `step`.
    pub(super) fn at(&self, series: u64, step: u64) -> f64 {
        let (knot, into) = (step / self.period, step % self.period);
        let part = into as f64 / self.period as f64;
        let eased = part * part * (3.0 - 2.0 * part);
        let [left, right] = [knot, knot + 1].map(|knot| {
            let draw = self.stream.draw(cell(series, knot));
            unit(high(draw)) + unit(low(draw)) - 1.0
        });
        left + (right - left) * eased
    }
}

/// The counter of `step` of `series`: series lie 2^40 steps apart.
pub(super) fn cell(series: u64, step: u64) -> u64 {
    (series << 40).wrapping_add(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wave_is_a_sine() {
        for step in -2000..2000 {
            let turns = f64::from(step) * 0.003_7;
            assert!((wave(turns) - (turns * TAU).sin()).abs() < 1e-6, "{turns}");
        }
    }

    #[test]
    fn the_bell_has_mean_0_and_variance_1() {
        let stream = CounterStream::new(3, 1);
        let values: Vec<f64> = (0..100_000).map(|n| bell(stream.draw(n))).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let variance = values.iter().map(|value| value * value).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn drift_is_bounded_and_smooth() {
        let drift = Drift::new(1, 2, 64);
        let values: Vec<f64> = (0..10_000).map(|step| drift.at(5, step)).collect();
        assert!(values.iter().all(|value| value.abs() <= 1.0));
        let steepest = values.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        assert!(steepest.fold(0.0, f64::max) < 2.0 * 1.5 / 64.0 + 1e-9);
        assert!(values.iter().any(|value| *value > 0.5));
        assert!(values.iter().any(|value| *value < -0.5));
    }
}
