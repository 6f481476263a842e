//! `covariance` of a sample and of a population, and `correlation`.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::collected::comoment::{COMOMENTS, Comoment, Comoments};
use super::collected::{Collection, Collects, Finish, collected};
use super::{Aggregate, require_numeric};

/// A measure of how two columns vary together, over rows where neither is null.
#[derive(Debug)]
pub struct Covariance {
    name: &'static str,
    summary: &'static str,
    measure: fn(&Comoment) -> Option<f64>,
}

/// Divides by one less than the number of pairs.
pub const COVARIANCE: Covariance = Covariance {
    name: "covariance",
    summary: "covariance of two columns of a sample (n - 1)",
    measure: |pairs| (pairs.count > 1).then(|| pairs.product / (pairs.count - 1) as f64),
};

/// Divides by the number of pairs.
pub const COVARIANCE_POPULATION: Covariance = Covariance {
    name: "covariance_population",
    summary: "covariance of two columns of a population (n)",
    measure: |pairs| (pairs.count > 0).then(|| pairs.product / pairs.count as f64),
};

/// Pearson's coefficient; null where a column does not vary.
pub const CORRELATION: Covariance = Covariance {
    name: "correlation",
    summary: "Pearson's correlation of two columns, null where one does not vary",
    measure: |pairs| {
        let scale = pairs.squares[0].sqrt() * pairs.squares[1].sqrt();
        (scale != 0.0).then(|| pairs.product / scale)
    },
};

impl Aggregate for Covariance {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn collects(&self) -> Option<Collects> {
        Some(COMOMENTS)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric(self.name, argument)?;
        Ok(DataType::Float64)
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let pairs: &Comoments = collected(from)?;
        finish.column(|id| {
            let measure = (self.measure)(&pairs.get(id));
            Ok(measure.map_or(Value::Null, Value::Float))
        })
    }
}
