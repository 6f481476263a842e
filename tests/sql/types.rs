//! Types of results of functions that DuckDB has too.

use arrow_schema::DataType;
use tersecades_sql::{Answer, Session};

/// The types of the columns of a query.
fn types(query: &str) -> Vec<DataType> {
    let answers = Session::default().sql(query).unwrap();
    let Some(Answer::Rows(rows)) = answers.into_iter().next_back() else {
        panic!("{query} gives no rows");
    };
    let fields = rows.schema().fields().clone();
    fields
        .iter()
        .map(|field| field.data_type().clone())
        .collect()
}

#[test]
fn parts_and_differences_are_long_numbers() {
    let calls = "year(t), week(t), isodow(t), microsecond(t), epoch_ms(t), epoch_ns(t), \
                 date_diff('day', t, t), date_sub('month', t, t)";
    let query = format!("SELECT {calls} FROM (SELECT TIMESTAMP '2024-01-01' AS t) AS v");
    assert_eq!(types(&query), vec![DataType::Int64; 8]);
    let query = query.replace(
        calls,
        "epoch(t), last_day(t), dayname(t), strftime(t, '%Y')",
    );
    assert_eq!(
        types(&query),
        [
            DataType::Float64,
            DataType::Date32,
            DataType::Utf8,
            DataType::Utf8
        ]
    );
}
