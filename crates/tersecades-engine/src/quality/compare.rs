//! Two results of one query, on exact and on lossy data.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::logical_type;

use super::pairing::{Pairing, pair};

/// How far the values of a result column are off in rows that both results have.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueError {
    /// The column.
    pub column: String,
    /// Mean of the relative errors.
    pub mean: f64,
    /// The largest of them.
    pub most: f64,
}

/// What differs between two results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difference {
    /// Rows of the exact result.
    pub rows: usize,
    /// Exact rows that the other lacks.
    pub missing: usize,
    /// Rows of the other that the exact result lacks.
    pub extra: usize,
    /// Numeric columns that are no keys.
    pub values: Vec<ValueError>,
}

impl Difference {
    /// Missing and extra rows for each exact one.
    pub fn loss(&self) -> f64 {
        (self.missing + self.extra) as f64 / self.rows.max(1) as f64
    }

    /// The largest relative error of a value.
    pub fn most_error(&self) -> f64 {
        self.values
            .iter()
            .map(|error| error.most)
            .fold(0.0, f64::max)
    }

    /// The mean relative error of the worst column.
    pub fn mean_error(&self) -> f64 {
        self.values
            .iter()
            .map(|error| error.mean)
            .fold(0.0, f64::max)
    }
}

/// The columns of a result that identify a row: what is no number, and integers that `source` has
/// under the same name; windows stand aside.
pub fn key_columns(result: &Schema, source: &Schema) -> Vec<String> {
    let is_key = |field: &&Arc<Field>| match logical_type(field.data_type()) {
        _ if is_window(field.name()) => false,
        data_type if data_type.is_integer() => source.field_with_name(field.name()).is_ok(),
        data_type => !data_type.is_numeric(),
    };
    let keys = result.fields().iter().filter(is_key);
    keys.map(|field| field.name().clone()).collect()
}

fn is_window(name: &str) -> bool {
    name == "window_start" || name == "window_end"
}

/// What differs between the results `exact` and `other` of one query, whose rows `keys` and
/// windows identify.
///
/// # Errors
/// `SchemaMismatch` when a key is no column.
pub fn compare(
    exact: &[RecordBatch],
    other: &[RecordBatch],
    keys: &[String],
) -> Result<Difference> {
    let Some(schema) = exact.iter().chain(other).map(RecordBatch::schema).next() else {
        return Ok(Difference::default());
    };
    let (exact, other) = (whole(&schema, exact)?, whole(&schema, other)?);
    let pairing = pair(&exact, &other, keys)?;
    let mut values = Vec::new();
    for (index, field) in exact.schema().fields().iter().enumerate() {
        if field.data_type().is_numeric() && !keys.contains(field.name()) {
            let sides = (exact.column(index), other.column(index));
            values.push(value_error(field.name(), sides, &pairing)?);
        }
    }
    Ok(Difference {
        rows: exact.num_rows(),
        missing: pairing.missing,
        extra: pairing.extra,
        values,
    })
}

/// All rows of `batches` in one, in the types the engine computes with.
fn whole(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    let fields = schema.fields().iter().map(|field| {
        let data_type = logical_type(field.data_type());
        Field::new(field.name(), data_type, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut plain = Vec::with_capacity(batches.len());
    for batch in batches {
        let columns = batch.columns().iter().zip(schema.fields());
        let columns: std::result::Result<Vec<ArrayRef>, _> = columns
            .map(|(column, field)| arrow_cast::cast(column, field.data_type()))
            .collect();
        plain.push(RecordBatch::try_new(Arc::clone(&schema), columns?)?);
    }
    Ok(concat_batches(&schema, &plain)?)
}

fn value_error(
    name: &str,
    (exact, other): (&ArrayRef, &ArrayRef),
    pairing: &Pairing,
) -> Result<ValueError> {
    let exact = arrow_cast::cast(exact, &DataType::Float64)?;
    let other = arrow_cast::cast(other, &DataType::Float64)?;
    let value = |array: &ArrayRef, row: u32| {
        let array = array.as_primitive::<Float64Type>();
        let row = row as usize;
        array.is_valid(row).then(|| array.value(row))
    };
    let (mut sum, mut most) = (0.0, 0f64);
    for (row, paired) in &pairing.pairs {
        let error = relative(value(&exact, *row), value(&other, *paired));
        sum += error;
        most = most.max(error);
    }
    Ok(ValueError {
        column: name.to_owned(),
        mean: sum / pairing.pairs.len().max(1) as f64,
        most,
    })
}

/// The relative error of `other`; 1 where there is no exact value to relate it to.
fn relative(exact: Option<f64>, other: Option<f64>) -> f64 {
    match (exact, other) {
        (Some(exact), Some(other)) if exact == other || exact.is_nan() && other.is_nan() => 0.0,
        (Some(exact), Some(other)) if exact != 0.0 && exact.is_finite() && other.is_finite() => {
            ((exact - other) / exact).abs()
        }
        (None, None) => 0.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, StringArray, TimestampMillisecondArray};

    use super::*;

    fn sessions(rows: &[(&str, i64, i64, f64)]) -> RecordBatch {
        let times = |pick: fn(&(&str, i64, i64, f64)) -> i64| -> ArrayRef {
            Arc::new(TimestampMillisecondArray::from_iter_values(
                rows.iter().map(pick),
            ))
        };
        let name: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.0)));
        let value: ArrayRef = Arc::new(Float64Array::from_iter_values(rows.iter().map(|r| r.3)));
        RecordBatch::try_from_iter([
            ("window_start", times(|row| row.1)),
            ("window_end", times(|row| row.2)),
            ("vm", name),
            ("load", value),
        ])
        .unwrap()
    }

    #[test]
    fn sessions_are_matched_by_key_and_overlap() {
        let exact = sessions(&[("a", 0, 10, 4.0), ("a", 20, 30, 2.0), ("b", 0, 10, 1.0)]);
        let other = sessions(&[
            ("a", 1, 12, 5.0),
            ("a", 40, 50, 2.0),
            ("b", 0, 10, 1.0),
            ("c", 0, 10, 1.0),
        ]);
        let keys = key_columns(exact.schema_ref(), exact.schema_ref());
        assert_eq!(keys, ["vm"]);
        let difference = compare(&[exact], &[other], &keys).unwrap();
        // The second session of `a` moved away, `c` is new.
        assert_eq!((difference.missing, difference.extra), (1, 2));
        assert_eq!(difference.loss(), 1.0);
        let errors = &difference.values;
        assert_eq!(
            (errors.len(), errors[0].most, errors[0].mean),
            (1, 0.25, 0.125)
        );
    }

    #[test]
    fn equal_windows_pair_before_overlapping_ones() {
        let hops = sessions(&[("a", 0, 60, 1.0), ("a", 10, 70, 2.0), ("a", 20, 80, 3.0)]);
        let later = hops.slice(1, 2);
        let keys = ["vm".to_owned()];
        let difference = compare(&[hops], &[later], &keys).unwrap();
        assert_eq!((difference.missing, difference.extra), (1, 0));
        assert_eq!(difference.most_error(), 0.0);
    }

    #[test]
    fn results_without_keys_pair_in_order() {
        let one = sessions(&[("a", 0, 10, 4.0)]).project(&[3]).unwrap();
        let other = sessions(&[("a", 0, 10, 3.0)]).project(&[3]).unwrap();
        let difference = compare(std::slice::from_ref(&one), &[other], &[]).unwrap();
        assert_eq!((difference.loss(), difference.most_error()), (0.0, 0.25));
        let gone = compare(&[one], &[], &[]).unwrap();
        assert_eq!((gone.missing, gone.loss()), (1, 1.0));
        assert_eq!(compare(&[], &[], &[]).unwrap(), Difference::default());
    }
}
