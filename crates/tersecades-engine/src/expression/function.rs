//! Functions that come from outside: of SQL, of Python, of whoever embeds the engine.

use std::any::Any;
use std::fmt::Debug;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;

/// A function of rows that the engine has no encoded form of.
///
/// Two calls are one computation when they call the same object, or objects that say that they are
/// the same, with the same arguments: it is then evaluated once.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{Array, ArrayRef, Int64Array, cast::AsArray};
/// use arrow_schema::DataType;
/// use tersecades_engine::Result;
/// use tersecades_engine::expression::{Expression, ScalarFunction, col};
///
/// #[derive(Debug)]
/// struct Letters;
///
/// impl ScalarFunction for Letters {
///     fn name(&self) -> &str {
///         "letters"
///     }
///     fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
///         Ok(DataType::Int64)
///     }
///     fn evaluate(&self, arguments: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
///         let texts = arguments[0].as_string::<i32>().iter();
///         let letters = texts.map(|text| text.map(|text| text.chars().count() as i64));
///         Ok(Arc::new(letters.collect::<Int64Array>()))
///     }
/// }
/// let long = Expression::call(Arc::new(Letters), vec![col("name")]).gt(20);
/// assert_eq!(long.to_string(), "letters(name) > 20");
/// ```
pub trait ScalarFunction: Any + Debug + Send + Sync {
    /// The name that plans and errors show.
    fn name(&self) -> &str;

    /// The type of the result for arguments of these types.
    ///
    /// # Errors
    /// `SchemaMismatch` when the function does not take them.
    fn return_type(&self, arguments: &[DataType]) -> Result<DataType>;

    /// The result for each row.
    ///
    /// `arguments` have the types that [`ScalarFunction::return_type`] was asked about and `rows`
    /// rows each; so has the result, whose type is the one it answered, or a dictionary of it.
    ///
    /// # Errors
    /// Whatever is wrong with a value.
    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef>;

    /// Whether the result depends on the arguments alone; such a function of one text column runs
    /// once for each different text, and one of constants runs once.
    fn is_immutable(&self) -> bool {
        true
    }

    /// Whether `other`, another object, computes the same of the same arguments.
    fn is_same(&self, _other: &dyn ScalarFunction) -> bool {
        false
    }
}

impl PartialEq for dyn ScalarFunction {
    fn eq(&self, other: &Self) -> bool {
        (std::ptr::addr_eq(self, other) && self.name() == other.name()) || self.is_same(other)
    }
}
