//! One column of a batch while its rows arrive.
//!
//! Whole numbers, dates and times are gathered as 64-bit integers and reinterpreted or narrowed
//! when the batch is full; [`super::field::FieldKind`] has checked every bound before.
//! Texts of a batch are listed once each, unless those of the batch before were mostly different.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Decimal128Builder, Float64Builder, Int64Builder, StringBuilder,
    StringDictionaryBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use tersecades_columnar::arrow::row_by_row;
use tersecades_columnar::error::{Error, Result};

use super::exact::hexadecimal;
use super::field::Cell;

/// Rows of a batch that tell whether texts repeat.
const TELLING_ROWS: usize = 1024;

/// Batches whose texts are listed row by row before their repetitions are looked for again.
const BATCHES_UNSEEN: u32 = 15;

enum Values {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Dictionary(StringDictionaryBuilder<Int32Type>),
    /// Texts of a dictionary column row by row, in so many more batches.
    Distinct(StringBuilder, u32),
    Text(StringBuilder),
    Decimal(Decimal128Builder),
    Bytes(BinaryBuilder),
}

/// Gathers the cells of one column.
pub struct ColumnBuilder {
    values: Values,
    data_type: DataType,
}

impl ColumnBuilder {
    /// An empty column of type `data_type`.
    pub fn new(data_type: DataType) -> Self {
        let values = match &data_type {
            DataType::Boolean => Values::Bool(BooleanBuilder::new()),
            DataType::Float32 | DataType::Float64 => Values::Float(Float64Builder::new()),
            DataType::Dictionary(_, _) => Values::Dictionary(StringDictionaryBuilder::new()),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Values::Text(StringBuilder::new())
            }
            DataType::Decimal128(..) => {
                let digits = Decimal128Builder::new();
                Values::Decimal(digits.with_data_type(data_type.clone()))
            }
            DataType::Binary => Values::Bytes(BinaryBuilder::new()),
            _ => Values::Int(Int64Builder::new()),
        };
        ColumnBuilder { values, data_type }
    }

    /// Appends `cell`, which was parsed from `text`.
    ///
    /// # Errors
    /// `LimitExceeded` when the dictionary of the batch is full; `Internal` for a cell that was
    /// parsed for another type.
    pub fn push(&mut self, cell: Cell, text: &str) -> Result<()> {
        match (&mut self.values, cell) {
            (Values::Bool(values), Cell::Bool(value)) => values.append_value(value),
            (Values::Bool(values), Cell::Null) => values.append_null(),
            (Values::Int(values), Cell::Int(value)) => values.append_value(value),
            (Values::Int(values), Cell::Null) => values.append_null(),
            (Values::Float(values), Cell::Float(value)) => values.append_value(value),
            (Values::Float(values), Cell::Null) => values.append_null(),
            (Values::Dictionary(values), Cell::Null) => values.append_null(),
            (Values::Dictionary(values), Cell::Text) => {
                values
                    .append(text)
                    .map_err(|error| Error::limit(error.to_string()))?;
            }
            (Values::Text(values) | Values::Distinct(values, _), Cell::Null) => {
                values.append_null();
            }
            (Values::Text(values) | Values::Distinct(values, _), Cell::Text) => {
                values.append_value(text);
            }
            (Values::Decimal(values), Cell::Null) => values.append_null(),
            (Values::Decimal(values), Cell::Decimal(digits)) => values.append_value(digits),
            (Values::Bytes(values), Cell::Null) => values.append_null(),
            (Values::Bytes(values), Cell::Text) => {
                values.append_option(hexadecimal(text));
            }
            _ => {
                return Err(Error::internal(
                    "a cell does not fit the column it was parsed for",
                ));
            }
        }
        Ok(())
    }

    /// The column so far as an array; the builder is empty afterwards.
    ///
    /// # Errors
    /// `Corrupt` if the values do not fit the type, which parsing excludes.
    pub fn finish(&mut self) -> Result<ArrayRef> {
        let array: ArrayRef = match &mut self.values {
            Values::Bool(values) => Arc::new(values.finish()),
            Values::Int(values) => Arc::new(values.finish()),
            Values::Float(values) => Arc::new(values.finish()),
            Values::Dictionary(values) => {
                let array = values.finish();
                if array.len() >= TELLING_ROWS && array.values().len() > array.len() / 4 * 3 {
                    self.values = Values::Distinct(StringBuilder::new(), BATCHES_UNSEEN);
                }
                Arc::new(array)
            }
            Values::Distinct(values, left) => {
                let texts = row_by_row(values.finish())?;
                *left -= 1;
                if *left == 0 {
                    self.values = Values::Dictionary(StringDictionaryBuilder::new());
                }
                Arc::new(texts)
            }
            Values::Text(values) => Arc::new(values.finish()),
            Values::Decimal(values) => Arc::new(values.finish()),
            Values::Bytes(values) => Arc::new(values.finish()),
        };
        match &self.data_type {
            DataType::UInt64 | DataType::Timestamp(_, _) => reinterpret(&array, &self.data_type),
            DataType::Date32 => reinterpret(&narrow(&array, &DataType::Int32)?, &self.data_type),
            _ => narrow(&array, &self.data_type),
        }
    }
}

/// The same bits under another type of the same width.
fn reinterpret(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let data = array
        .to_data()
        .into_builder()
        .data_type(data_type.clone())
        .build()?;
    Ok(make_array(data))
}

/// The same values in a type that holds them all.
fn narrow(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array.clone());
    }
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    Ok(cast_with_options(array, data_type, &options)?)
}
