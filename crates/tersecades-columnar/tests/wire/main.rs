//! The byte format: round trips, golden bytes, and bytes that lie.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod exercise;
mod golden;
mod hostile;
mod samples;

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::values::Values;
use tersecades_columnar::wire;

fn written(chunk: &Chunk) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::write_chunk(chunk, &mut bytes).unwrap();
    bytes
}

fn values(chunk: &Chunk) -> Values {
    let mut values = Values::default();
    chunk.gather(
        &Selection::all(chunk.rows()),
        &mut values,
        &mut Work::default(),
    );
    values
}

fn assert_same(name: &str, a: &Chunk, b: &Chunk) {
    assert_eq!((a.rows(), a.nulls()), (b.rows(), b.nulls()), "{name}");
    assert_eq!(a.data_type(), b.data_type(), "{name}");
    assert_eq!(a.stats(), b.stats(), "{name}");
    assert_eq!(a.codec_label(), b.codec_label(), "{name}");
    let (a, b) = (values(a), values(b));
    for row in 0..a.len() {
        assert_eq!(
            format!("{:?}", a.value(row)),
            format!("{:?}", b.value(row)),
            "{name} row {row}"
        );
    }
}

#[test]
fn every_codec_and_type_round_trips_bit_by_bit() {
    for rows in [0, 1, 63, 1_024, 2_300] {
        for (name, chunk) in samples::chunks(rows) {
            let bytes = written(&chunk);
            let (back, length) = wire::read_chunk(&bytes, None).unwrap_or_else(|error| {
                panic!("{name}, {rows} rows: {error}");
            });
            assert_eq!(length, bytes.len(), "{name}");
            assert_same(&name, &chunk, &back);
            assert_eq!(written(&back), bytes, "{name}, {rows} rows");
            exercise::exercise(&back);
        }
    }
}

#[test]
fn units_follow_one_another_at_any_position() {
    let mut bytes = vec![0xAB; 7];
    let chunks = samples::chunks(300);
    for (_, chunk) in &chunks {
        wire::write_chunk(chunk, &mut bytes).unwrap();
    }
    let mut at = 7;
    for (name, chunk) in &chunks {
        let (back, length) = wire::read_chunk(&bytes[at..], None).unwrap();
        assert_same(name, chunk, &back);
        at += length;
    }
    assert_eq!(at, bytes.len());
}

#[test]
fn batches_round_trip_with_names_and_types() {
    for rows in [0, 1_500] {
        let batch = samples::batch(rows);
        let mut bytes = Vec::new();
        wire::write_batch(&batch, &mut bytes).unwrap();
        let back = wire::read_batch(&bytes).unwrap();
        assert_eq!(back.schema(), batch.schema());
        assert_eq!(back.rows(), rows);
        for (index, (a, b)) in batch.columns().iter().zip(back.columns()).enumerate() {
            assert_same(batch.schema().field(index).name(), a, b);
        }
    }
}

#[test]
fn only_texts_that_codes_can_mean_are_written() {
    let early = samples::chunks(2_300);
    let (_, chunk) = early
        .iter()
        .find(|(name, _)| name.starts_with("dictionary"))
        .unwrap();
    let short = written(chunk);
    let dictionary = chunk.dictionary().unwrap();
    for index in 0..10_000 {
        dictionary
            .intern(format!("later-{index}").as_bytes())
            .unwrap();
    }
    assert_eq!(written(chunk), short);
}

#[test]
fn chunks_of_one_column_share_a_table() {
    let chunk = samples::encode("dictionary", samples_text(&["a", "b", "a"]));
    let bytes = written(&chunk);
    let known = chunk.dictionary().unwrap();
    known.intern(b"c").unwrap();
    let (back, _) = wire::read_chunk(&bytes, Some(known)).unwrap();
    assert!(std::sync::Arc::ptr_eq(back.dictionary().unwrap(), known));
    let other = samples::encode("dictionary", samples_text(&["b", "a"]));
    let (back, _) = wire::read_chunk(&bytes, other.dictionary()).unwrap();
    assert!(!std::sync::Arc::ptr_eq(
        back.dictionary().unwrap(),
        other.dictionary().unwrap()
    ));
    assert_same("own table", &chunk, &back);
}

fn samples_text(texts: &[&str]) -> arrow_array::ArrayRef {
    std::sync::Arc::new(arrow_array::StringArray::from(texts.to_vec()))
}
