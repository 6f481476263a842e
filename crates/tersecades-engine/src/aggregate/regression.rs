//! `regr_slope(y, x)` and its like: the straight line through pairs of two columns that is off by
//! the least squares.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::collected::comoment::{COMOMENTS, Comoments};
use super::collected::{Collection, Collects, Finish, collected};
use super::pair_measure::{PairMeasure, Pairs};
use super::{Aggregate, require_numeric};

/// Places of the columns: `y` is the first.
const Y: usize = 0;
const X: usize = 1;

/// The slope; null where `x` does not vary.
fn slope(Pairs { moment, .. }: &Pairs) -> Option<f64> {
    (moment.squares[X] != 0.0).then(|| moment.product / moment.squares[X])
}

fn determination(Pairs { moment, .. }: &Pairs) -> Option<f64> {
    let [yy, xx] = moment.squares;
    (xx != 0.0).then(|| match yy == 0.0 {
        true => 1.0,
        false => moment.product / xx * (moment.product / yy),
    })
}

/// How steep it is.
pub const SLOPE: PairMeasure = PairMeasure {
    name: "regr_slope",
    summary: "slope of the line through pairs (y, x), null where x does not vary",
    measure: slope,
};

/// Where it is at zero.
pub const INTERCEPT: PairMeasure = PairMeasure {
    name: "regr_intercept",
    summary: "value at x = 0 of the line through pairs (y, x)",
    measure: |pairs| Some(pairs.means[Y] - slope(pairs)? * pairs.means[X]),
};

/// How much of the variance it explains.
pub const R2: PairMeasure = PairMeasure {
    name: "regr_r2",
    summary: "share of the variance of y that the line through pairs (y, x) explains",
    measure: determination,
};

/// The mean of `x`.
pub const AVERAGE_X: PairMeasure = PairMeasure {
    name: "regr_avgx",
    summary: "mean of x of pairs (y, x)",
    measure: |pairs| Some(pairs.means[X]),
};

/// The mean of `y`.
pub const AVERAGE_Y: PairMeasure = PairMeasure {
    name: "regr_avgy",
    summary: "mean of y of pairs (y, x)",
    measure: |pairs| Some(pairs.means[Y]),
};

/// The squared deviations of `x`.
pub const SQUARES_X: PairMeasure = PairMeasure {
    name: "regr_sxx",
    summary: "summed squared deviations of x of pairs (y, x)",
    measure: |pairs| Some(pairs.moment.squares[X]),
};

/// The squared deviations of `y`.
pub const SQUARES_Y: PairMeasure = PairMeasure {
    name: "regr_syy",
    summary: "summed squared deviations of y of pairs (y, x)",
    measure: |pairs| Some(pairs.moment.squares[Y]),
};

/// The products of the deviations.
pub const PRODUCTS: PairMeasure = PairMeasure {
    name: "regr_sxy",
    summary: "summed products of the deviations of pairs (y, x)",
    measure: |pairs| Some(pairs.moment.product),
};

/// The number of pairs.
#[derive(Debug)]
pub struct PairCount;

impl Aggregate for PairCount {
    fn name(&self) -> &'static str {
        "regr_count"
    }

    fn summary(&self) -> &'static str {
        "number of rows where neither column is null"
    }

    fn collects(&self) -> Option<Collects> {
        Some(COMOMENTS)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric(self.name(), argument)?;
        Ok(DataType::Int64)
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let comoments: &Comoments = collected(from)?;
        finish.column(|id| Ok(Value::from(comoments.get(id).count)))
    }
}
