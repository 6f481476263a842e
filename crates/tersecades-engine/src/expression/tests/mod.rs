//! Filters and computed columns against a row-by-row reading of the same expressions.

mod agreement;
mod call;
mod in_turn;
mod oracle;
mod random;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, TimestampSecondType,
};
use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMillisecondArray, TimestampSecondArray, UInt64Array,
};
use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{Codec, Work};
use tersecades_columnar::error::{Error, ErrorKind};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;

use super::{BoundExpression, BoundFilter, Expression, col, lit};
use crate::frame::{Frame, Scope};

fn encode(batch: &RecordBatch, codec: Option<&'static dyn Codec>) -> Frame {
    let mut encoder = BatchEncoder::new(&batch.schema()).unwrap();
    if let Some(codec) = codec {
        encoder
            .columns_mut()
            .iter_mut()
            .for_each(|column| column.pin(codec));
    }
    Frame::new(Arc::new(encoder.encode_new(batch).unwrap()))
}

fn batch_of(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
        .unwrap()
}

fn rows_of(selection: &Selection) -> Vec<usize> {
    let mut rows = Vec::new();
    selection.for_each(|row| rows.push(row));
    rows
}

fn rows_kept(batch: &RecordBatch, expression: &Expression) -> Vec<usize> {
    let mut frame = encode(batch, None);
    let scope = Scope::of_schema(frame.batch.schema());
    let mut filter = BoundFilter::bind(expression, &scope).unwrap();
    filter.apply(&mut frame, &mut Work::default()).unwrap();
    rows_of(&frame.selection)
}

fn computed(batch: &RecordBatch, expression: &Expression) -> Result<ArrayRef, Error> {
    let frame = encode(batch, None);
    let scope = Scope::of_schema(frame.batch.schema());
    let mut bound = BoundExpression::bind(expression, &scope)?;
    let (mut out, mut work) = (Chunk::default(), Work::default());
    bound.evaluate(&frame, &mut out, &mut work)?;
    out.to_arrow(&frame.selection, &mut work)
}

fn refusal(expression: &Expression, batch: &RecordBatch) -> Error {
    let scope = Scope::of_schema(&batch.schema());
    match BoundFilter::bind(expression, &scope) {
        Ok(filter) => panic!("bound as {}", filter.describe()),
        Err(error) => error,
    }
}

fn sample() -> RecordBatch {
    batch_of(vec![
        (
            "rtt_us",
            Arc::new(Int32Array::from(vec![Some(5), Some(100), None, Some(250)])),
        ),
        ("error_code", Arc::new(Int64Array::from(vec![0, 1, 2, 0]))),
        (
            "host",
            Arc::new(StringArray::from(vec!["a", "b", "it's", "d"])),
        ),
        (
            "ts",
            Arc::new(TimestampSecondArray::from(vec![0, 1, 86_400, -1])),
        ),
        (
            "ms",
            Arc::new(TimestampMillisecondArray::from(vec![
                0, 1_500, 86_400_000, -1,
            ])),
        ),
        ("day", Arc::new(Date32Array::from(vec![0, 1, 2, -1]))),
        ("big", Arc::new(UInt64Array::from(vec![0, 1, u64::MAX, 7]))),
        (
            "ratio",
            Arc::new(Float64Array::from(vec![0.5, f64::NAN, -0.0, f64::INFINITY])),
        ),
    ])
}

#[test]
fn sql_spelling_has_minimal_parentheses() {
    let (a, b) = (|| col("a"), || col("b"));
    for (expression, text) in [
        (a().not_eq(0).and(b().gt_eq(100)), "a <> 0 AND b >= 100"),
        (
            a().eq(1).or(b().eq(2)).and(a().lt(3)),
            "(a = 1 OR b = 2) AND a < 3",
        ),
        (
            a().eq(1).and(b().eq(2).and(a().lt(3))),
            "a = 1 AND b = 2 AND a < 3",
        ),
        (!(a().eq(1).or(b().eq(2))), "NOT (a = 1 OR b = 2)"),
        (!a().is_null(), "a IS NOT NULL"),
        (!a().one_of([1, 2]), "a NOT IN (1, 2)"),
        ((a() + 1) * (b() - (a() - 2)), "(a + 1) * (b - (a - 2))"),
        (a() * 2 + b() % 3, "a * 2 + b % 3"),
        (a() / (b() * 2), "a / (b * 2)"),
        (col("it's \"x\"").eq("it's"), "\"it's \"\"x\"\"\" = 'it''s'"),
        (col("select").eq(2.0), "\"select\" = 2.0"),
        (a().eq(1).eq(b().eq(2)), "(a = 1) = (b = 2)"),
        (a().cast(DataType::Float64) + 0.5, "CAST(a AS DOUBLE) + 0.5"),
        (
            Expression::MakeTimestamp(vec![a(), lit(2)]),
            "make_timestamp(a, 2)",
        ),
        (
            Expression::EpochTime(Box::new(a()), TimeUnit::Millisecond),
            "epoch_ms(a)",
        ),
        (
            lit(Value::Decimal(-5, 2)) + lit(Value::Null),
            "-0.05 + NULL",
        ),
    ] {
        assert_eq!(expression.to_string(), text);
    }
}

#[test]
fn time_constants_are_read_in_the_unit_of_the_column() {
    let batch = sample();
    let kept = |expression: Expression| rows_kept(&batch, &expression);
    assert_eq!(kept(col("ts").gt_eq("1970-01-02")), [2]);
    assert_eq!(kept(col("ts").gt("1969-12-31T23:59:59.5Z")), [0, 1, 2]);
    assert_eq!(kept(col("ts").eq("1969-12-31T23:59:59.5Z")), [0; 0]);
    assert_eq!(kept(col("ms").eq("1970-01-01 00:00:01.5")), [1]);
    assert_eq!(kept(col("ms").gt_eq(1_500)), [1, 2]);
    assert_eq!(kept(col("day").lt("1970-01-02")), [0, 3]);
    assert_eq!(kept(col("day").gt("1970-01-01 12:00:00")), [1, 2]);
    assert_eq!(kept(col("ts").one_of(["1970-01-01", "1970-01-02"])), [0, 2]);
    let cast = lit("1970-01-02").cast(DataType::Timestamp(TimeUnit::Nanosecond, None));
    assert_eq!(kept(col("ts").lt(cast.clone())), [0, 1, 3]);
    assert_eq!(kept(col("day").gt_eq(cast)), [1, 2]);
    assert_eq!(kept(col("ts").lt(col("ms"))), [1, 3]);
    assert_eq!(kept(col("day").gt(col("ms"))), [1, 2]);
}

#[test]
fn calendar_and_epoch_expressions_make_timestamps() {
    let batch = batch_of(vec![
        (
            "y",
            Arc::new(Int32Array::from(vec![Some(2013), None, Some(2013)])),
        ),
        ("d", Arc::new(Int32Array::from(vec![1, 1, 32]))),
        ("n", Arc::new(Float64Array::from(vec![1.9, f64::NAN, -1.9]))),
    ]);
    let parts = vec![col("y"), lit(1), col("d")];
    let array = computed(&batch, &Expression::MakeTimestamp(parts)).unwrap();
    let times = array.as_primitive::<TimestampSecondType>();
    assert_eq!(
        times.iter().collect::<Vec<_>>(),
        [Some(1_356_998_400), None, None]
    );
    let epoch = Expression::EpochTime(Box::new(col("n")), TimeUnit::Microsecond);
    let array = computed(&batch, &epoch).unwrap();
    let times = array.as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.iter().collect::<Vec<_>>(), [Some(1), None, Some(-2)]);
}

#[test]
fn times_of_one_type_subtract_to_ticks() {
    let array = computed(&sample(), &(col("ms") - col("ms"))).unwrap();
    assert_eq!(array.as_primitive::<Int64Type>().values(), &[0, 0, 0, 0]);
    let error = computed(&sample(), &(col("ms") - col("ts"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        computed(&sample(), &(col("ts") + 1))
            .unwrap_err()
            .hint_text()
            .is_some()
    );
}

#[test]
fn comparisons_of_one_column_become_one_pass() {
    let scope = Scope::of_schema(&sample().schema());
    let filter = |expression| BoundFilter::bind(&expression, &scope).unwrap().describe();
    let between = col("rtt_us")
        .between(10, 200)
        .and(col("error_code").not_eq(0));
    assert_eq!(
        filter(between),
        "rtt_us >= 10 AND rtt_us <= 200 [encoded] AND error_code <> 0 [encoded]"
    );
    let mixed = (col("rtt_us") + 1).gt(5).and(col("host").eq("a"));
    assert_eq!(
        filter(mixed),
        "host = 'a' [encoded] AND rtt_us + 1 > 5 [decoded]"
    );
}

#[test]
fn cheap_and_selective_terms_move_to_the_front() {
    let rows = 20_000i64;
    let wide: Vec<i64> = (0..rows)
        .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64))
        .collect();
    let rare: Vec<i64> = (0..rows).map(|i| i64::from(i % 500 == 0)).collect();
    let batch = batch_of(vec![
        ("wide", Arc::new(Int64Array::from(wide))),
        ("rare", Arc::new(Int64Array::from(rare))),
    ]);
    let expression = col("wide").lt(i64::MAX - 5).and(col("rare").not_eq(0));
    let mut frame = encode(&batch, None);
    let scope = Scope::of_schema(frame.batch.schema());
    let mut filter = BoundFilter::bind(&expression, &scope).unwrap();
    let mut work = Work::default();
    filter.apply(&mut frame, &mut work).unwrap();
    assert_eq!(
        filter.describe(),
        "rare <> 0 [encoded] AND wide < 9223372036854775802 [encoded]"
    );
    assert_eq!(frame.selection.count(), 40);
    // What is selective can change: both terms are learnt from what they keep.
    let expression = col("wide").lt(i64::MIN + (1 << 50)).and(col("rare").lt(1));
    let mut filter = BoundFilter::bind(&expression, &scope).unwrap();
    for _ in 0..20 {
        frame.selection.set_all(batch.num_rows());
        filter.apply(&mut frame, &mut work).unwrap();
    }
    assert!(
        filter.describe().starts_with("wide < "),
        "{}",
        filter.describe()
    );
}

#[test]
fn errors_name_the_part_and_say_what_to_do() {
    let batch = sample();
    let check = |expression: Expression, kind: ErrorKind, parts: &[&str]| {
        let error = refusal(&expression, &batch);
        assert_eq!(error.kind(), kind, "{error}");
        let text = error.to_string();
        parts
            .iter()
            .for_each(|part| assert!(text.contains(part), "{text} lacks {part}"));
    };
    let (schema, invalid) = (ErrorKind::SchemaMismatch, ErrorKind::InvalidArgument);
    check(
        col("rt_us").gt(1),
        invalid,
        &["`rt_us`", "did you mean `rtt_us`?"],
    );
    check(
        col("rtt_us").gt(0).and(col("host").eq(5)),
        schema,
        &[
            "text `host` (VARCHAR)",
            "number `5`",
            "in `host = 5`",
            "quote the constant: '5'",
        ],
    );
    check(
        col("rtt_us").eq("5"),
        schema,
        &["number `rtt_us`", "text `'5'`", "quotes"],
    );
    check(
        col("host").lt(col("rtt_us")),
        schema,
        &["in `host < rtt_us`", "CAST(rtt_us AS VARCHAR)"],
    );
    check(col("ts").lt(col("rtt_us")), schema, &["epoch_ms(rtt_us)"]);
    check(
        col("ts").lt("yesterday"),
        schema,
        &["time `ts`", "'2024-01-31'"],
    );
    check(
        col("rtt_us"),
        schema,
        &["`rtt_us` is a number", "expected a condition"],
    );
    check(
        (col("host") + 1).gt(2),
        schema,
        &["expected a number in `host + 1`"],
    );
    check(col("host").one_of([1, 2]), schema, &["number `1`", "quote"]);
    check(
        (col("ts") + 1).gt("2024-01-01"),
        ErrorKind::Unsupported,
        &["`ts + 1`", "ticks"],
    );
    let list = DataType::new_list(DataType::Int8, true);
    check(
        col("host").cast(list).is_null(),
        ErrorKind::Unsupported,
        &["CAST(host AS"],
    );
}

#[test]
fn overflow_is_an_error_and_only_on_rows_that_count() {
    let batch = sample();
    let error = computed(&batch, &(col("big") + 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.to_string().contains("`big + 1`") && error.to_string().contains("DOUBLE"));
    let small = col("big").lt(100).and((col("big") + 1).gt(1));
    assert_eq!(rows_kept(&batch, &small), [1, 3]);
    let error = computed(&batch, &col("big").cast(DataType::UInt8)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("CAST(big AS UTINYINT)"));
}

#[test]
fn decimals_of_more_digits_than_there_are_leave_the_range() {
    let most = 10i128.pow(38) - 1;
    let digits = |values: Vec<Option<i128>>| -> ArrayRef {
        let array = Decimal128Array::from(values);
        Arc::new(array.with_precision_and_scale(38, 0).unwrap())
    };
    let of = |a: i128, b: i128| {
        let columns = [("a", vec![Some(a), None]), ("b", vec![Some(b), Some(most)])];
        batch_of(
            columns
                .map(|(name, values)| (name, digits(values)))
                .to_vec(),
        )
    };
    let sum = computed(&of(most - 1, 1), &(col("a") + col("b"))).unwrap();
    let sum: Vec<_> = sum.as_primitive::<Decimal128Type>().iter().collect();
    assert_eq!(sum, [Some(most), None]);
    // 128 bits hold some numbers of 39 digits, but not all.
    let (some, more) = (6 * 10i128.pow(37), 9 * 10i128.pow(37));
    for (a, b, expression) in [
        (some, some, col("a") + col("b")),
        (more, more, col("a") + col("b")),
        (most, 1, col("a") + col("b")),
        (-some, some, col("a") - col("b")),
        (some, 2, col("a") * col("b")),
    ] {
        let error = computed(&of(a, b), &expression).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
        let message = format!("`{expression}` leaves the range of decimals of 38 digits");
        assert_eq!(error.message(), message);
    }
}

#[test]
fn nulls_in_lists_and_constants_are_unknown() {
    let batch = sample();
    let kept = |expression: Expression| rows_kept(&batch, &expression);
    let list = |column: Expression| column.one_of([Value::from(5), Value::Null]);
    assert_eq!(kept(list(col("rtt_us"))), [0]);
    assert_eq!(kept(!list(col("rtt_us"))), [0; 0]);
    assert_eq!(kept(!col("rtt_us").one_of([5])), [1, 3]);
    assert_eq!(kept(!col("host").one_of(["a", "it's"])), [1, 3]);
    assert_eq!(kept(col("rtt_us").eq(Value::Null)), [0; 0]);
    assert_eq!(kept(!col("rtt_us").eq(Value::Null)), [0; 0]);
    assert_eq!(kept(col("rtt_us").is_null()), [2]);
    assert_eq!(kept(lit(true)), [0, 1, 2, 3]);
    assert_eq!(kept(lit(1).gt(2)), [0; 0]);
    assert_eq!(kept(col("error_code").lt(lit(4) / 2)), [0, 1, 3]);
    assert_eq!(
        kept(col("host").gt(col("error_code").cast(DataType::Utf8))),
        [0, 1, 2, 3]
    );
    assert_eq!(kept(col("host").eq(col("host"))), [0, 1, 2, 3]);
    assert_eq!(kept(col("ratio").gt(1e300)), [1, 3]);
    assert_eq!(kept(col("ratio").eq(0)), [2]);
    assert_eq!(kept((col("ratio") * -1.0).eq(col("ratio"))), [1, 2]);
    assert_eq!(kept((col("ratio") * 1.0).eq(col("ratio"))), [0, 1, 2, 3]);
}

#[test]
fn text_can_be_computed_on_some_rows() {
    let frame = &mut encode(&sample(), None);
    let scope = Scope::of_schema(frame.batch.schema());
    frame.selection.set_rows(4).extend([1, 3]);
    for (expression, expected) in [
        (col("rtt_us").cast(DataType::Utf8), ["100", "250"]),
        (lit("x"), ["x", "x"]),
        (
            col("host").cast(DataType::Binary).cast(DataType::Utf8),
            ["b", "d"],
        ),
    ] {
        let mut bound = BoundExpression::bind(&expression, &scope).unwrap();
        assert_eq!(
            (bound.column_slot(), bound.data_type()),
            (None, &DataType::Utf8)
        );
        let (mut out, mut work) = (Chunk::default(), Work::default());
        for _ in 0..2 {
            bound.evaluate(frame, &mut out, &mut work).unwrap();
            let array = out.to_arrow(&frame.selection, &mut work).unwrap();
            let array = arrow_cast::cast(&array, &DataType::Utf8).unwrap();
            let texts: Vec<_> = array.as_string::<i32>().iter().flatten().collect();
            assert_eq!(texts, expected, "{expression}");
        }
    }
}

#[test]
fn decimals_keep_their_digits() {
    let decimals = |digits: Vec<Option<i128>>, scale| -> ArrayRef {
        let array = Decimal128Array::from(digits);
        Arc::new(array.with_precision_and_scale(12, scale).unwrap())
    };
    let batch = batch_of(vec![
        ("fare", decimals(vec![Some(1_250), Some(-5), None], 2)),
        ("rate", decimals(vec![Some(5), Some(0), Some(1)], 1)),
        ("riders", Arc::new(Int32Array::from(vec![2, 3, 4]))),
    ]);
    let digits = |expression: Expression| {
        let array = computed(&batch, &expression).unwrap();
        let DataType::Decimal128(_, scale) = array.data_type() else {
            panic!("{array:?}")
        };
        (
            array
                .as_primitive::<Decimal128Type>()
                .iter()
                .collect::<Vec<_>>(),
            *scale,
        )
    };
    assert_eq!(
        digits(col("fare") * col("rate")),
        (vec![Some(6_250), Some(0), None], 3)
    );
    assert_eq!(
        digits(col("fare") + col("riders")),
        (vec![Some(1_450), Some(295), None], 2)
    );
    assert_eq!(
        digits(col("fare") - lit(Value::Decimal(1, 3))).0[0],
        Some(12_499)
    );
    // A quotient has more digits than any scale.
    for (expression, expected) in [
        (col("fare") / col("rate"), [Some(25.0), None, None]),
        (col("riders") / col("fare"), [Some(0.16), Some(-60.0), None]),
    ] {
        let quotients = computed(&batch, &expression).unwrap();
        let quotients: Vec<_> = quotients.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(quotients, expected, "{expression}");
    }
    assert_eq!(rows_kept(&batch, &col("fare").gt(col("riders"))), [0]);
    assert_eq!(rows_kept(&batch, &(col("fare") * 2).eq(25)), [0]);
    assert_eq!(rows_kept(&batch, &(col("fare") * 0.5).lt(col("rate"))), [1]);
}

#[test]
fn long_chains_need_no_deep_stack_and_one_pass() {
    let batch = sample();
    let chain = (0..5_000).fold(col("rtt_us").eq(-1), |all, i| {
        all.or(col("rtt_us").eq(i * 5))
    });
    assert_eq!(rows_kept(&batch, &chain), [0, 1, 3]);
    assert_eq!(rows_kept(&batch, &!chain.clone()), [0; 0]);
    assert!(
        chain
            .to_string()
            .starts_with("rtt_us = -1 OR rtt_us = 0 OR rtt_us = 5 OR ")
    );
}

#[test]
fn filters_and_expressions_can_move_to_worker_threads() {
    fn is_send<T: Send>() {}
    is_send::<BoundFilter>();
    is_send::<BoundExpression>();
}
