//! Functions from outside: what they are given, how often they run, what is done with results.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, ListArray, StringArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use tersecades_columnar::error::{Error, ErrorKind};
use tersecades_columnar::selection::Selection;

use super::{batch_of, computed, encode, refusal, rows_kept, rows_of};
use crate::Result;
use crate::expression::{BoundFilter, Expression, ScalarFunction, col, lit};
use crate::frame::Scope;

/// Characters of a text; -1 where it is null.
#[derive(Debug, Default)]
struct Letters {
    rows: AtomicUsize,
    volatile: bool,
}

impl ScalarFunction for Letters {
    fn name(&self) -> &str {
        "letters"
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Utf8] => Ok(DataType::Int64),
            _ => Err(Error::schema("letters takes one text")),
        }
    }

    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        assert_eq!(arguments[0].len(), rows);
        let letters = arguments[0].as_string::<i32>().iter();
        let letters = letters.map(|text| text.map_or(-1, |text| text.chars().count() as i64));
        Ok(Arc::new(Int64Array::from_iter_values(letters)))
    }

    fn is_immutable(&self) -> bool {
        !self.volatile
    }
}

/// What the test says it gives, and what it gives.
#[derive(Debug)]
struct Odd(DataType, ArrayRef);

impl ScalarFunction for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.0.clone())
    }

    fn evaluate(&self, _arguments: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
        Ok(Arc::clone(&self.1))
    }
}

fn letters(function: &Arc<Letters>, of: Expression) -> Expression {
    let function: Arc<dyn ScalarFunction> = function.clone();
    Expression::call(function, vec![of])
}

/// Names that came as codes: 3,000 rows of four texts and nulls.
fn names() -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    for row in 0..3_000 {
        match row % 5 {
            4 => builder.append_null(),
            code => builder.append_value(["a", "bb", "ccc", "Ärger"][code]),
        }
    }
    Arc::new(builder.finish())
}

#[test]
fn a_function_of_coded_text_runs_once_for_each_text() {
    let batch = batch_of(vec![("name", names())]);
    let expected: Vec<i64> = (0..3_000).map(|row| [1, 2, 3, 5, -1][row % 5]).collect();
    for volatile in [false, true] {
        let function = Arc::new(Letters {
            volatile,
            ..Letters::default()
        });
        let array = computed(&batch, &letters(&function, col("name"))).unwrap();
        assert_eq!(array.as_primitive::<Int64Type>().values(), &expected[..]);
        let rows = if volatile { 3_000 } else { 5 };
        assert_eq!(function.rows.load(Ordering::Relaxed), rows);
    }
}

#[test]
fn conditions_run_on_survivors_and_null_passes_nothing() {
    let function = Arc::new(Letters {
        volatile: true,
        ..Letters::default()
    });
    let number: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3_000));
    let batch = batch_of(vec![("name", names()), ("number", number)]);
    let condition = letters(&function, col("name"))
        .lt(3)
        .and(col("number").lt(10));
    assert_eq!(rows_kept(&batch, &condition), [0, 1, 4, 5, 6, 9]);
    assert_eq!(function.rows.load(Ordering::Relaxed), 10);
    let truth: ArrayRef = Arc::new(arrow_array::BooleanArray::from(vec![
        Some(true),
        None,
        Some(false),
    ]));
    let truth: Arc<dyn ScalarFunction> = Arc::new(Odd(DataType::Boolean, truth));
    let three = batch_of(vec![("n", Arc::new(Int64Array::from(vec![1, 2, 3])))]);
    let condition = Expression::call(truth, vec![col("n")]);
    assert_eq!(rows_kept(&three, &condition), [0]);
    assert_eq!(rows_kept(&three, &!condition.clone()), [2]);
    assert_eq!(rows_kept(&three, &condition.is_null()), [1]);
}

#[test]
fn constants_are_computed_once_and_layouts_are_evened_out() {
    let function = Arc::new(Letters::default());
    let batch = batch_of(vec![("name", names())]);
    let constant = letters(&function, lit("four"));
    assert_eq!(rows_kept(&batch, &constant.eq(4)).len(), 3_000);
    let rows = function.rows.load(Ordering::Relaxed);
    assert!(rows <= 2, "computed for {rows} rows, not where it is bound");
    let coded: Arc<dyn ScalarFunction> = Arc::new(Odd(DataType::Utf8View, names()));
    let nested = letters(&function, Expression::call(coded, vec![]));
    let error = refusal(&nested.eq(5), &batch);
    assert!(error.message().contains("promised"), "{error}");
    let error = refusal(&letters(&function, lit(4)).gt(1), &batch);
    assert!(error.message().contains("in `letters(4)`"), "{error}");
}

#[test]
fn broken_promises_and_strange_types_are_errors() {
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    let values = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1i64)])]);
    let odd: Arc<dyn ScalarFunction> = Arc::new(Odd(list, Arc::new(values)));
    let batch = batch_of(vec![("name", names())]);
    let error = computed(&batch, &Expression::call(odd, vec![col("name")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let short: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    for promised in [DataType::Int64, DataType::Utf8] {
        let odd: Arc<dyn ScalarFunction> = Arc::new(Odd(promised, short.clone()));
        let error = computed(&batch, &Expression::call(odd, vec![col("name")])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        assert!(error.message().contains("for 5 rows"), "{error}");
    }
}

#[test]
fn a_dictionary_of_texts_that_no_row_has_is_not_searched() {
    let frame = encode(&batch_of(vec![("name", names())]), None);
    let function = Arc::new(Letters::default());
    let scope = Scope::of_schema(frame.batch.schema());
    let mut frame = frame;
    frame.selection = Selection::default();
    frame.selection.set_rows(3_000).extend([3, 8, 13]);
    let condition = letters(&function, col("name")).eq(5);
    let mut filter = BoundFilter::bind(&condition, &scope).unwrap();
    filter.apply(&mut frame, &mut Default::default()).unwrap();
    assert_eq!(rows_of(&frame.selection), [3, 8, 13]);
    assert_eq!(function.rows.load(Ordering::Relaxed), 1);
}

/// The first letter of a text, whether it has more than five, or how many it has: null where the
/// text ends with `0`, and something else where it is null.
#[derive(Debug)]
struct Shorter(DataType, bool);

impl ScalarFunction for Shorter {
    fn name(&self) -> &str {
        "shorter"
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.0.clone())
    }

    fn evaluate(&self, arguments: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
        let texts = arguments[0].as_string::<i32>().iter();
        let texts = texts.map(|text| match text {
            Some(text) if text.ends_with('0') => None,
            Some(text) => Some(text),
            None => Some("none"),
        });
        Ok(match self.0 {
            DataType::Boolean => {
                let long = texts.map(|text| text.map(|text| text.len() > 5));
                Arc::new(long.collect::<BooleanArray>())
            }
            DataType::Int64 => {
                let letters = texts.map(|text| text.map(|text| text.len() as i64));
                Arc::new(letters.collect::<Int64Array>())
            }
            _ => {
                let first = texts.map(|text| text.map(|text| &text[..1]));
                Arc::new(first.collect::<StringArray>())
            }
        })
    }

    fn is_immutable(&self) -> bool {
        self.1
    }
}

/// Rows whose texts are doubled, null, absent or in no row at all.
fn random_names(seed: &mut u64, texts: usize, rows: usize, nulls: bool) -> ArrayRef {
    let mut below = |bound: usize| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*seed >> 33) as usize % bound
    };
    let values = (0..texts).map(|_| match below(8) {
        0 if nulls => None,
        _ => Some(format!(
            "{}{}",
            ["a", "b", "cc", "dddd"][below(4)],
            below(40)
        )),
    });
    let values: StringArray = values.collect();
    let keys = (0..rows).map(|_| {
        let key = below(texts) as i32;
        (!nulls || below(8) > 0).then_some(key)
    });
    let keys: Int32Array = keys.collect();
    Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(values)))
}

#[test]
fn results_of_each_text_are_those_of_each_row() {
    let mut seed = 3;
    for data_type in [DataType::Utf8, DataType::Boolean, DataType::Int64] {
        for (texts, rows) in [(1, 1), (5, 0), (3, 400), (60, 400), (900, 400), (9_000, 40)] {
            for nulls in [false, true] {
                let names = random_names(&mut seed, texts, rows, nulls);
                let batch = batch_of(vec![("name", names)]);
                let call = |immutable| {
                    let function = Arc::new(Shorter(data_type.clone(), immutable));
                    Expression::call(function, vec![col("name")])
                };
                let of_each = |expression| computed(&batch, &expression).unwrap();
                let plain = |array: ArrayRef| cast(&array, &data_type).unwrap();
                let (found, expected) = (of_each(call(true)), of_each(call(false)));
                let about = format!("{data_type}: {texts} texts, {rows} rows, nulls: {nulls}");
                assert_eq!(&plain(found), &plain(expected), "{about}");
                let is_null = |immutable| rows_kept(&batch, &call(immutable).is_null());
                assert_eq!(is_null(true), is_null(false), "{about}");
                let chosen = |immutable| match data_type {
                    DataType::Utf8 => {
                        let condition = call(immutable).lt("c").or(call(immutable).eq(col("name")));
                        rows_kept(&batch, &condition)
                    }
                    DataType::Int64 => rows_kept(&batch, &call(immutable).gt(2)),
                    _ => rows_kept(&batch, &call(immutable)),
                };
                assert_eq!(chosen(true), chosen(false), "{about}");
                let nested = |immutable| {
                    let function = Arc::new(Shorter(DataType::Int64, immutable));
                    of_each(Expression::call(function, vec![call(immutable)]))
                };
                if data_type == DataType::Utf8 {
                    assert_eq!(&nested(true), &nested(false), "{about}");
                }
            }
        }
    }
}
