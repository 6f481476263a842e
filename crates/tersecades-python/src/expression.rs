//! Expressions of Python: operators build what the engine's own builder builds.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use tersecades::engine::expression::{Expression, col, lit};
use tersecades::prelude::DataType;

use crate::aggregate::Aggregate;
use crate::data_type::{NamedType, NamedUnit};
use crate::error::invalid;
use crate::literal::{literal, typed_literal, value};
use crate::order::SortKey;

/// An expression over the columns of a stream.
///
/// Comparisons, arithmetic, `&`, `|` and `~` build larger expressions. Logic is three-valued: a
/// comparison with null is unknown, and a filter keeps the rows that are true.
///
/// >>> import tersecades as tc
/// >>> (tc.col("error_code") != 0) & (tc.col("rtt_us") >= 100)
/// error_code <> 0 AND rtt_us >= 100
#[pyclass(name = "Expr", module = "tersecades", frozen)]
pub(crate) struct Expr {
    pub(crate) expression: Expression,
    pub(crate) alias: Option<String>,
}

/// An expression, or a constant that stands for one.
pub(crate) struct Operand(pub(crate) Expression);

impl<'py> FromPyObject<'_, 'py> for Operand {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Operand(match object.cast::<Expr>() {
            Ok(expr) => expr.get().expression.clone(),
            Err(_) => literal(&object)?,
        }))
    }
}

/// The other side of an operator. What is no operand is an error, since Python answers `==` by
/// itself where an operator does not take its argument, and NumPy makes numbers of times.
struct Other(PyResult<Expression>);

impl<'py> FromPyObject<'_, 'py> for Other {
    type Error = std::convert::Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Self::Error> {
        Ok(Other(Operand::extract(object).map(|operand| operand.0)))
    }
}

/// An expression, the name of a column, or another constant, and the name it gets.
pub(crate) struct Column {
    pub(crate) expression: Expression,
    pub(crate) alias: Option<String>,
}

impl Column {
    /// The name of the column that comes out.
    pub(crate) fn name(&self) -> String {
        match (&self.alias, &self.expression) {
            (Some(alias), _) => alias.clone(),
            (None, Expression::Column(name)) => name.clone(),
            (None, other) => other.to_string(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Column {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(expr) = object.cast::<Expr>() {
            let expr = expr.get();
            return Ok(Column {
                expression: expr.expression.clone(),
                alias: expr.alias.clone(),
            });
        }
        let expression = match object.cast::<PyString>() {
            Ok(name) => col(name.to_cow()?),
            Err(_) => typed_literal(&object)?,
        };
        Ok(Column {
            expression,
            alias: None,
        })
    }
}

/// Columns given one by one, in lists, or both.
pub(crate) fn columns(given: &Bound<'_, PyTuple>) -> PyResult<Vec<Column>> {
    let mut columns = Vec::new();
    for object in given {
        let listed = object.cast::<PyString>().is_err() && object.try_iter().is_ok();
        match listed && object.cast::<Expr>().is_err() {
            true => {
                for inner in object.try_iter()? {
                    columns.push(inner?.extract()?);
                }
            }
            false => columns.push(object.extract()?),
        }
    }
    Ok(columns)
}

impl From<Expression> for Expr {
    fn from(expression: Expression) -> Self {
        Expr {
            expression,
            alias: None,
        }
    }
}

#[pymethods]
impl Expr {
    /// NumPy leaves operators with expressions to them.
    #[classattr]
    fn __array_ufunc__() -> Option<()> {
        None
    }

    fn __add__(&self, other: Other) -> PyResult<Expr> {
        Ok((self.expression.clone() + other.0?).into())
    }

    fn __radd__(&self, other: Other) -> PyResult<Expr> {
        Ok((other.0? + self.expression.clone()).into())
    }

    fn __sub__(&self, other: Other) -> PyResult<Expr> {
        Ok((self.expression.clone() - other.0?).into())
    }

    fn __rsub__(&self, other: Other) -> PyResult<Expr> {
        Ok((other.0? - self.expression.clone()).into())
    }

    fn __mul__(&self, other: Other) -> PyResult<Expr> {
        Ok((self.expression.clone() * other.0?).into())
    }

    fn __rmul__(&self, other: Other) -> PyResult<Expr> {
        Ok((other.0? * self.expression.clone()).into())
    }

    fn __mod__(&self, other: Other) -> PyResult<Expr> {
        Ok((self.expression.clone() % other.0?).into())
    }

    fn __rmod__(&self, other: Other) -> PyResult<Expr> {
        Ok((other.0? % self.expression.clone()).into())
    }

    fn __truediv__(&self, other: Other) -> PyResult<Expr> {
        Ok((self.expression.clone().cast(DataType::Float64) / other.0?).into())
    }

    fn __rtruediv__(&self, other: Other) -> PyResult<Expr> {
        Ok((other.0?.cast(DataType::Float64) / self.expression.clone()).into())
    }

    fn __neg__(&self) -> Expr {
        (lit(0) - self.expression.clone()).into()
    }

    fn __and__(&self, other: Other) -> PyResult<Expr> {
        Ok(self.expression.clone().and(other.0?).into())
    }

    fn __rand__(&self, other: Other) -> PyResult<Expr> {
        Ok(other.0?.and(self.expression.clone()).into())
    }

    fn __or__(&self, other: Other) -> PyResult<Expr> {
        Ok(self.expression.clone().or(other.0?).into())
    }

    fn __ror__(&self, other: Other) -> PyResult<Expr> {
        Ok(other.0?.or(self.expression.clone()).into())
    }

    fn __invert__(&self) -> Expr {
        (!self.expression.clone()).into()
    }

    fn __richcmp__(&self, other: Other, how: CompareOp) -> PyResult<Expr> {
        let (a, b) = (self.expression.clone(), other.0?);
        let compared = match how {
            CompareOp::Eq => a.eq(b),
            CompareOp::Ne => a.not_eq(b),
            CompareOp::Lt => a.lt(b),
            CompareOp::Le => a.lt_eq(b),
            CompareOp::Gt => a.gt(b),
            CompareOp::Ge => a.gt_eq(b),
        };
        Ok(compared.into())
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "an expression is neither true nor false before a stream runs; combine \
             conditions with & | ~ and put each in parentheses, and use .between and \
             .is_in instead of chains and `in`",
        ))
    }

    fn __repr__(&self) -> String {
        match &self.alias {
            Some(alias) => format!("{} AS {alias}", self.expression),
            None => self.expression.to_string(),
        }
    }

    /// The same expression, whose result is a column called `name`.
    ///
    /// >>> import tersecades as tc
    /// >>> (tc.col("bytes") * 8).alias("bits")
    /// bytes * 8 AS bits
    fn alias(&self, name: String) -> Expr {
        Expr {
            expression: self.expression.clone(),
            alias: Some(name),
        }
    }

    /// Whether the value is null; never unknown.
    fn is_null(&self) -> Expr {
        self.expression.clone().is_null().into()
    }

    /// Whether the value is there; never unknown.
    fn is_not_null(&self) -> Expr {
        (!self.expression.clone().is_null()).into()
    }

    /// Whether the value equals one of the constants.
    ///
    /// >>> import tersecades as tc
    /// >>> tc.col("code").is_in([1, 2, 3])
    /// code IN (1, 2, 3)
    fn is_in(&self, constants: &Bound<'_, PyAny>) -> PyResult<Expr> {
        if constants.cast::<PyString>().is_ok() {
            let hint = "put it in a list: .is_in([\"text\"])";
            return Err(invalid("is_in got one text instead of several", hint));
        }
        let values: PyResult<Vec<_>> = constants.try_iter()?.map(|item| value(&item?)).collect();
        Ok(Expression::OneOf(Box::new(self.expression.clone()), values?).into())
    }

    /// Whether the value is at least `low` and at most `high`.
    fn between(&self, low: Operand, high: Operand) -> Expr {
        self.expression.clone().between(low.0, high.0).into()
    }

    /// The value as another type; a value that does not fit is an error.
    ///
    /// >>> import tersecades as tc
    /// >>> tc.col("rtt_us").cast("float64")
    /// CAST(rtt_us AS DOUBLE)
    fn cast(&self, data_type: NamedType) -> Expr {
        self.expression.clone().cast(data_type.0).into()
    }

    /// Quotient whose integers are cut towards zero, as SQL divides, and a float of decimals; by
    /// zero it is null.
    fn div(&self, other: Operand) -> Expr {
        (self.expression.clone() / other.0).into()
    }

    /// Sorts ascending by the value, in `Stream.sort`.
    #[pyo3(signature = (*, nulls_first=false))]
    fn asc(&self, nulls_first: bool) -> SortKey {
        SortKey::new(self.expression.clone(), false, nulls_first)
    }

    /// Sorts descending by the value, in `Stream.sort`.
    #[pyo3(signature = (*, nulls_first=false))]
    fn desc(&self, nulls_first: bool) -> SortKey {
        SortKey::new(self.expression.clone(), true, nulls_first)
    }

    /// Sum of the values of a group.
    fn sum(&self) -> Aggregate {
        Aggregate::of("sum", self.expression.clone())
    }

    /// Mean of the values of a group.
    fn mean(&self) -> Aggregate {
        Aggregate::of("mean", self.expression.clone())
    }

    /// Least value of a group.
    fn min(&self) -> Aggregate {
        Aggregate::of("min", self.expression.clone())
    }

    /// Greatest value of a group.
    fn max(&self) -> Aggregate {
        Aggregate::of("max", self.expression.clone())
    }

    /// How many values of a group are not null.
    fn count(&self) -> Aggregate {
        Aggregate::of("count", self.expression.clone())
    }

    /// Exact quantile of the values of a group, between two of them by straight line.
    fn quantile(&self, fraction: f64) -> Aggregate {
        Aggregate::quantile(self.expression.clone(), fraction)
    }
}

/// The column called `name`.
///
/// >>> import tersecades as tc
/// >>> tc.col("rtt_us") > 100
/// rtt_us > 100
#[pyfunction(name = "col")]
pub(crate) fn column(name: String) -> Expr {
    col(name).into()
}

/// The constant `value`.
///
/// >>> import tersecades as tc
/// >>> tc.lit(2) * tc.col("bytes")
/// 2 * bytes
#[pyfunction(name = "lit")]
pub(crate) fn constant(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    Ok(typed_literal(value)?.into())
}

/// A timestamp from a number of units since 1970 UTC; `unit` is `s`, `ms`, `us` or `ns`.
///
/// Of a number with a fraction it is the unit that it lies in: -0.5 s is 1969-12-31 23:59:59.
///
/// >>> import tersecades as tc
/// >>> tc.from_epoch("seen_ms", "ms")
/// epoch_ms(seen_ms)
#[pyfunction]
pub(crate) fn from_epoch(column: Column, unit: NamedUnit) -> Expr {
    Expression::EpochTime(Box::new(column.expression), unit.0).into()
}

/// A timestamp from year, month, day, hour, minute and second; parts at the end may be missing.
#[pyfunction]
#[pyo3(signature = (*parts))]
pub(crate) fn make_timestamp(parts: &Bound<'_, PyTuple>) -> PyResult<Expr> {
    let parts = columns(parts)?.into_iter().map(|part| part.expression);
    Ok(Expression::MakeTimestamp(parts.collect()).into())
}

/// Adds the class and its functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Expr>()?;
    module.add_class::<SortKey>()?;
    module.add_function(wrap_pyfunction!(column, module)?)?;
    module.add_function(wrap_pyfunction!(constant, module)?)?;
    module.add_function(wrap_pyfunction!(from_epoch, module)?)?;
    module.add_function(wrap_pyfunction!(make_timestamp, module)?)
}
