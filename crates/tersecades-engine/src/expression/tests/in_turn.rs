//! Parts of AND and OR that may fail: asked of no row that another part settles.

use arrow_array::{Array, UInt64Array};

use super::*;

fn texts() -> RecordBatch {
    let texts = [Some(""), Some("7"), None, Some("3"), Some("")];
    let limits = UInt64Array::from(vec![1, 2, 3, u64::MAX, 1]);
    batch_of(vec![
        ("s", Arc::new(StringArray::from(texts.to_vec()))),
        ("limit", Arc::new(limits)),
    ])
}

fn number() -> Expression {
    col("s").cast(DataType::Int32)
}

fn truths(expression: &Expression) -> Vec<Option<bool>> {
    let array = computed(&texts(), expression).unwrap();
    array.as_boolean().iter().collect()
}

#[test]
fn a_part_that_may_fail_is_asked_of_rows_that_no_other_settles() {
    let (no, yes) = (Some(false), Some(true));
    let (empty, large) = (|| col("s").eq(""), || number().gt(5));
    let either = [yes, yes, None, no, yes];
    assert_eq!(truths(&empty().or(large())), either);
    assert_eq!(truths(&large().or(empty())), either);
    let both = [no, yes, None, no, no];
    assert_eq!(truths(&(!empty()).and(large())), both);
    assert_eq!(truths(&large().and(!empty())), both);
    assert_eq!(truths(&!empty().or(large())), [no, no, None, yes, no]);
    // Parts of parts, and several that may fail, each of which leaves fewer rows to the next.
    let fits = (col("limit") + 1).gt(2);
    let nested = (!empty()).and(number().lt(5).or(fits.clone()));
    assert_eq!(truths(&nested), [no, yes, None, yes, no]);
    let chain = empty().or(number().lt(5)).or(fits);
    assert_eq!(truths(&chain), [yes, yes, yes, yes, yes]);
    assert_eq!(rows_kept(&texts(), &empty().or(large())), [0, 1, 4]);
    let kept = rows_kept(&texts(), &col("limit").gt(0).and(empty().or(large())));
    assert_eq!(kept, [0, 1, 4]);
    // Of the terms of a filter as well what cannot fail comes first, be it computed.
    let filled = (col("limit").cast(DataType::Float64) * 2.0).gt(2.5);
    assert_eq!(rows_kept(&texts(), &number().lt(5).and(filled)), [3]);
}

#[test]
fn what_fails_in_a_row_that_is_not_settled_is_an_error() {
    let bad = col("limit").gt(1).or(number().gt(5));
    let error = computed(&texts(), &bad).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("CAST(s AS INTEGER)"), "{error}");
    let unknown = (!col("s").is_null()).and((col("limit") + 1).gt(2));
    assert!(computed(&texts(), &unknown).is_err());
}

#[test]
fn rows_that_are_not_selected_are_asked_nothing() {
    let frame = &mut encode(&texts(), None);
    let scope = Scope::of_schema(frame.batch.schema());
    frame.selection.set_rows(5).extend([1, 2, 3]);
    let condition = number().gt(5).or(number().lt(4));
    let mut bound = BoundExpression::bind(&condition, &scope).unwrap();
    let (mut out, mut work) = (Chunk::default(), Work::default());
    bound.evaluate(frame, &mut out, &mut work).unwrap();
    let array = out.to_arrow(&frame.selection, &mut work).unwrap();
    let found: Vec<_> = array.as_boolean().iter().collect();
    assert_eq!(found, [Some(true), None, Some(true)]);
    // Of no row at all, too.
    let nothing = texts().slice(0, 0);
    assert_eq!(computed(&nothing, &condition).unwrap().len(), 0);
}
