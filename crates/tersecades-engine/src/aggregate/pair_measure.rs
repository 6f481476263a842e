//! Measures of how two columns go together, of which aggregates are a constant each.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::collected::comoment::{COMOMENTS, Comoment, Comoments};
use super::collected::{Collection, Collects, Finish, collected};
use super::{Aggregate, require_numeric};

/// The rows of a group where neither column is null, one at least.
#[derive(Debug, Clone, Copy)]
pub struct Pairs {
    /// Their number, squared deviations and products of deviations.
    pub moment: Comoment,
    /// The means of both columns.
    pub means: [f64; 2],
}

/// A number that pairs have, or null; without pairs it is null.
#[derive(Debug)]
pub struct PairMeasure {
    /// Its name.
    pub name: &'static str,
    /// What users read of it.
    pub summary: &'static str,
    /// How it is computed.
    pub measure: fn(&Pairs) -> Option<f64>,
}

impl Aggregate for PairMeasure {
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
            let moment = comoments.get(id);
            let means = comoments.means(&moment);
            let pairs = (moment.count > 0).then_some(Pairs { moment, means });
            let found = pairs.and_then(|pairs| (self.measure)(&pairs));
            Ok(found.map_or(Value::Null, Value::Float))
        })
    }
}
