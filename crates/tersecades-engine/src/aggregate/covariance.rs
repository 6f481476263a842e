//! `covariance` of a sample and of a population, and `correlation`.

use super::pair_measure::{PairMeasure, Pairs};

/// Divides by one less than the number of pairs.
pub const COVARIANCE: PairMeasure = PairMeasure {
    name: "covariance",
    summary: "covariance of two columns of a sample (n - 1)",
    measure: |Pairs { moment, .. }| {
        (moment.count > 1).then(|| moment.product / (moment.count - 1) as f64)
    },
};

/// Divides by the number of pairs.
pub const COVARIANCE_POPULATION: PairMeasure = PairMeasure {
    name: "covariance_population",
    summary: "covariance of two columns of a population (n)",
    measure: |Pairs { moment, .. }| Some(moment.product / moment.count as f64),
};

/// Pearson's coefficient; null where a column does not vary.
pub const CORRELATION: PairMeasure = PairMeasure {
    name: "correlation",
    summary: "Pearson's correlation of two columns, null where one does not vary",
    measure: |Pairs { moment, .. }| {
        let scale = moment.squares[0].sqrt() * moment.squares[1].sqrt();
        (scale != 0.0).then(|| moment.product / scale)
    },
};
