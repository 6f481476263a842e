//! `regr_slope(y, x)` and its like: the straight line through pairs of two columns that is off by
//! the least squares.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::collected::comoment::{COMOMENTS, Comoments};
use super::collected::{Collection, Collects, Finish, collected};
use super::{Aggregate, require_numeric};

/// What a line is computed from, over rows where neither column is null.
#[derive(Debug, Clone, Copy)]
struct Pairs {
    count: u64,
    mean_x: f64,
    mean_y: f64,
    /// Summed squared deviations and their products.
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Pairs {
    /// The slope; null where `x` does not vary.
    fn slope(&self) -> Option<f64> {
        (self.xx != 0.0).then(|| self.xy / self.xx)
    }

    fn determination(&self) -> Option<f64> {
        (self.xx != 0.0).then(|| match self.yy == 0.0 {
            true => 1.0,
            false => self.xy / self.xx * (self.xy / self.yy),
        })
    }
}

/// A number of the line through pairs, of which there is one at least.
#[derive(Debug)]
pub struct Regression {
    name: &'static str,
    summary: &'static str,
    measure: fn(&Pairs) -> Option<f64>,
}

/// How steep it is.
pub const SLOPE: Regression = Regression {
    name: "regr_slope",
    summary: "slope of the line through pairs (y, x), null where x does not vary",
    measure: Pairs::slope,
};

/// Where it is at zero.
pub const INTERCEPT: Regression = Regression {
    name: "regr_intercept",
    summary: "value at x = 0 of the line through pairs (y, x)",
    measure: |pairs| Some(pairs.mean_y - pairs.slope()? * pairs.mean_x),
};

/// How much of the variance it explains.
pub const R2: Regression = Regression {
    name: "regr_r2",
    summary: "share of the variance of y that the line through pairs (y, x) explains",
    measure: Pairs::determination,
};

/// The mean of `x`.
pub const AVERAGE_X: Regression = Regression {
    name: "regr_avgx",
    summary: "mean of x of pairs (y, x)",
    measure: |pairs| Some(pairs.mean_x),
};

/// The mean of `y`.
pub const AVERAGE_Y: Regression = Regression {
    name: "regr_avgy",
    summary: "mean of y of pairs (y, x)",
    measure: |pairs| Some(pairs.mean_y),
};

/// The squared deviations of `x`.
pub const SQUARES_X: Regression = Regression {
    name: "regr_sxx",
    summary: "summed squared deviations of x of pairs (y, x)",
    measure: |pairs| Some(pairs.xx),
};

/// The squared deviations of `y`.
pub const SQUARES_Y: Regression = Regression {
    name: "regr_syy",
    summary: "summed squared deviations of y of pairs (y, x)",
    measure: |pairs| Some(pairs.yy),
};

/// The products of the deviations.
pub const PRODUCTS: Regression = Regression {
    name: "regr_sxy",
    summary: "summed products of the deviations of pairs (y, x)",
    measure: |pairs| Some(pairs.xy),
};

impl Aggregate for Regression {
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
        let comoments: &Comoments = collected(from)?;
        finish.column(|id| {
            let pairs = pairs_of(comoments, id);
            let measure = (pairs.count > 0).then(|| (self.measure)(&pairs));
            Ok(measure.flatten().map_or(Value::Null, Value::Float))
        })
    }
}

fn pairs_of(comoments: &Comoments, id: u32) -> Pairs {
    let moment = comoments.get(id);
    let [mean_y, mean_x] = comoments.means(&moment);
    let [yy, xx] = moment.squares;
    Pairs {
        count: moment.count,
        mean_x,
        mean_y,
        xx,
        yy,
        xy: moment.product,
    }
}

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
