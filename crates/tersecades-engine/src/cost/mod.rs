//! The cost table of this machine, measured: every codec on every kind of column.
//!
//! ```text
//! columns × codecs ─▶ chunks in the second-level cache ─▶ median of each operation ─▶ lines
//! ```
//! What an operation takes over bytes per row is fitted by a straight line for each codec, so that
//! relative errors are least. Codecs that hold no chunk come first: what inner chunks cost by them
//! is taken off the others' times.

mod specimen;

use std::hint::black_box;
use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{Codec, Tally, Work};
use tersecades_columnar::cost_table::{Cost, CostTable, Operation};
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::kernels::kernels;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::registry::CODECS;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;
use tersecades_columnar::values::Values;

/// What measuring takes unless the caller has more patience.
pub const BUDGET: Duration = Duration::from_millis(1_600);

/// Words of the array that memory is read from: more than caches hold.
const MEMORY_WORDS: usize = 1 << 24;

/// Rows between two that are gathered.
const GATHER_STEP: usize = 97;

/// A column under a codec.
struct Specimen {
    array: ArrayRef,
    /// Whether text is encoded as it lies, not as codes of a dictionary.
    raw: bool,
    encoder: ColumnEncoder,
    chunk: Chunk,
    predicate: Predicate,
}

/// Measures what every codec costs on this machine, in about `budget` of time.
///
/// What storage takes is not measured: that is told by the table that ships.
///
/// # Errors
/// What encoding says.
pub fn measure(budget: Duration) -> Result<CostTable> {
    let started = Instant::now();
    let mut table = CostTable::unmeasured();
    table.set_byte_ns(Tier::Cold, CostTable::shipped().byte_ns(Tier::Cold));
    table.set_byte_ns(Tier::Hot, memory_byte_ns());
    let columns = specimen::columns();
    let exact = CODECS.iter().copied().filter(|codec| !codec.is_lossy());
    let mut codecs: Vec<&'static dyn Codec> = exact.collect();
    codecs.sort_by_key(|codec| codec.inner_max());
    let mut specimens = Vec::new();
    for codec in codecs {
        specimens.push((codec, specimens_of(codec, &columns)?));
    }
    let count: usize = specimens.iter().map(|(_, list)| list.len()).sum();
    let mut left = (count * Operation::ALL.len()).max(1) as u32;
    for (codec, list) in &mut specimens {
        for operation in Operation::ALL {
            let (mut looked, mut skipped) = (Vec::new(), Vec::new());
            for specimen in list.iter_mut() {
                let patience = budget.saturating_sub(started.elapsed()) / left;
                left = (left - 1).max(1);
                let (whole_ns, was_skipped) = specimen.measure(operation, patience)?;
                let inner_ns = inner_ns(&table, &specimen.chunk, operation);
                let point = (
                    specimen.chunk.bytes_per_row(),
                    (whole_ns - inner_ns).max(0.0),
                );
                let points = if was_skipped {
                    &mut skipped
                } else {
                    &mut looked
                };
                points.push(point);
            }
            // What statistics answer costs nothing under any codec, and says nothing about them.
            if let Some(cost) = fit(&looked).or_else(|| fit(&skipped)) {
                table.set(codec.id(), operation, cost);
            }
        }
    }
    Ok(table)
}

/// Nanoseconds to read a byte of memory.
fn memory_byte_ns() -> f64 {
    let words = vec![1u64; MEMORY_WORDS];
    let ns = median_ns(Duration::from_millis(60), || {
        black_box((kernels().u64.sum_flat)(&words));
    });
    significant(ns / size_of_val(words.as_slice()) as f64)
}

/// The columns that `codec` takes and does not blow up.
fn specimens_of(codec: &'static dyn Codec, columns: &[ArrayRef]) -> Result<Vec<Specimen>> {
    let mut specimens = Vec::new();
    for array in columns {
        let mut encoder = ColumnEncoder::new(array.data_type())?;
        encoder.aim(Goal {
            look_interval: u32::MAX,
            ..Goal::of_tier(codec.tier())
        });
        encoder.pin(codec);
        let mut chunk = encoder.encode_new(array)?;
        let raw = *array.data_type() == DataType::Utf8 && chunk.codec().id() != codec.id();
        encode(&mut encoder, array, raw, &mut chunk)?;
        let lane_bytes = chunk.physical().lane_bytes() as f64;
        let grows = lane_bytes > 0.0 && chunk.bytes_per_row() > 1.1 * lane_bytes;
        if chunk.codec().id() != codec.id() || grows {
            continue;
        }
        let middle = chunk_value(&chunk);
        let predicate = Predicate::compare(chunk.data_type(), Comparison::Equal, &middle)?;
        specimens.push(Specimen {
            array: ArrayRef::clone(array),
            raw,
            encoder,
            chunk,
            predicate,
        });
    }
    Ok(specimens)
}

/// Encodes a column, text as codes or, `raw`, as it lies.
fn encode(
    encoder: &mut ColumnEncoder,
    array: &ArrayRef,
    raw: bool,
    chunk: &mut Chunk,
) -> Result<()> {
    match tersecades_columnar::arrow::lanes(array.as_ref()) {
        Some(lanes) if raw => encoder.encode_values(lanes, chunk),
        _ => encoder.encode(array, chunk),
    }
}

/// The value in the middle of a chunk.
fn chunk_value(chunk: &Chunk) -> Value {
    let mut within = Selection::default();
    within.set_rows(chunk.rows()).push(chunk.rows() as u32 / 2);
    let mut values = Values::default();
    chunk.gather(&within, &mut values, &mut Work::default());
    values.value(0)
}

impl Specimen {
    /// Nanoseconds of `operation` per value, of the chunk or gathered, and whether most of the
    /// values were not looked at.
    fn measure(&mut self, operation: Operation, patience: Duration) -> Result<(f64, bool)> {
        let rows = self.chunk.rows();
        let all = Selection::all(rows);
        let (chunk, mut work) = (&mut self.chunk, Work::default());
        let mut values = Values::default();
        let ns = match operation {
            Operation::Compare => {
                let mut out = Selection::default();
                let compare = || chunk.compare(&self.predicate, &all, &mut out, &mut work);
                median_ns(patience, compare) / rows as f64
            }
            Operation::Fold => {
                let asked = Asked {
                    sum: true,
                    ..Asked::default()
                };
                let mut out = Fold::default();
                let fold = || chunk.fold(asked, &all, &mut out, &mut work);
                median_ns(patience, fold) / rows as f64
            }
            Operation::Gather => {
                let mut few = Selection::default();
                let listed = (0..rows as u32).step_by(GATHER_STEP);
                few.set_rows(rows).extend(listed);
                let gather = || chunk.gather(&few, &mut values, &mut work);
                median_ns(patience, gather) / few.count().max(1) as f64
            }
            Operation::Decode => {
                let decode = || chunk.gather(&all, &mut values, &mut work);
                median_ns(patience, decode) / rows as f64
            }
            Operation::Encode => {
                let mut outcome = Ok(());
                let ns = median_ns(patience, || {
                    let encoded = encode(&mut self.encoder, &self.array, self.raw, chunk);
                    outcome = std::mem::replace(&mut outcome, Ok(())).and(encoded);
                });
                outcome?;
                ns / rows as f64
            }
        };
        let Tally {
            skipped,
            direct,
            decoded,
            ..
        } = work.tally;
        Ok((ns, skipped > direct + decoded))
    }
}

/// What the chunks inside take by `table`, per row of the chunk around them.
fn inner_ns(table: &CostTable, chunk: &Chunk, operation: Operation) -> f64 {
    let rows = chunk.rows().max(1) as f64;
    let inner = chunk.inner().map(|inner| {
        let own = table
            .cost(inner.codec(), operation)
            .at(inner.bytes_per_row());
        (own + inner_ns(table, inner, operation)) * inner.rows() as f64 / rows
    });
    inner.sum()
}

/// The median of repetitions that take `patience` together; one at least, after one to warm up.
fn median_ns(patience: Duration, mut run: impl FnMut()) -> f64 {
    const RUNS_MAX: usize = 101;
    let started = Instant::now();
    run();
    let mut times = Vec::with_capacity(RUNS_MAX);
    while times.is_empty() || (times.len() < RUNS_MAX && started.elapsed() < patience) {
        let start = Instant::now();
        run();
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The line through (bytes per row, nanoseconds) whose relative errors are least, falling nowhere.
fn fit(points: &[(f64, f64)]) -> Option<Cost> {
    let (mut w, mut wb, mut wbb, mut wt, mut wbt) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (bytes, ns) in points {
        let weight = ns.max(1e-3).powi(-2);
        w += weight;
        wb += weight * bytes;
        wbb += weight * bytes * bytes;
        wt += weight * ns;
        wbt += weight * bytes * ns;
    }
    let determinant = w * wbb - wb * wb;
    // Where no line rises, all points count alike, however far apart they lie.
    let logarithms = points.iter().map(|(_, ns)| ns.max(1e-3).ln());
    let middle = (logarithms.sum::<f64>() / points.len().max(1) as f64).exp();
    let (mut value_ns, mut stored_ns) = (middle, 0.0);
    if determinant > 1e-9 * w * wbb {
        let slope = (w * wbt - wb * wt) / determinant;
        let level = (wt - slope * wb) / w;
        (value_ns, stored_ns) = match (level >= 0.0, slope >= 0.0) {
            (true, true) => (level, slope),
            (false, true) => (0.0, wbt / wbb),
            (_, false) => (value_ns, 0.0),
        };
    }
    (w > 0.0).then(|| Cost {
        value_ns: significant(value_ns),
        stored_ns: significant(stored_ns),
    })
}

/// `number` with three digits; more would be noise.
fn significant(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_and_never_fall() {
        let line = fit(&[(1.0, 2.5), (2.0, 3.0), (8.0, 6.0)]).unwrap();
        assert_eq!((line.value_ns, line.stored_ns), (2.0, 0.5));
        let falling = fit(&[(1.0, 3.0), (8.0, 1.0)]).unwrap();
        assert_eq!(falling.stored_ns, 0.0);
        let through_zero = fit(&[(1.0, 1.0), (2.0, 4.0), (4.0, 16.0)]).unwrap();
        assert_eq!(through_zero.value_ns, 0.0);
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[(0.0, 7.0)]).unwrap().value_ns, 7.0);
    }

    #[test]
    fn every_codec_is_measured() {
        let table = measure(Duration::ZERO).unwrap();
        for codec in CODECS.iter().filter(|codec| !codec.is_lossy()) {
            for operation in Operation::ALL {
                let cost = table.measured(codec.id(), operation);
                assert!(cost.is_some(), "{} {operation:?}", codec.name());
            }
        }
        assert_eq!(table.to_string().parse::<CostTable>().unwrap(), table);
    }
}
