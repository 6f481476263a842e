//! `quantile` and `median`: exact, interpolated linearly as SQL's `percentile_cont`.

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};

use super::collected::Collects;
use super::{Aggregate, require_numeric};

/// A quantile.
#[derive(Debug)]
pub struct Quantile {
    name: &'static str,
    summary: &'static str,
    /// The fraction, unless users give it.
    fraction: Option<f64>,
}

/// The quantile of a given fraction.
pub const QUANTILE: Quantile = Quantile {
    name: "quantile",
    summary: "exact quantile of a fraction, interpolated linearly",
    fraction: None,
};

/// The quantile of one half.
pub const MEDIAN: Quantile = Quantile {
    name: "median",
    summary: "exact median, interpolated linearly",
    fraction: Some(0.5),
};

impl Aggregate for Quantile {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn collects(&self) -> Option<Collects> {
        Some(Collects::Ranks)
    }

    fn parameter(&self, given: Option<f64>) -> Result<f64> {
        match (self.fraction, given) {
            (Some(fraction), None) => Ok(fraction),
            (None, Some(fraction)) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
            (None, _) => Err(Error::invalid(format!("{} needs a fraction", self.name))
                .hint("give a number from 0 to 1, such as 0.99")),
            (Some(_), Some(_)) => Err(Error::invalid(format!("{} takes no number", self.name))),
        }
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric(self.name, argument)?;
        Ok(DataType::Float64)
    }
}
