//! `quantile` and `median`: exact, interpolated linearly as SQL's `percentile_cont`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array};
use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};

use super::collected::rank_log::{RANKS, Ranks};
use super::collected::{Collection, Collects, Finish, collected};
use super::{Aggregate, fraction, require_numeric};

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
        Some(RANKS)
    }

    fn parameter(&self, given: Option<f64>) -> Result<f64> {
        match (self.fraction, given) {
            (Some(fraction), None) => Ok(fraction),
            (None, given) => fraction(self.name, given),
            (Some(_), Some(_)) => Err(Error::invalid(format!("{} takes no number", self.name))),
        }
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric(self.name, argument)?;
        Ok(DataType::Float64)
    }

    fn finish_together(
        &self,
        from: &dyn Collection,
        finishes: &[Finish<'_>],
    ) -> Result<Vec<ArrayRef>> {
        let ranks: &Ranks = collected(from)?;
        let Some(first) = finishes.first() else {
            return Ok(Vec::new());
        };
        // Whatever reads ranks takes a fraction.
        let fractions = finishes.iter().map(|finish| finish.reading.parameter);
        let fractions: Vec<f64> = fractions.collect();
        let found = ranks.quantiles(&fractions, (first.order, first.threads));
        let nulls = found.nulls();
        let columns = found.columns.into_iter();
        let columns = columns.map(|column| Float64Array::new(column.into(), nulls.clone()));
        Ok(columns.map(|column| Arc::new(column) as ArrayRef).collect())
    }
}
