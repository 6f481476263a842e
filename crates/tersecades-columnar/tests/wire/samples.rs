//! Chunks of every codec and of every kind of type, as seeds of tests.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int8Array, Int16Array, Int64Array, StringArray, TimestampMillisecondArray,
    TimestampNanosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema};
use tersecades_columnar::batch::Batch;
use tersecades_columnar::bitmap::Bitmap;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::EncodeWork;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::goal::Tier;
use tersecades_columnar::input::Input;
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::types::Physical;
use tersecades_columnar::{arrow, registry};

/// Codecs of text that is not dictionary-encoded.
pub(crate) const TEXT_CODECS: [&str; 5] = ["plain", "symbols", "lz4", "snappy", "zstd"];

/// An array under this scheme, or under the chosen one where that refuses it.
pub(crate) fn encode(scheme: &str, array: ArrayRef) -> Chunk {
    let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
    encoder.pin(scheme.parse::<Scheme>().unwrap());
    encoder.encode_new(&array).unwrap()
}

/// Text that is not dictionary-encoded, as beyond the cardinality limit, under `codec`.
pub(crate) fn text_under(scheme: &str, array: &ArrayRef) -> Chunk {
    let mut validity = Bitmap::default();
    if let Some(nulls) = array.nulls() {
        validity.copy_nulls(nulls);
    }
    let input = Input {
        data_type: array.data_type(),
        physical: Physical::of(array.data_type()).unwrap(),
        lanes: arrow::lanes(array.as_ref()).unwrap(),
        validity: (!validity.is_empty()).then_some(&validity),
        array: Some(array),
    };
    let mut chunk = Chunk::default();
    let scheme: Scheme = scheme.parse().unwrap();
    chunk
        .encode(&scheme, &input, &mut EncodeWork::default())
        .unwrap();
    chunk
}

/// Every codec by name, the lossy ones with a bound, and cascades; and whether each is cold.
fn schemes() -> impl Iterator<Item = (String, bool)> {
    let cascades = [
        "run_length(varint)",
        "delta(bit_pack)",
        "delta(run_length(varint))",
    ];
    let codecs = registry::CODECS.iter().map(|codec| {
        let bound = if codec.is_lossy() { "(0.25)" } else { "" };
        let name = format!("{}{bound}", codec.name());
        (name, codec.tier() == Tier::Cold)
    });
    codecs.chain(cascades.map(|cascade| (cascade.to_owned(), true)))
}

/// A fixed sequence of numbers without a pattern.
pub(crate) fn noise(index: usize) -> u64 {
    let mut bits = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits ^ (bits >> 32)
}

fn hole(index: usize) -> bool {
    noise(index).is_multiple_of(9)
}

/// Near values with outliers at both ends, and holes.
fn drifting(index: usize) -> Option<i64> {
    let value = 1_700_000_000_000 + index as i64 * 3 + (noise(index) % 50) as i64;
    (!hole(index)).then_some(match noise(index) % 97 {
        0 => value + 1_000_000_000,
        1 => value - 1_000_000_000,
        _ => value,
    })
}

/// A sensor's readings of one decimal, with holes, and some that are no such decimals.
fn reading(index: usize) -> Option<f64> {
    let value = 200.0 + (index as f64 / 30.0).sin() * 50.0;
    (!hole(index)).then_some(match noise(index) % 60 {
        0 => f64::NAN,
        1 => -0.0,
        2 => value,
        _ => value.round() / 10.0,
    })
}

fn numbers(rows: usize) -> Vec<ArrayRef> {
    let all = 0..rows;
    let bits = move || (0..rows).map(noise);
    let mostly = |index: usize| match noise(index) % 40 {
        0 => Some(noise(index) as u16),
        1 => None,
        _ => Some(7),
    };
    vec![
        Arc::new(all.clone().map(drifting).collect::<Int64Array>()),
        Arc::new(Int64Array::from_iter_values(bits().map(|b| b as i64))),
        Arc::new(UInt64Array::from_iter_values(bits())),
        Arc::new(all.clone().map(mostly).collect::<UInt16Array>()),
        Arc::new(UInt8Array::from_iter_values(bits().map(|b| b as u8 % 4))),
        Arc::new(Int8Array::from_iter_values(bits().map(|b| b as i8))),
        Arc::new(Int16Array::from_iter_values(
            all.clone().map(|i| -(i as i16) / 200),
        )),
        Arc::new(UInt32Array::from_iter_values(
            bits().map(|b| b as u32 >> 12),
        )),
        Arc::new(UInt32Array::from(vec![None::<u32>; rows])),
        Arc::new(Date32Array::from_iter_values(
            all.clone().map(|i| 19_000 + i as i32 / 7),
        )),
        Arc::new(
            all.clone()
                .map(drifting)
                .collect::<TimestampMillisecondArray>()
                .with_timezone("Europe/Zurich"),
        ),
        Arc::new(
            all.clone()
                .map(drifting)
                .collect::<TimestampNanosecondArray>(),
        ),
        Arc::new(
            all.clone()
                .map(|i| (!hole(i)).then_some(i % 3 == 0))
                .collect::<BooleanArray>(),
        ),
        Arc::new(Float64Array::from_iter_values(bits().map(f64::from_bits))),
        Arc::new(
            all.clone()
                .map(|i| (!hole(i)).then_some(i as f32 / 300.0))
                .collect::<Float32Array>(),
        ),
        Arc::new(all.clone().map(reading).collect::<Float64Array>()),
        Arc::new(
            Decimal128Array::from_iter_values(bits().map(|b| i128::from(b) - (1 << 62)))
                .with_precision_and_scale(30, 4)
                .unwrap(),
        ),
    ]
}

fn texts(rows: usize) -> Vec<ArrayRef> {
    let node = |index: usize| (!hole(index)).then(|| format!("node-{}", noise(index) % 30));
    let zone = |index: usize| Some(["eu-west", "us-öst", ""][index / 400 % 3]);
    vec![
        Arc::new((0..rows).map(node).collect::<StringArray>()),
        Arc::new((0..rows).map(zone).collect::<StringArray>()),
        Arc::new(
            (0..rows)
                .map(|i| hole(i).then_some("rare"))
                .collect::<StringArray>(),
        ),
        Arc::new(StringArray::from(vec![None::<&str>; rows])),
        Arc::new(
            (0..rows)
                .map(|i| Some(noise(i % 500).to_le_bytes()))
                .collect::<BinaryArray>(),
        ),
        Arc::new(
            (0..rows + 5)
                .map(node)
                .collect::<StringArray>()
                .slice(5, rows),
        ),
    ]
}

/// Every codec over every array of `rows` rows, named.
pub(crate) fn chunks(rows: usize) -> Vec<(String, Chunk)> {
    let mut all = Vec::new();
    for (index, array) in numbers(rows).into_iter().enumerate() {
        for (at, (scheme, cold)) in schemes().enumerate() {
            // Each cold one on every third array of numbers only, to keep tests short.
            if cold && !(index + at).is_multiple_of(3) {
                continue;
            }
            let chunk = encode(&scheme, Arc::clone(&array));
            if scheme.starts_with(chunk.codec().name()) {
                all.push((format!("{scheme} {}", array.data_type()), chunk));
            }
        }
    }
    for array in texts(rows) {
        let chunk = encode("dictionary", Arc::clone(&array));
        all.push((
            format!("{} {}", chunk.codec_label(), array.data_type()),
            chunk,
        ));
        for codec in TEXT_CODECS {
            let chunk = text_under(codec, &array);
            all.push((format!("{codec} {}", array.data_type()), chunk));
        }
    }
    all
}

/// A batch with one column for each chunk of [`chunks`].
pub(crate) fn batch(rows: usize) -> Batch {
    let (names, columns): (Vec<String>, Vec<Chunk>) = chunks(rows).into_iter().unzip();
    let fields = names
        .iter()
        .zip(&columns)
        .map(|(name, chunk)| Field::new(name, chunk.data_type().clone(), chunk.nulls() > 0));
    Batch::new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).unwrap()
}
