//! Aggregates of Python over the whole values of a group, as aggregates of the engine.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, ListArray, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat;
use arrow_select::take::take;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use tersecades::engine::aggregate::{UserAggregate, UserState};
use tersecades::engine::plan::AggregateCall;
use tersecades::{Error, Result};

use crate::aggregate::Aggregate;
use crate::capsule::import_array;
use crate::data_type::NamedType;
use crate::error::{OrRaise as _, carry};
use crate::expression::columns;
use crate::promise::as_promised;
use crate::table::{ArrowArray, library};
use crate::turn::call_in_query;

/// An aggregate of Python over whole groups; made by `udaf`.
///
/// Calling it with columns gives an aggregate.
#[pyclass(name = "AggregateFunction", module = "tersecades", frozen)]
pub(crate) struct AggregateFunction {
    aggregate: Arc<Callable>,
}

struct Callable {
    callable: Py<PyAny>,
    name: String,
    return_type: DataType,
}

/// The engine's view of a callable.
#[derive(Debug)]
struct PythonAggregate(Arc<Callable>);

impl fmt::Debug for Callable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.name)
    }
}

impl UserAggregate for PythonAggregate {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.0.return_type.clone())
    }

    fn start(&self, arguments: &[DataType]) -> Box<dyn UserState> {
        Box::new(GroupRows {
            aggregate: Arc::clone(&self.0),
            types: arguments.to_vec(),
            pieces: Vec::new(),
        })
    }
}

/// The arguments of all rows of a pane, and the group of each.
#[derive(Debug)]
struct GroupRows {
    aggregate: Arc<Callable>,
    types: Vec<DataType>,
    pieces: Vec<(Vec<ArrayRef>, Vec<u32>)>,
}

impl GroupRows {
    /// The arguments in the order of their groups, and where each group begins.
    fn grouped(&self, groups: usize) -> Result<(Vec<ArrayRef>, Vec<i32>)> {
        let ids = || self.pieces.iter().flat_map(|(_, ids)| ids);
        let count = ids().count();
        if i32::try_from(count).is_err() {
            let error = Error::limit(format!("{} gets {count} rows at once", self.aggregate.name));
            return Err(error.hint("use shorter windows: a window holds at most 2^31 rows"));
        }
        let mut offsets = vec![0i32; groups + 1];
        ids().for_each(|id| offsets[*id as usize + 1] += 1);
        (0..groups).for_each(|group| offsets[group + 1] += offsets[group]);
        let mut next = offsets.clone();
        let mut rows = vec![0u32; count];
        for (row, id) in ids().enumerate() {
            let place = &mut next[*id as usize];
            rows[*place as usize] = row as u32;
            *place += 1;
        }
        let rows = UInt32Array::from(rows);
        let sorted = self.types.iter().enumerate().map(|(index, data_type)| {
            let empty = arrow_array::new_empty_array(data_type);
            let parts = self.pieces.iter().map(|(arguments, _)| &*arguments[index]);
            let parts: Vec<&dyn Array> = std::iter::once(&*empty).chain(parts).collect();
            Ok(take(&concat(&parts)?, &rows, None)?)
        });
        Ok((sorted.collect::<Result<_>>()?, offsets))
    }

    fn call(&self, py: Python<'_>, sorted: &[ArrayRef], offsets: &[i32]) -> PyResult<ArrayRef> {
        let arrow = library(py, "pyarrow")?;
        let whole = sorted.iter().map(|array| {
            let array = Bound::new(py, ArrowArray::new(Arc::clone(array)))?;
            arrow.call_method1("array", (array,))
        });
        let whole: Vec<Bound<'_, PyAny>> = whole.collect::<PyResult<_>>()?;
        let results = PyList::empty(py);
        for ends in offsets.windows(2) {
            let length = ends[1] - ends[0];
            let group = whole
                .iter()
                .map(|array| array.call_method1("slice", (ends[0], length)));
            let group = PyTuple::new(py, group.collect::<PyResult<Vec<_>>>()?)?;
            results.append(self.aggregate.callable.bind(py).call1(group)?)?;
        }
        let results = import_array(&arrow.call_method1("array", (results,))?)?.1;
        as_promised(&self.aggregate.name, &results, &self.aggregate.return_type).or_raise()
    }
}

impl UserState for GroupRows {
    fn update(&mut self, arguments: &[ArrayRef], ids: &[u32], _groups: usize) -> Result<()> {
        self.pieces.push((arguments.to_vec(), ids.to_vec()));
        Ok(())
    }

    fn merge(&mut self, state: &[ArrayRef], ids: &[u32], _groups: usize) -> Result<()> {
        let lists: Vec<&ListArray> = state.iter().map(|column| column.as_list::<i32>()).collect();
        let Some(first) = lists.first() else {
            return Ok(());
        };
        let lengths = ids.iter().zip(first.value_offsets().windows(2));
        let repeated =
            lengths.flat_map(|(id, ends)| std::iter::repeat_n(*id, (ends[1] - ends[0]) as usize));
        let values = lists.iter().map(|list| {
            let offsets = list.value_offsets();
            let (start, end) = (offsets[0] as usize, offsets[list.len()] as usize);
            list.values().slice(start, end - start)
        });
        self.pieces.push((values.collect(), repeated.collect()));
        Ok(())
    }

    fn state(&self, groups: usize) -> Result<Vec<ArrayRef>> {
        let (sorted, offsets) = self.grouped(groups)?;
        let offsets = OffsetBuffer::new(offsets.into());
        let lists = sorted.into_iter().map(|values| {
            let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
            let list = ListArray::try_new(field, offsets.clone(), values, None)?;
            Ok(Arc::new(list) as ArrayRef)
        });
        lists.collect()
    }

    fn finish(&self, groups: usize) -> Result<ArrayRef> {
        let (sorted, offsets) = self.grouped(groups)?;
        call_in_query(|py| {
            let called = self.call(py, &sorted, &offsets);
            called.map_err(|raised| carry(py, raised))
        })
    }

    fn byte_size(&self) -> usize {
        let sizes = self.pieces.iter().map(|(arguments, ids)| {
            let arrays = arguments.iter().map(|array| array.get_array_memory_size());
            arrays.sum::<usize>() + ids.len() * size_of::<u32>()
        });
        sizes.sum()
    }
}

#[pymethods]
impl AggregateFunction {
    #[pyo3(signature = (*arguments))]
    fn __call__(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Aggregate> {
        let arguments = columns(arguments)?.into_iter();
        let arguments = arguments.map(|argument| argument.expression);
        let aggregate = Arc::new(PythonAggregate(Arc::clone(&self.aggregate)));
        Ok(Aggregate::new(AggregateCall::user(aggregate, arguments)))
    }

    fn __repr__(&self) -> String {
        format!("AggregateFunction({})", self.aggregate.name)
    }
}

/// Makes a function of Python usable as an aggregate.
///
/// It is called once for each group with the group's whole columns, as `pyarrow.Array`, and
/// returns one value. The rows of a group come in no certain order.
///
/// >>> import pyarrow as pa, pyarrow.compute as pc, tersecades as tc
/// >>> @tc.udaf(return_type="int64")
/// ... def spread(values):
/// ...     return pc.max(values).as_py() - pc.min(values).as_py()
/// >>> stream = tc.from_arrow(pa.table({"key": [1, 1, 2], "n": [3, 9, 4]}))
/// >>> stream.group_by("key").agg(spread=spread("n")).to_pylist()
/// [{'key': 1, 'spread': 6}, {'key': 2, 'spread': 0}]
#[pyfunction]
#[pyo3(signature = (function=None, *, return_type, name=None))]
fn udaf(
    py: Python<'_>,
    function: Option<Bound<'_, PyAny>>,
    return_type: &Bound<'_, PyAny>,
    name: Option<String>,
) -> PyResult<Py<PyAny>> {
    let Some(callable) = function else {
        let options = PyDict::new(py);
        options.set_item("return_type", return_type)?;
        options.set_item("name", name)?;
        let udaf = py.import("tersecades")?.getattr("udaf")?;
        let partial = py.import("functools")?.getattr("partial")?;
        return Ok(partial.call((udaf,), Some(&options))?.unbind());
    };
    let name = match (name, callable.getattr_opt("__name__")?) {
        (Some(name), _) => name,
        (None, Some(name)) => name.extract()?,
        (None, None) => "aggregate".to_owned(),
    };
    let aggregate = Arc::new(Callable {
        callable: callable.unbind(),
        name,
        return_type: return_type.extract::<NamedType>()?.0,
    });
    Ok(Py::new(py, AggregateFunction { aggregate })?.into_any())
}

/// Adds the class and its function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AggregateFunction>()?;
    module.add_function(wrap_pyfunction!(udaf, module)?)
}
