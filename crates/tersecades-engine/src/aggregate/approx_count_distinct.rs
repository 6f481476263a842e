//! `approx_count_distinct`: about how many different values there are, in at most 4 KiB a group.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::Aggregate;
use super::collected::hyper_log_log::{HYPER_LOG_LOG, HyperLogLog};
use super::collected::{Collection, Collects, Finish, collected};

/// The number of different values that are not null, by HyperLogLog: exact up to 512, then with a
/// standard error of 1.6 %.
#[derive(Debug)]
pub struct ApproxCountDistinct;

impl Aggregate for ApproxCountDistinct {
    fn name(&self) -> &'static str {
        "approx_count_distinct"
    }

    fn summary(&self) -> &'static str {
        "number of different values: exact up to 512, then with a standard error of 1.6 %"
    }

    fn collects(&self) -> Option<Collects> {
        Some(HYPER_LOG_LOG)
    }

    fn result_type(&self, _argument: &DataType) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let sketches: &HyperLogLog = collected(from)?;
        finish.column(|id| Ok(Value::from(sketches.estimate(id))))
    }
}
