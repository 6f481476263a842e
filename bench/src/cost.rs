//! What the shipped cost table says, measured: nanoseconds of each operation, by codec.

use tersecades_columnar::Result;
use tersecades_columnar::cost_table::{CostTable, Operation};
use tersecades_columnar::goal::Tier;
use tersecades_columnar::registry::CODECS;
use tersecades_engine::costs;

use crate::Options;
use crate::report::Report;

/// Encoded bytes per value at which the lines of two tables are compared.
const BYTES: f64 = 1.0;

/// Prints the measured table beside the one that ships.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(_options: &Options, report: &mut Report) -> Result<()> {
    let measured = costs::measure(costs::BUDGET)?;
    let shipped = CostTable::shipped();
    report.add("reading a byte", measured.byte_ns(Tier::Hot), "ns");
    report.add("  shipped", shipped.byte_ns(Tier::Hot), "ns");
    for codec in CODECS {
        for operation in Operation::ALL {
            let name = format!("{} a value of a byte, {}", operation.name(), codec.name());
            report.add(name, measured.cost(*codec, operation).at(BYTES), "ns");
            report.add("  shipped", shipped.cost(*codec, operation).at(BYTES), "ns");
        }
    }
    Ok(())
}
