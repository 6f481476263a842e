//! Text of many distinct values under every codec that takes it without a dictionary.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StringArray};
use arrow_schema::DataType;
use tersecades_columnar::Result;
use tersecades_columnar::arrow::lanes;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{EncodeWork, Work};
use tersecades_columnar::error::Error;
use tersecades_columnar::input::Input;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use super::text_bytes;
use crate::Options;
use crate::data::codec;
use crate::measure::interleave;
use crate::report::Report;

const CODECS: [&str; 5] = ["plain", "symbols", "lz4", "snappy", "zstd"];

/// Rows gathered at a time.
const GATHERED: usize = 100;

/// Prints size and speed of the lines of the file at `path` as rows.
///
/// # Errors
/// Where the file cannot be read or an encoder fails.
pub(super) fn run(path: &Path, options: &Options, report: &mut Report) -> Result<()> {
    let text = std::fs::read_to_string(path)?;
    let rows = options.scaled(1 << 17);
    let array: ArrayRef = Arc::new(StringArray::from_iter_values(text.lines().take(rows)));
    let (rows, bytes) = (array.len() as f64, text_bytes(&array) as f64);
    report.add("rows", rows, "");
    report.add("text", bytes / rows, "B/row");
    CODECS
        .iter()
        .try_for_each(|name| measure(name, &array, options, report))
}

fn measure(name: &str, array: &ArrayRef, options: &Options, report: &mut Report) -> Result<()> {
    let lanes = lanes(array.as_ref()).ok_or_else(|| Error::internal("text has lanes"))?;
    let input = Input {
        data_type: &DataType::Utf8,
        physical: Physical::Text,
        lanes,
        validity: None,
        array: None,
    };
    let (scheme, mut work, mut chunk) =
        (codec(name).into(), EncodeWork::default(), Chunk::default());
    chunk.encode(&scheme, &input, &mut work)?;
    let rows = array.len();
    let bytes = text_bytes(array) as f64;
    let size = chunk.byte_size() as f64 / rows as f64;
    let middle = text_at(array, rows / 2);
    let predicate = |how| Predicate::compare(&DataType::Utf8, how, &middle.into());
    let (equal, less) = (predicate(Comparison::Equal)?, predicate(Comparison::Less)?);
    let all = Selection::all(rows);
    let mut few = Selection::default();
    few.set_rows(rows)
        .extend((0..rows as u32).step_by(rows.div_ceil(GATHERED)));
    let mut works: [Work; 4] = Default::default();
    let [first, second, third, fourth] = &mut works;
    let (mut found, mut ordered) = (Selection::default(), Selection::default());
    let (mut decoded, mut gathered) = (Values::default(), Values::default());
    let mut spare = Chunk::default();
    let [encoding, comparing, ordering, decoding, gathering] = interleave(
        options.repetitions,
        [
            &mut || drop(spare.encode(&scheme, &input, &mut work)),
            &mut || chunk.compare(&equal, &all, &mut found, first),
            &mut || chunk.compare(&less, &all, &mut ordered, second),
            &mut || chunk.gather(&all, &mut decoded, third),
            &mut || chunk.gather(&few, &mut gathered, fourth),
        ] as [&mut dyn FnMut(); 5],
    );
    let label = chunk.codec_label();
    let each = |count: usize| count as f64;
    report.add(format!("{label}: size"), size, "B/row");
    report.add(
        format!("{label}: encoding"),
        encoding.rate(bytes) / 1e6,
        "MB/s",
    );
    report.add(
        format!("{label}: = constant"),
        comparing.ns_each(each(rows)),
        "ns/row",
    );
    report.add(
        format!("{label}: < constant"),
        ordering.ns_each(each(rows)),
        "ns/row",
    );
    report.add(
        format!("{label}: decoding into a table"),
        decoding.ns_each(each(rows)),
        "ns/row",
    );
    report.add(
        format!("{label}: gathering few"),
        gathering.ns_each(each(few.count())),
        "ns/row",
    );
    Ok(())
}

fn text_at(array: &ArrayRef, row: usize) -> &str {
    let texts = array.as_any().downcast_ref::<StringArray>();
    texts.map_or("", |texts| texts.value(row))
}
