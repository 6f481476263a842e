//! Who compares packed values faster, level by level: ours or BitWeaving.

use crate::measure::Middle;
use crate::report::{Point, Report};

/// Who won at a width.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Winner {
    Ours,
    Weaving,
    /// The middle half of the repetitions has both.
    Neither,
}

impl Winner {
    const ALL: [(Winner, &str); 3] = [
        (Winner::Ours, "as they lie"),
        (Winner::Weaving, "BitWeaving/H"),
        (Winner::Neither, "too close to say"),
    ];

    /// By the time of BitWeaving in times of ours.
    fn of(ratio: Middle) -> Self {
        let half = ratio.spread.unwrap_or(0.0) * ratio.median / 2.0;
        match ratio.median {
            more if more - half > 1.0 => Winner::Ours,
            less if less + half < 1.0 => Winner::Weaving,
            _ => Winner::Neither,
        }
    }
}

/// The winners at each width of a level and a comparison.
struct Verdict {
    at: String,
    widths: Vec<(usize, Winner)>,
}

/// Every [`Verdict`].
#[derive(Default)]
pub(super) struct Verdicts(Vec<Verdict>);

impl Verdicts {
    /// Prints the ratios of a width and a level, and keeps who won.
    pub(super) fn add(
        &mut self,
        report: &mut Report,
        (width, level): (usize, &str),
        ratios: [(&str, Middle); 2],
    ) {
        for (comparison, ratio) in ratios {
            let at = format!("{level}, {comparison}");
            report.middle("packed_gain", (&at, width.into()), ratio, "x");
            let won = (width, Winner::of(ratio));
            match self.0.iter_mut().find(|verdict| verdict.at == at) {
                Some(verdict) => verdict.widths.push(won),
                None => self.0.push(Verdict {
                    at,
                    widths: vec![won],
                }),
            }
        }
    }

    /// Prints at how many widths each won, and which these are.
    pub(super) fn print(&self, report: &mut Report) {
        for verdict in &self.0 {
            for (winner, name) in Winner::ALL {
                let of = verdict.widths.iter().filter(|(_, it)| *it == winner);
                let widths: Vec<usize> = of.map(|(width, _)| *width).collect();
                report.point(&Point {
                    figure: "packed_winner",
                    series: name,
                    x: verdict.at.as_str().into(),
                    value: widths.len() as f64,
                    unit: "widths",
                    spread: None,
                    share: None,
                    note: (!widths.is_empty()).then(|| ranges(&widths)),
                });
            }
        }
    }
}

/// `1–3, 7` of ascending numbers.
fn ranges(numbers: &[usize]) -> String {
    let parts = numbers.chunk_by(|left, right| left + 1 == *right);
    let text = |part: &[usize]| match part {
        [first, .., last] => format!("{first}–{last}"),
        _ => part.iter().map(usize::to_string).collect(),
    };
    parts.map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_make_a_range() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1–3, 7, 9–10");
    }

    #[test]
    fn a_win_is_clear_of_the_spread() {
        let winner = |median, spread| {
            let spread = Some(spread);
            Winner::of(Middle { median, spread })
        };
        assert!(winner(1.1, 0.05) == Winner::Ours);
        assert!(winner(1.1, 0.5) == Winner::Neither);
        assert!(winner(0.8, 0.05) == Winner::Weaving);
    }
}
