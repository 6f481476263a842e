//! Every primitive on a chunk, each answer compared with what decoding says.

use arrow_schema::DataType;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{EncodeWork, Work};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::primitive::arithmetic::Change;
use tersecades_columnar::primitive::fold_by::Folds;
use tersecades_columnar::primitive::repeat::Repeats;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, Value};
use tersecades_columnar::values::Values;

/// Above this many rows a chunk is only decoded at a few rows, to keep tests short.
const ROWS_MAX: usize = 1 << 16;

const COMPARISONS: [Comparison; 4] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::GreaterOrEqual,
];

/// Runs all primitives on `chunk`.
///
/// # Panics
/// Where a primitive panics or two of them disagree.
pub(crate) fn exercise(chunk: &Chunk) {
    let mut work = Work::default();
    let mut sparse = Selection::default();
    let last = chunk.rows().saturating_sub(1);
    let step = (chunk.rows() / 7).max(1);
    let picked = (0..chunk.rows()).step_by(step).chain([last]);
    let list = sparse.set_rows(chunk.rows());
    if chunk.rows() > 0 {
        list.extend(picked.map(|row| row as u32));
        list.dedup();
    }
    let mut few = Values::default();
    chunk.gather(&sparse, &mut few, &mut work);
    if chunk.rows() > ROWS_MAX {
        return;
    }
    let mut values = Values::default();
    chunk.gather(&Selection::all(chunk.rows()), &mut values, &mut work);
    assert_eq!(values.len(), chunk.rows());
    for (index, row) in sparse.list().iter().enumerate() {
        let (alone, among) = (few.value(index), values.value(*row as usize));
        assert!(
            same(&alone, &among),
            "{chunk:?} row {row}: {alone:?}, {among:?}"
        );
    }
    let mut dense = sparse.clone();
    dense.to_bits();
    let within = [
        Selection::all(chunk.rows()),
        sparse,
        dense,
        Selection::default(),
    ];
    for selection in &within {
        let mut selection = selection.clone();
        if selection.rows() != chunk.rows() {
            selection.set_none(chunk.rows());
        }
        compare_with_all(chunk, &values, &selection, &mut work);
        fold_all(chunk, &values, &selection, &mut work);
        group_all(chunk, &values, &selection, &mut work);
    }
    make_all(chunk, &values, &mut work);
    // Not every accepted value has an Arrow form, but trying must be safe.
    let _ = chunk.to_arrow(&within[0], &mut work);
    let _ = chunk.to_arrow(&within[1], &mut work);
    assert!(chunk.byte_size() < usize::MAX / 2);
}

/// Repeats, ranks and folds by group.
fn group_all(chunk: &Chunk, values: &Values, within: &Selection, work: &mut Work) {
    let valid = |row: &usize| within.contains(*row) && values.is_valid(*row);
    let count = (0..chunk.rows()).filter(valid).count() as u64;
    let mut repeats = Repeats::default();
    chunk.repeats(within, &mut repeats, work);
    assert_eq!(repeats.counts.iter().sum::<u64>(), count);
    let mut ranks = Vec::new();
    if chunk.rank(within, &mut ranks, work).is_ok() {
        assert_eq!(ranks.len() as u64, count);
    }
    let ids: Vec<u32> = (0..within.count() as u32).map(|index| index % 3).collect();
    let mut folds = [Fold::default(); 3];
    let mut groups = Folds {
        asked: Asked::default(),
        folds: &mut folds,
    };
    chunk.fold_by(within, &ids, &mut groups, work);
    assert_eq!(folds.iter().map(|fold| fold.count).sum::<u64>(), count);
}

/// Chunks made of the chunk.
fn make_all(chunk: &Chunk, values: &Values, work: &mut Work) {
    let (mut encode, mut out) = (EncodeWork::default(), Chunk::default());
    for change in [Change::Add(-7), Change::Multiply(3)] {
        if chunk.map(change, &mut out, work, &mut encode).is_ok() {
            for row in (0..chunk.rows()).filter(|row| values.is_valid(*row)) {
                let expected = Value::Integer(change.apply(values.integer(row)));
                assert_eq!(value_at(&out, row, work), expected, "{chunk:?} {change:?}");
            }
        }
    }
    if chunk.add(chunk, &mut out, work, &mut encode).is_ok() {
        for row in (0..chunk.rows()).filter(|row| values.is_valid(*row)) {
            let expected = Value::Integer(2 * values.integer(row));
            assert_eq!(value_at(&out, row, work), expected, "{chunk:?} doubled");
        }
    }
    for start in [0, chunk.rows() / 3, chunk.rows().min(1_024)] {
        let sliced = chunk.slice(start..chunk.rows(), &mut out, work, &mut encode);
        if sliced.is_ok() && start < chunk.rows() {
            assert!(same(&value_at(&out, 0, work), &values.value(start)));
        }
    }
}

fn value_at(chunk: &Chunk, row: usize, work: &mut Work) -> Value {
    let (mut one, mut values) = (Selection::default(), Values::default());
    one.set_rows(chunk.rows()).push(row as u32);
    chunk.gather(&one, &mut values, work);
    values.value(0)
}

/// Equality of values in which every NaN is one value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => {
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
        }
        _ => a == b,
    }
}

/// A value of the chunk as a constant that its type can be compared with.
fn constant(chunk: &Chunk, values: &Values, row: usize) -> Option<Value> {
    match (values.value(row), chunk.data_type()) {
        (Value::Null, _) => None,
        (Value::Decimal(digits, _), DataType::Decimal128(_, scale)) => {
            Some(Value::Decimal(digits, *scale))
        }
        (value, _) => Some(value),
    }
}

fn compare_with_all(chunk: &Chunk, values: &Values, within: &Selection, work: &mut Work) {
    let mut found = Selection::default();
    for row in [0, chunk.rows() / 2, chunk.rows().saturating_sub(1)] {
        if row >= chunk.rows() {
            continue;
        }
        let Some(constant) = constant(chunk, values, row) else {
            continue;
        };
        for how in COMPARISONS {
            let Ok(predicate) = Predicate::compare(chunk.data_type(), how, &constant) else {
                continue;
            };
            chunk.compare(&predicate, within, &mut found, work);
            for row in 0..chunk.rows() {
                let expected = within.contains(row) && values.is_valid(row) && {
                    passes(&predicate, values, row)
                };
                assert_eq!(
                    found.contains(row),
                    expected,
                    "{chunk:?} {predicate:?} row {row}"
                );
            }
        }
    }
}

fn passes(predicate: &Predicate, values: &Values, row: usize) -> bool {
    match values.physical {
        Physical::Wide => predicate.matches_wide(values.wide[row]),
        Physical::Text => values.dictionary.as_ref().is_some_and(|dictionary| {
            predicate.matches_text(dictionary.read().get(values.keys[row] as u32))
        }),
        _ => u64::try_from(values.ordered(row)).is_ok_and(|key| predicate.matches_key(key)),
    }
}

fn fold_all(chunk: &Chunk, values: &Values, within: &Selection, work: &mut Work) {
    let asked = Asked {
        sum: true,
        squares: true,
        ends: true,
    };
    let mut fold = Fold::default();
    chunk.fold(asked, within, &mut fold, work);
    let valid = |row: &usize| within.contains(*row) && values.is_valid(*row);
    let rows = || (0..chunk.rows()).filter(valid);
    assert_eq!(fold.count, rows().count() as u64);
    match chunk.physical() {
        Physical::Integer { .. } => {
            assert_eq!(
                fold.sum,
                rows().map(|row| values.integer(row)).sum::<i128>()
            );
        }
        Physical::Float { .. } | Physical::Wide | Physical::Text => {}
    }
    if fold.count > 0 && chunk.physical() != Physical::Text {
        assert_eq!(Some(fold.min), rows().map(|row| values.ordered(row)).min());
        assert_eq!(Some(fold.max), rows().map(|row| values.ordered(row)).max());
    }
    for asked in [
        Asked::default(),
        Asked {
            sum: true,
            ..Asked::default()
        },
        Asked {
            ends: true,
            ..Asked::default()
        },
    ] {
        let mut part = Fold::default();
        chunk.fold(asked, within, &mut part, work);
        assert_eq!(part.count, fold.count);
    }
}
