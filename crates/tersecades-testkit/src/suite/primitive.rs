//! The primitives beyond compare, fold and gather, against the same from plain values.

use std::collections::HashMap;
use std::ops::Range;

use arrow_schema::DataType;
use tersecades_columnar::ErrorKind;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{Codec, EncodeWork, Work};
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::primitive::arithmetic::Change;
use tersecades_columnar::primitive::fold_by::Folds;
use tersecades_columnar::primitive::repeat::Repeats;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, Value};

use super::case::{Case, Question, Within};
use super::codec::{Check, check_answers};
use super::expected::Expected;
use super::search::check_search;
use crate::oracle::order::order;
use crate::random::Random;

/// Groups that rows go to.
const GROUPS: usize = 5;

/// Most slices, and most changes, that are made of one column.
const MADE_MAX: usize = 4;

/// Checks the primitives that take a selection.
pub(super) fn check_selected(
    chunk: &Chunk,
    case: &Case,
    within: &Within,
    work: &mut Work,
) -> Check {
    check_repeats(chunk, case, within, work).map_err(|error| format!("repeats: {error}"))?;
    check_ranks(chunk, case, within, work).map_err(|error| format!("rank: {error}"))?;
    check_groups(chunk, case, within, work).map_err(|error| format!("fold_by: {error}"))
}

/// What tells a value from every other of its type, to the bit.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Number(i128),
    Bytes(Vec<u8>),
}

fn identity(value: &Value) -> Identity {
    match value {
        Value::Float(float) => Identity::Number(float.to_bits().into()),
        Value::Integer(number) | Value::Decimal(number, _) => Identity::Number(*number),
        Value::Text(text) => Identity::Bytes(text.as_bytes().to_vec()),
        Value::Binary(bytes) => Identity::Bytes(bytes.clone()),
        Value::Null => Identity::Number(i128::MIN),
    }
}

fn check_repeats(chunk: &Chunk, case: &Case, within: &Within, work: &mut Work) -> Check {
    let mut expected: HashMap<Identity, u64> = HashMap::new();
    for row in &within.rows {
        if case.values[*row] != Value::Null {
            *expected.entry(identity(&case.values[*row])).or_default() += 1;
        }
    }
    let mut repeats = Repeats::default();
    chunk.repeats(&within.selection, &mut repeats, work);
    if repeats.values.len() != repeats.len() || repeats.counts.contains(&0) {
        return Err("pairs do not match, or count nothing".to_owned());
    }
    let mut got: HashMap<Identity, u64> = HashMap::new();
    for (index, count) in repeats.counts.iter().enumerate() {
        *got.entry(identity(&repeats.values.value(index)))
            .or_default() += count;
    }
    match got == expected {
        true => Ok(()),
        false => Err(format!("{} values, not {}", got.len(), expected.len())),
    }
}

fn check_ranks(chunk: &Chunk, case: &Case, within: &Within, work: &mut Work) -> Check {
    let mut ranks = Vec::new();
    let ranked = chunk.rank(&within.selection, &mut ranks, work);
    if chunk.physical() == Physical::Wide {
        return match ranked {
            Ok(()) => Err("decimals have ranks".to_owned()),
            Err(_) => Ok(()),
        };
    }
    ranked.map_err(|error| error.to_string())?;
    let values = within.rows.iter().map(|row| &case.values[*row]);
    let present: Vec<&Value> = values.filter(|value| **value != Value::Null).collect();
    if present.len() != ranks.len() {
        return Err(format!("{} ranks, not {}", ranks.len(), present.len()));
    }
    let mut pairs: Vec<(u64, &Value)> = ranks.into_iter().zip(present).collect();
    pairs.sort_by_key(|pair| pair.0);
    let wrong = pairs
        .windows(2)
        .find(|pair| order(pair[0].1, pair[1].1) != pair[0].0.cmp(&pair[1].0));
    wrong.map_or(Ok(()), |pair| Err(format!("{pair:?} do not sort")))
}

fn check_groups(chunk: &Chunk, case: &Case, within: &Within, work: &mut Work) -> Check {
    let ids: Vec<u32> = within
        .rows
        .iter()
        .map(|row| (row * 7 / 3 % GROUPS) as u32)
        .collect();
    let asked = Asked {
        sum: true,
        squares: true,
        ends: true,
    };
    let mut folds = vec![Fold::default(); GROUPS];
    let mut groups = Folds {
        asked,
        folds: &mut folds,
    };
    chunk.fold_by(&within.selection, &ids, &mut groups, work);
    for (group, fold) in folds.iter().enumerate() {
        let rows = within.rows.iter().zip(&ids);
        let values: Vec<&Value> = rows
            .filter(|(_, id)| **id as usize == group)
            .map(|(row, _)| &case.values[*row])
            .collect();
        let expected = Expected::of(&case.data_type, &values);
        if let Some(difference) = expected.difference(asked, fold) {
            return Err(format!("group {group}: {difference}"));
        }
    }
    Ok(())
}

/// Checks the fold of what passes question `index`; seldom where a codec compares and folds, which
/// are checked by themselves.
pub(super) fn check_fold_where(
    (chunk, case): (&Chunk, &Case),
    within: &Within,
    (index, question): (usize, &Question),
    work: &mut Work,
) -> Check {
    const SELDOM: usize = 8;
    if !chunk.folds_where(&question.predicate) && !index.is_multiple_of(SELDOM) {
        return Ok(());
    }
    let passing = within.rows.iter().filter(|row| question.passing[**row]);
    let values: Vec<&Value> = passing.map(|row| &case.values[*row]).collect();
    let expected = Expected::of(&case.data_type, &values);
    for (sum, rest) in [(false, false), (true, false), (true, true)] {
        let asked = Asked {
            sum,
            squares: rest,
            ends: rest,
        };
        let test = (&question.predicate, &within.selection);
        let mut fold = Fold::default();
        chunk.fold_where(test, asked, &mut fold, work);
        if let Some(difference) = expected.difference(asked, &fold) {
            let name = &question.name;
            return Err(format!("fold_where {name} {asked:?}: {difference}"));
        }
    }
    Ok(())
}

/// Checks arithmetic and slices of a chunk under `codec`, whose encoder is given.
pub(super) fn check_made(
    codec: &'static dyn Codec,
    (chunk, encoder): (&Chunk, &mut ColumnEncoder),
    case: &Case,
    random: &mut Random,
) -> Check {
    check_slices(chunk, case, random).map_err(|error| format!("slice {error}"))?;
    check_search(chunk, case, random)?;
    if !matches!(chunk.physical(), Physical::Integer { .. }) {
        return Ok(());
    }
    check_maps(chunk, case, random)?;
    check_sums(codec, (chunk, encoder), case, random)
}

fn check_slices(chunk: &Chunk, case: &Case, random: &mut Random) -> Check {
    let rows = chunk.rows();
    let mut ranges: Vec<Range<usize>> = vec![0..rows, 0..rows / 2, rows / 2..rows, 0..0];
    ranges.extend((rows > 1_030).then(|| 1_024..rows - 3));
    ranges.extend((rows > 2_100).then_some(1_024..2_048));
    ranges.extend((rows > 2).then(|| 1..rows - 1));
    let (mut work, mut encode) = (Work::default(), EncodeWork::default());
    let mut slice = Chunk::default();
    while ranges.len() > MADE_MAX {
        ranges.swap_remove(random.below(ranges.len()));
    }
    for range in ranges {
        let name = format!("{range:?}");
        let part = Case::new(&case.data_type, case.values[range.clone()].to_vec());
        chunk
            .slice(range, &mut slice, &mut work, &mut encode)
            .map_err(|error| format!("{name}: {error}"))?;
        let answers = check_answers(&slice, &part, random);
        answers.map_err(|error| format!("{name}: {error}"))?;
        let values = part.values.iter().any(|value| *value != Value::Null);
        let ordered = !matches!(slice.physical(), Physical::Wide | Physical::Text);
        if slice.stats().known != (values && ordered) {
            return Err(format!("{name}: wrong ends"));
        }
    }
    match chunk.slice(0..rows + 1, &mut slice, &mut work, &mut encode) {
        Ok(()) => Err("reaches past the end".to_owned()),
        Err(_) => Ok(()),
    }
}

/// The integers of values, nulls as they are; `None` when one of them leaves 64 signed bits.
fn results(values: impl Iterator<Item = Option<i128>>) -> Option<Vec<Value>> {
    let value = |value: Option<i128>| match value {
        Some(value) => i64::try_from(value).ok().map(Value::from),
        None => Some(Value::Null),
    };
    values.map(value).collect()
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Integer(integer) => Some(*integer),
        _ => None,
    }
}

fn check_maps(chunk: &Chunk, case: &Case, random: &mut Random) -> Check {
    let (mut work, mut encode) = (Work::default(), EncodeWork::default());
    let mut out = Chunk::default();
    let constants = [
        0,
        1,
        -1,
        1_000,
        i64::MAX,
        i64::MIN,
        random.between(i64::MIN / 2, i64::MAX / 2),
    ];
    let mut changes: Vec<Change> = constants.map(Change::Add).to_vec();
    changes.extend([0, 2, -1, -3, i64::MIN].map(Change::Multiply));
    while changes.len() > MADE_MAX {
        changes.swap_remove(random.below(changes.len()));
    }
    for change in changes {
        let operands = case.values.iter().map(integer);
        let expected = results(operands.clone())
            .and_then(|_| results(operands.map(|value| value.map(|value| change.apply(value)))));
        let mapped = chunk.map(change, &mut out, &mut work, &mut encode);
        check_result(&out, mapped, expected, random)
            .map_err(|error| format!("map {change:?}: {error}"))?;
    }
    Ok(())
}

fn check_result(
    out: &Chunk,
    outcome: tersecades_columnar::Result<()>,
    expected: Option<Vec<Value>>,
    random: &mut Random,
) -> Check {
    match (outcome, expected) {
        (Ok(()), Some(values)) => check_answers(out, &Case::new(&DataType::Int64, values), random),
        (Err(error), None) if error.kind() == ErrorKind::LimitExceeded => Ok(()),
        (Ok(()), None) => Err("an overflow is no error".to_owned()),
        (Err(error), _) => Err(error.to_string()),
    }
}

fn check_sums(
    codec: &'static dyn Codec,
    (chunk, encoder): (&Chunk, &mut ColumnEncoder),
    case: &Case,
    random: &mut Random,
) -> Check {
    let mut rotated = case.values.clone();
    let third = rotated.len() / 3;
    rotated.rotate_left(third);
    let halved = rotated.iter().map(|value| match value {
        Value::Integer(value) => Value::Integer(value / 2),
        other => other.clone(),
    });
    let halved = Case::new(&case.data_type, halved.collect());
    let rotated = Case::new(&case.data_type, rotated);
    let (mut work, mut encode) = (Work::default(), EncodeWork::default());
    let mut out = Chunk::default();
    let mut free = ColumnEncoder::new(&case.data_type).map_err(|error| error.to_string())?;
    for (other, past_caches) in [(&rotated, false), (&halved, true)] {
        for (name, encoder) in [(codec.name(), &mut *encoder), ("chosen", &mut free)] {
            let encoded = encoder.encode_new(&other.array);
            let encoded = encoded.map_err(|error| error.to_string())?;
            let pairs = case.values.iter().zip(&other.values);
            let sums = pairs.map(|(a, b)| Some(integer(a)? + integer(b)?));
            let fit = |case: &Case| results(case.values.iter().map(integer));
            let expected = fit(case)
                .and_then(|_| fit(other))
                .and_then(|_| results(sums));
            encode.past_caches = past_caches;
            let added = chunk.add(&encoded, &mut out, &mut work, &mut encode);
            check_result(&out, added, expected, random)
                .map_err(|error| format!("add {name}: {error}"))?;
        }
    }
    let all = Selection::all(out.rows());
    let mut ranks = Vec::new();
    out.rank(&all, &mut ranks, &mut work)
        .map_err(|error| error.to_string())
}
