//! From numbers to shares of an axis, and the numbers written beside it.

/// How numbers lie on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By their logarithm.
    Log,
}

/// An axis for certain numbers: where it begins and ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
}

/// Steps of a linear axis.
const STEPS: u32 = 5;

impl Ruler {
    /// The axis that holds all `numbers`.
    pub(crate) fn of(scale: Scale, numbers: impl Iterator<Item = f64>) -> Self {
        let wanted = |it: &f64| it.is_finite() && (scale == Scale::Linear || *it > 0.0);
        let numbers: Vec<f64> = numbers.filter(wanted).collect();
        let high = numbers.iter().copied().fold(0.0, f64::max);
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        match scale {
            Scale::Linear => Ruler {
                scale,
                low: 0.0,
                high: round_up(high / f64::from(STEPS)) * f64::from(STEPS),
            },
            Scale::Log if numbers.is_empty() => Ruler {
                scale,
                low: 0.0,
                high: 1.0,
            },
            Scale::Log => {
                let (low, high) = (low.log10().floor(), high.log10().ceil());
                Ruler {
                    scale,
                    low,
                    high: high.max(low + 1.0),
                }
            }
        }
    }

    /// Where `number` lies, from 0 to 1; `None` where the axis does not reach.
    pub(crate) fn share(&self, number: f64) -> Option<f64> {
        let place = match self.scale {
            Scale::Linear => number,
            Scale::Log if number > 0.0 => number.log10(),
            Scale::Log => return None,
        };
        let share = (place - self.low) / (self.high - self.low);
        share.is_finite().then_some(share)
    }

    /// Share and text of each number that is written beside the axis.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => (0..=STEPS)
                .map(|step| f64::from(step) / f64::from(STEPS))
                .map(|share| (share, short(self.high * share)))
                .collect(),
            Scale::Log => {
                let decades = (self.high - self.low) as i32;
                let each = (decades / 8).max(1);
                (0..=decades)
                    .filter(|step| step % each == 0)
                    .map(|step| {
                        let share = f64::from(step) / f64::from(decades);
                        (share, short(10f64.powi(self.low as i32 + step)))
                    })
                    .collect()
            }
        }
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_up(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors.into_iter().find(|it| it * power >= least);
    factor.unwrap_or(10.0) * power
}

/// The number as people write it.
pub(crate) fn short(number: f64) -> String {
    for (unit, suffix) in [(1e9, " G"), (1e6, " M"), (1e3, " k")] {
        if number.abs() >= unit {
            return format!("{}{suffix}", trimmed(number / unit));
        }
    }
    trimmed(number)
}

fn trimmed(number: f64) -> String {
    let digits = match number.abs() {
        size if size > 0.0 && size < 1e-4 => return format!("{number:.0e}"),
        size if size < 0.01 => 6,
        _ => 3,
    };
    let text = format!("{number:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(
            [0.3, 1.0, 1.1, 34.0, 0.0].map(round_up),
            [0.5, 1.0, 2.0, 50.0, 1.0]
        );
        let ruler = Ruler::of(Scale::Log, [3.0, 700.0].into_iter());
        let texts: Vec<String> = ruler.ticks().into_iter().map(|it| it.1).collect();
        assert_eq!(texts, ["1", "10", "100", "1 k"]);
        assert_eq!(ruler.share(1_000.0), Some(1.0));
        assert_eq!(ruler.share(0.0), None);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.25, 12.5, 1_000.0, 2_500_000.0, 0.000_1, 2e-7].map(short);
        let expected = ["0", "0.25", "12.5", "1 k", "2.5 M", "0.0001", "2e-7"];
        assert_eq!(texts, expected);
    }
}
