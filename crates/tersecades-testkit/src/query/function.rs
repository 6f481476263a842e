//! Functions from outside for seeded expressions.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array};
use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::expression::{Expression, ScalarFunction, col};

/// The number of bytes of a text; -1 where it is null.
#[derive(Debug)]
struct TextBytes;

impl ScalarFunction for TextBytes {
    fn name(&self) -> &str {
        "text_bytes"
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Utf8] => Ok(DataType::Int64),
            _ => Err(Error::schema("text_bytes takes one text")),
        }
    }

    fn evaluate(&self, arguments: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
        let texts = arguments[0].as_string::<i32>().iter();
        let bytes = texts.map(|text| text.map_or(-1, |text| text.len() as i64));
        Ok(Arc::new(Int64Array::from_iter_values(bytes)))
    }
}

/// Whether two values are null, or not, together; unknown where both are.
#[derive(Debug)]
struct NullTogether {
    immutable: bool,
}

impl ScalarFunction for NullTogether {
    fn name(&self) -> &str {
        "null_together"
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let null = |index: usize, row: usize| arguments[index].is_null(row);
        let together = (0..rows).map(|row| match (null(0, row), null(1, row)) {
            (true, true) => None,
            (a, b) => Some(a == b),
        });
        Ok(Arc::new(together.collect::<BooleanArray>()))
    }

    fn is_immutable(&self) -> bool {
        self.immutable
    }
}

/// The length of the text in column `name`.
pub(super) fn text_bytes(name: &str) -> Expression {
    Expression::call(Arc::new(TextBytes), vec![col(name)])
}

/// Whether columns `a` and `b` are null together.
pub(super) fn null_together(a: &str, b: &str, immutable: bool) -> Expression {
    let function = Arc::new(NullTogether { immutable });
    Expression::call(function, vec![col(a), col(b)])
}
