//! `skewness` and `kurtosis` of a sample, and `kurtosis_population`: how a distribution leans and
//! how heavy its ends are.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::collected::power::{POWERS, Power, Powers};
use super::collected::{Collection, Collects, Finish, collected};
use super::{Aggregate, require_numeric};

/// A measure of the form of a distribution; null where it does not vary.
#[derive(Debug)]
pub struct Skew {
    name: &'static str,
    summary: &'static str,
    /// Fewest values that have one.
    least: u64,
    /// Of the number of values and the means of the second, third and fourth powers.
    measure: fn(f64, [f64; 3]) -> f64,
}

/// The adjusted Fisher–Pearson coefficient.
pub const SKEWNESS: Skew = Skew {
    name: "skewness",
    summary: "skewness of a sample, null below three values",
    least: 3,
    measure: |count, [second, third, _]| {
        let adjusted = (count * (count - 1.0)).sqrt() / (count - 2.0);
        adjusted * third / (second * second.sqrt())
    },
};

/// The excess over that of a normal distribution.
pub const KURTOSIS: Skew = Skew {
    name: "kurtosis",
    summary: "excess kurtosis of a sample, null below four values",
    least: 4,
    measure: |count, [second, _, fourth]| {
        let scaled = (count + 1.0) * fourth / (second * second) - 3.0 * (count - 1.0);
        (count - 1.0) * scaled / ((count - 2.0) * (count - 3.0))
    },
};

/// The excess where the values are all there are.
pub const KURTOSIS_POPULATION: Skew = Skew {
    name: "kurtosis_population",
    summary: "excess kurtosis of a population",
    least: 2,
    measure: |_, [second, _, fourth]| fourth / (second * second) - 3.0,
};

impl Skew {
    fn of(&self, power: Power) -> Option<f64> {
        let count = power.count as f64;
        let means = power.sums.map(|sum| sum / count);
        let varies = power.count >= self.least && means[0] != 0.0;
        varies.then(|| (self.measure)(count, means))
    }
}

impl Aggregate for Skew {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn collects(&self) -> Option<Collects> {
        Some(POWERS)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric(self.name, argument)?;
        Ok(DataType::Float64)
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let powers: &Powers = collected(from)?;
        finish.column(|id| Ok(self.of(powers.get(id)).map_or(Value::Null, Value::Float)))
    }
}
