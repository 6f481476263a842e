//! What is encoded comes back bit for bit, under the chosen codecs, from their wire bytes, and
//! under each codec pinned.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::codec::{Codec, Work};
use tersecades_columnar::registry;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::logical_type;
use tersecades_columnar::wire;

use crate::data_set::{AZURE, BEIJING, DataSet, FLIGHTS, Loaded, RIPE_ATLAS, SEATTLE};
use crate::report;

/// Batches of a set that every pinned codec encodes.
const PINNED_BATCHES: usize = 3;

/// The array without dictionary, floats as their bits.
fn bits(array: &ArrayRef) -> ArrayRef {
    let plain = cast(array, &logical_type(array.data_type())).unwrap();
    match plain.data_type() {
        DataType::Float64 => {
            let floats = plain.as_primitive::<Float64Type>();
            let bits = floats.values().iter().map(|value| value.to_bits());
            Arc::new(UInt64Array::new(bits.collect(), floats.nulls().cloned()))
        }
        _ => plain,
    }
}

fn assert_decodes_to(what: &str, batch: &Batch, source: &RecordBatch) {
    let decoded = batch
        .to_arrow(&Selection::all(batch.rows()), &mut Work::default())
        .unwrap();
    assert_eq!(decoded.num_rows(), source.num_rows(), "{what}");
    for (index, column) in source.columns().iter().enumerate() {
        let name = source.schema_ref().field(index).name();
        let (got, expected) = (bits(decoded.column(index)), bits(column));
        assert!(
            *got == *expected,
            "{what}: column {name} differs after the round trip"
        );
    }
}

fn check_chosen(set: &DataSet, loaded: &Loaded) {
    let mut encoder = BatchEncoder::new(&loaded.schema).unwrap();
    let mut bytes = vec![0; loaded.schema.fields().len()];
    let mut labels = vec![Vec::<String>::new(); bytes.len()];
    for source in &loaded.batches {
        let batch = encoder.encode_new(source).unwrap();
        assert_decodes_to(set.name, &batch, source);
        let mut written = Vec::new();
        wire::write_batch(&batch, &mut written).unwrap();
        let read = wire::read_batch(&written).unwrap();
        assert_decodes_to(&format!("{} read back", set.name), &read, source);
        for (index, chunk) in batch.columns().iter().enumerate() {
            bytes[index] += chunk.byte_size();
            if !labels[index].contains(&chunk.codec_label()) {
                labels[index].push(chunk.codec_label());
            }
        }
    }
    let (rows, all) = (loaded.rows() as f64, bytes.iter().sum::<usize>() as f64);
    report(&format!(
        "{}: {rows} rows, {:.3} bytes/row encoded",
        set.name,
        all / rows
    ));
    for ((field, bytes), labels) in loaded.schema.fields().iter().zip(&bytes).zip(&labels) {
        let per_row = *bytes as f64 / rows;
        report(&format!(
            "    {:<16} {per_row:>7.3} B  {}",
            field.name(),
            labels.join(", ")
        ));
    }
}

fn check_pinned(set: &DataSet, loaded: &Loaded, codec: &'static dyn Codec) -> usize {
    let mut encoder = BatchEncoder::new(&loaded.schema).unwrap();
    encoder
        .columns_mut()
        .iter_mut()
        .for_each(|column| column.pin(codec));
    let mut pinned_columns = 0;
    for source in loaded.batches.iter().take(PINNED_BATCHES) {
        let batch = encoder.encode_new(source).unwrap();
        let taken = batch
            .columns()
            .iter()
            .filter(|chunk| chunk.codec().id() == codec.id());
        pinned_columns = pinned_columns.max(taken.count());
        assert_decodes_to(
            &format!("{} under {}", set.name, codec.name()),
            &batch,
            source,
        );
    }
    pinned_columns
}

fn check(set: &DataSet) {
    let Some(loaded) = set.load() else { return };
    check_chosen(set, &loaded);
    let mut used = 0;
    for codec in registry::exact() {
        let columns = check_pinned(set, &loaded, codec);
        used += columns;
        report(&format!(
            "{} under {}: {columns} columns",
            set.name,
            codec.name()
        ));
    }
    assert!(used > 0, "{}: no codec took a column", set.name);
}

#[test]
fn ripe_atlas_round_trips() {
    check(&RIPE_ATLAS);
}

#[test]
fn seattle_round_trips() {
    check(&SEATTLE);
}

#[test]
fn azure_round_trips() {
    check(&AZURE);
}

#[test]
fn flights_round_trip() {
    check(&FLIGHTS);
}

#[test]
fn beijing_round_trips() {
    check(&BEIJING);
}
