//! Functions of Python over whole columns, as functions of the engine.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use tersecades::engine::expression::{Expression, ScalarFunction};
use tersecades::prelude::DataType;
use tersecades::{Error, Result};

use crate::capsule::import_array;
use crate::data_type::NamedType;
use crate::error::{OrRaise as _, carry, raise};
use crate::expression::{Expr, columns};
use crate::promise::as_promised;
use crate::table::{ArrowArray, library};
use crate::turn::call_in_query;

/// A function of Python whose arguments and result are columns; made by `udf`.
///
/// Calling it with columns gives an expression.
#[pyclass(name = "Function", module = "tersecades", frozen)]
pub(crate) struct Function {
    function: Arc<PythonFunction>,
}

struct PythonFunction {
    callable: Py<PyAny>,
    name: String,
    return_type: DataType,
    immutable: bool,
}

impl fmt::Debug for PythonFunction {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.name)
    }
}

impl PythonFunction {
    fn call(&self, py: Python<'_>, arguments: &[ArrayRef], rows: usize) -> PyResult<ArrayRef> {
        let arrow = library(py, "pyarrow")?;
        let given = arguments.iter().map(|array| {
            let array = Bound::new(py, ArrowArray::new(Arc::clone(array)))?;
            arrow.call_method1("array", (array,))
        });
        let given: PyResult<Vec<_>> = given.collect();
        let result = self.callable.bind(py).call1(PyTuple::new(py, given?)?)?;
        let array = result_array(&arrow, result)?;
        if array.len() != rows {
            let error = Error::schema(format!(
                "{} returned {} values for {rows} rows",
                self.name,
                array.len()
            ));
            let hint = "a function gets whole columns and returns one value for each row";
            return Err(raise(py, &error.hint(hint)));
        }
        as_promised(&self.name, &array, &self.return_type).or_raise()
    }
}

/// What a function returned, as one array: Arrow data, a NumPy array, a series, or a list.
fn result_array(arrow: &Bound<'_, PyModule>, result: Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if result.is_instance_of::<PyString>() || result.is_instance_of::<PyBytes>() {
        let error = Error::schema(format!("a function returned the single value {result:?}"));
        let hint = "a function gets whole columns and returns one value for each row";
        return Err(raise(result.py(), &error.hint(hint)));
    }
    let single = match result.hasattr("combine_chunks")? {
        true => result.call_method0("combine_chunks")?,
        false if result.hasattr("to_arrow")? => result.call_method0("to_arrow")?,
        false => result,
    };
    let array = match single.hasattr("__arrow_c_array__")? {
        true => single,
        false => arrow.call_method1("array", (single,))?,
    };
    Ok(import_array(&array)?.1)
}

impl ScalarFunction for PythonFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.return_type.clone())
    }

    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        call_in_query(|py| {
            let called = self.call(py, arguments, rows);
            called.map_err(|raised| carry(py, raised))
        })
    }

    fn is_immutable(&self) -> bool {
        self.immutable
    }
}

#[pymethods]
impl Function {
    #[pyo3(signature = (*arguments))]
    fn __call__(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Expr> {
        let arguments = columns(arguments)?.into_iter();
        let arguments = arguments.map(|argument| argument.expression).collect();
        let function = Arc::clone(&self.function) as Arc<dyn ScalarFunction>;
        Ok(Expression::call(function, arguments).into())
    }

    fn __repr__(&self) -> String {
        format!("Function({})", self.function.name)
    }
}

/// Makes a function of Python usable in expressions.
///
/// It is called with whole columns, as `pyarrow.Array`, and returns as many values: an Arrow
/// array, a NumPy array, a series, or a list. It sees only rows that it is needed for, and a
/// function of one text column only each different text; `immutable=False` says that its result
/// does not depend on its arguments alone.
///
/// >>> import pyarrow as pa, pyarrow.compute as pc, tersecades as tc
/// >>> @tc.udf(return_type="int64")
/// ... def letters(name):
/// ...     return pc.utf8_length(name)
/// >>> stream = tc.from_arrow(pa.table({"name": ["Ada", "Grace"]}))
/// >>> stream.filter(letters("name") > 3).to_pylist()
/// [{'name': 'Grace'}]
#[pyfunction]
#[pyo3(signature = (function=None, *, return_type, name=None, immutable=true))]
fn udf(
    py: Python<'_>,
    function: Option<Bound<'_, PyAny>>,
    return_type: &Bound<'_, PyAny>,
    name: Option<String>,
    immutable: bool,
) -> PyResult<Py<PyAny>> {
    let Some(callable) = function else {
        let options = PyDict::new(py);
        options.set_item("return_type", return_type)?;
        options.set_item("name", name)?;
        options.set_item("immutable", immutable)?;
        let udf = py.import("tersecades")?.getattr("udf")?;
        let partial = py.import("functools")?.getattr("partial")?;
        return Ok(partial.call((udf,), Some(&options))?.unbind());
    };
    let name = match (name, callable.getattr_opt("__name__")?) {
        (Some(name), _) => name,
        (None, Some(name)) => name.extract()?,
        (None, None) => "function".to_owned(),
    };
    let function = Arc::new(PythonFunction {
        callable: callable.unbind(),
        name,
        return_type: return_type.extract::<NamedType>()?.0,
        immutable,
    });
    Ok(Py::new(py, Function { function })?.into_any())
}

/// Adds the class and its function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Function>()?;
    module.add_function(wrap_pyfunction!(udf, module)?)
}
