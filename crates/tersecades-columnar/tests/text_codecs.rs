//! Codecs of text without a dictionary against the texts themselves: nulls, empty texts, zero
//! bytes, long repeats and noise, over several blocks and units.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, DictionaryArray, Int32Array, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use tersecades_columnar::bitmap::Bitmap;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{EncodeWork, Work};
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::goal::{Goal, Uses};
use tersecades_columnar::input::Input;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, Value};
use tersecades_columnar::values::Values;
use tersecades_columnar::{arrow, registry, wire};

const CODECS: [&str; 4] = ["symbols", "lz4", "snappy", "zstd"];

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

type Row = Option<Vec<u8>>;

fn noise(index: usize) -> u64 {
    let mut bits = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits ^ (bits >> 32)
}

/// Columns by name; `rows` rows each.
fn columns(rows: usize) -> Vec<(&'static str, Vec<Row>)> {
    let column = |make: &dyn Fn(usize) -> Row| (0..rows).map(make).collect::<Vec<Row>>();
    let link = |i: usize| format!("https://example.org/{}/{:x}.html", i % 9, noise(i) >> 40);
    let bytes = |i: usize| {
        let length = noise(i) as usize % 23;
        (0..length).map(|at| noise(i * 31 + at) as u8).collect()
    };
    let zeros = |i: usize| {
        let length = noise(i) as usize % 20;
        (0..length)
            .map(|at| u8::from(noise(i + at).is_multiple_of(5)) * (at as u8 % 3))
            .collect()
    };
    vec![
        ("links", column(&|i| Some(link(i).into_bytes()))),
        (
            "holes",
            column(&|i| (i % 3 != 1).then(|| link(i).into_bytes())),
        ),
        ("nothing", column(&|_| None)),
        ("empty", column(&|i| (i % 7 != 0).then(Vec::new))),
        ("noise", column(&|i| Some(bytes(i)))),
        ("zeros", column(&|i| Some(zeros(i)))),
        (
            "long",
            column(&|i| Some(vec![b'a' + (i % 3) as u8; noise(i) as usize % 300])),
        ),
        (
            "umlauts",
            column(&|i| Some("grün ÄÖÜ 漢字 ".repeat(i % 4).into_bytes())),
        ),
        (
            "equal",
            column(&|_| Some(b"the same text in every row".to_vec())),
        ),
        (
            "rare",
            column(&|i| (i % 1_500 == 1_499).then(|| link(i).into_bytes())),
        ),
    ]
}

fn array(rows: &[Row]) -> ArrayRef {
    let utf8 = rows
        .iter()
        .flatten()
        .all(|row| std::str::from_utf8(row).is_ok());
    let texts = rows.iter().map(Option::as_deref);
    match utf8 {
        true => Arc::new(
            texts
                .map(|text| text.map(|text| std::str::from_utf8(text).unwrap()))
                .collect::<StringArray>(),
        ),
        false => Arc::new(texts.collect::<BinaryArray>()),
    }
}

fn encode(codec: &str, array: &ArrayRef, work: &mut EncodeWork, chunk: &mut Chunk) {
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
    let codec = registry::by_name(codec).unwrap();
    chunk.encode(&codec.into(), &input, work).unwrap();
    codec.validate(chunk).unwrap();
}

/// Selections: all rows, every third as bits, a few listed, the last one.
fn selections(rows: usize) -> Vec<Selection> {
    let listed = |keep: &dyn Fn(usize) -> bool| {
        let mut selection = Selection::default();
        let list = selection.set_rows(rows);
        list.extend((0..rows).filter(|row| keep(*row)).map(|row| row as u32));
        selection
    };
    let mut dense = listed(&|row| row % 3 == 0);
    dense.to_bits();
    vec![
        Selection::all(rows),
        dense,
        listed(&|row| noise(row).is_multiple_of(97)),
        listed(&|row| row + 1 == rows),
    ]
}

fn text(values: &Values, index: usize) -> Row {
    values.is_valid(index).then(|| {
        let dictionary = values.dictionary.as_ref().unwrap();
        dictionary.read().get(values.keys[index] as u32).to_vec()
    })
}

fn check(name: &str, chunk: &Chunk, rows: &[Row]) {
    let mut work = Work::default();
    for within in selections(rows.len()) {
        let mut chosen = Vec::new();
        within.for_each(|row| chosen.push(row));
        let mut values = Values::default();
        chunk.gather(&within, &mut values, &mut work);
        assert_eq!(values.len(), chosen.len(), "{name}");
        for (index, row) in chosen.iter().enumerate() {
            assert_eq!(text(&values, index), rows[*row], "{name} row {row}");
        }
        let asked = Asked {
            sum: true,
            ..Asked::default()
        };
        let mut fold = Fold::default();
        chunk.fold(asked, &within, &mut fold, &mut work);
        let valid = chosen.iter().filter(|row| rows[**row].is_some());
        assert_eq!(fold.count, valid.count() as u64, "{name}");
        for constant in constants(rows) {
            let value = Value::Binary(constant.clone());
            for how in COMPARISONS {
                let predicate = Predicate::compare(chunk.data_type(), how, &value).unwrap();
                let mut found = Selection::default();
                chunk.compare(&predicate, &within, &mut found, &mut work);
                let passes = |row: &usize| {
                    rows[*row]
                        .as_ref()
                        .is_some_and(|text| predicate.matches_text(text))
                };
                let expected: Vec<usize> = chosen.iter().copied().filter(passes).collect();
                let mut got = Vec::new();
                found.for_each(|row| got.push(row));
                assert_eq!(got, expected, "{name} {how:?} {constant:?}");
            }
        }
    }
}

/// Texts of the column, their beginnings and continuations, and some that are never there.
fn constants(rows: &[Row]) -> Vec<Vec<u8>> {
    let mut constants = vec![Vec::new(), vec![0xFF; 3], b"m".to_vec()];
    for at in [rows.len() / 3, rows.len() / 2 + 1] {
        let Some(Some(text)) = rows.get(at) else {
            continue;
        };
        constants.push(text.clone());
        constants.push(text[..text.len() / 2].to_vec());
        constants.push([text.as_slice(), &[0]].concat());
    }
    constants
}

#[test]
fn texts_come_back_and_compare_as_themselves() {
    for codec in CODECS {
        let (mut work, mut chunk) = (EncodeWork::default(), Chunk::default());
        for count in [0, 1, 63, 1_024, 1_025, 3_000, 17_000] {
            for (name, rows) in columns(count) {
                let name = format!("{codec} {name} {count}");
                let array = array(&rows);
                encode(codec, &array, &mut work, &mut chunk);
                check(&name, &chunk, &rows);
                let mut bytes = Vec::new();
                wire::write_chunk(&chunk, &mut bytes).unwrap();
                let (back, _) = wire::read_chunk(&bytes, None).unwrap();
                assert_eq!(back.codec_label(), chunk.codec_label());
                check(&name, &back, &rows);
            }
        }
    }
}

#[test]
fn slices_of_arrays_are_encoded_alone() {
    let (_, rows) = columns(2_500).swap_remove(1);
    for codec in CODECS {
        let mut chunk = Chunk::default();
        let slice = array(&rows).slice(700, 1_500);
        encode(codec, &slice, &mut EncodeWork::default(), &mut chunk);
        check(codec, &chunk, &rows[700..2_200]);
    }
}

#[test]
fn texts_that_begin_anew_hold_none_of_those_before() {
    let texts = |what: &str| -> ArrayRef {
        let texts = (0..2_000).map(|row| format!("{what} {}", row % 9));
        Arc::new(StringArray::from_iter_values(texts))
    };
    let mut encoder = ColumnEncoder::new(texts("").data_type()).unwrap();
    let before = encoder.encode_new(&texts("before")).unwrap();
    encoder.renew();
    let chunk = encoder.encode_new(&texts("after")).unwrap();
    assert_eq!(chunk.dictionary().map(|texts| texts.len()), Some(9));
    for (chunk, what) in [(before, "before"), (chunk, "after")] {
        let all = Selection::all(chunk.rows());
        let back = chunk.to_arrow(&all, &mut Work::default()).unwrap();
        let back = arrow_cast::cast(&back, texts("").data_type()).unwrap();
        assert_eq!(&back, &texts(what));
    }
}

/// The rows after which an encoder for `uses` makes no more codes of texts that occur `times` each.
fn rows_until_texts_stay(uses: Uses, times: usize) -> Option<usize> {
    const BATCH_ROWS: usize = 16_000;
    let mut encoder = ColumnEncoder::new(&DataType::Utf8).unwrap();
    encoder.aim(Goal {
        uses,
        ..Goal::default()
    });
    (0..20).map(|batch| batch * BATCH_ROWS).find(|start| {
        let texts = (*start..start + BATCH_ROWS).map(|row| format!("text {}", row / times));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let chunk = encoder.encode_new(&texts).unwrap();
        let back = chunk.to_arrow(&Selection::all(BATCH_ROWS), &mut Work::default());
        assert_eq!(
            &arrow_cast::cast(&back.unwrap(), texts.data_type()).unwrap(),
            &texts
        );
        encoder.dictionary().is_none()
    })
}

#[test]
fn texts_that_are_read_once_stay_texts_where_they_are_nearly_all_different() {
    let uses = |reads: f64| Uses {
        reads,
        ..Uses::default()
    };
    assert_eq!(rows_until_texts_stay(uses(1.0), 1), Some(128_000));
    assert_eq!(rows_until_texts_stay(uses(1.0), 2), None, "they repeat");
    assert_eq!(
        rows_until_texts_stay(uses(2.0), 1),
        None,
        "they are read again"
    );
    let passed = |times| {
        let keyed = false;
        let uses = Uses { keyed, ..uses(1.0) };
        rows_until_texts_stay(uses, times)
    };
    assert_eq!(passed(1), Some(16_000), "nothing goes by them");
    assert_eq!(passed(10), Some(16_000));
    assert_eq!(passed(20), None, "they repeat");
}

#[test]
fn texts_that_a_chunk_lacks_differ_from_all_of_its_own() {
    let texts = |numbers: &mut dyn Iterator<Item = usize>| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            numbers.map(|n| format!("t{n}")),
        ))
    };
    let mut encoder = ColumnEncoder::new(&DataType::Utf8).unwrap();
    let scheme: Scheme = "dictionary(gcd(frame_of_reference))".parse().unwrap();
    encoder.require(scheme).unwrap();
    // Even codes, of which the odd one is none, and a dictionary that has doubled since.
    encoder.encode_new(&texts(&mut (0..256))).unwrap();
    let even = texts(&mut (0..3_000).map(|row| row % 11 * 2));
    let chunk = encoder.encode_new(&even).unwrap();
    encoder.encode_new(&texts(&mut (256..512))).unwrap();
    let all = Selection::all(chunk.rows());
    for (text, expected) in [("t5", 3_000), ("t4", 3_000 - 273), ("t511", 3_000)] {
        let text = Value::Text(text.into());
        let differs = Predicate::compare(&DataType::Utf8, Comparison::NotEqual, &text).unwrap();
        let (mut found, mut work) = (Selection::default(), Work::default());
        chunk.compare(&differs, &all, &mut found, &mut work);
        assert_eq!(found.count(), expected, "{text:?}");
    }
}

/// Batches of one source often share the buffers of their dictionary; its nulls are its own.
#[test]
fn a_dictionary_with_other_nulls_is_another() {
    let (offsets, bytes, _) = StringArray::from(vec!["a", "b", "c"]).into_parts();
    let keys = Int32Array::from(vec![2, 1, 0, 1]);
    let holes = NullBuffer::from(vec![true, false, true]);
    let mut encoder = ColumnEncoder::new(&DataType::Utf8).unwrap();
    for nulls in [Some(holes.clone()), None, Some(holes)] {
        let texts = StringArray::new(offsets.clone(), bytes.clone(), nulls);
        let array: ArrayRef = Arc::new(DictionaryArray::new(keys.clone(), Arc::new(texts)));
        let chunk = encoder.encode_new(&array).unwrap();
        let back = chunk.to_arrow(&Selection::all(4), &mut Work::default());
        let plain = |array| arrow_cast::cast(array, &DataType::Utf8).unwrap();
        assert_eq!(&plain(&back.unwrap()), &plain(&array));
    }
}
