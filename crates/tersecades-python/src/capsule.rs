//! The border with Python's other libraries: Arrow's C data interface in PyCapsules.
//!
//! Out, a capsule owns a structure that releases itself unless the taker has moved it. In, the
//! structure is moved out of the capsule, whose own destructor then finds it released.
//!
//! Source: the Arrow PyCapsule interface,
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use std::ffi::CStr;
use std::ptr::NonNull;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, make_array};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tersecades::Error;

use crate::error::raise;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// The exception for an error of the exchange.
pub(crate) fn exchange_error(py: Python<'_>, error: &ArrowError) -> PyErr {
    let error = Error::schema(format!("Arrow data could not be taken over: {error}"));
    raise(
        py,
        &error.hint("give a table or a batch: rows with named columns"),
    )
}

/// A capsule of batches that are made while its taker asks for them.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

/// A capsule of the schema.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| exchange_error(py, &error))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Capsules of the schema and the content of one array.
pub(crate) fn array_capsules<'py>(
    py: Python<'py>,
    array: &dyn Array,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let field = Field::new("", array.data_type().clone(), true);
    let schema = FFI_ArrowSchema::try_from(&field).map_err(|error| exchange_error(py, &error))?;
    let content = FFI_ArrowArray::new(&array.to_data());
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    Ok((schema, PyCapsule::new_with_value(py, content, ARRAY)?))
}

fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<T>> {
    Ok(capsule
        .cast::<PyCapsule>()?
        .pointer_checked(Some(name))?
        .cast())
}

/// The batches of an object with `__arrow_c_stream__`.
pub(crate) fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let stream: NonNull<FFI_ArrowArrayStream> = pointer(&capsule, STREAM)?;
    // SAFETY: a capsule of this name holds an initialised, aligned stream, which `capsule` keeps
    // alive here; nobody else reads it, since the capsule was made for this call.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(|error| exchange_error(object.py(), &error))
}

/// The type that an object with `__arrow_c_schema__` describes.
pub(crate) fn import_field(object: &Bound<'_, PyAny>) -> PyResult<Field> {
    let capsule = object.call_method0("__arrow_c_schema__")?;
    let schema: NonNull<FFI_ArrowSchema> = pointer(&capsule, SCHEMA)?;
    // SAFETY: a capsule of this name holds an initialised, aligned schema, which `capsule` keeps
    // alive while it is read.
    let field = Field::try_from(unsafe { schema.as_ref() });
    field.map_err(|error| exchange_error(object.py(), &error))
}

/// The schema that an object with `__arrow_c_schema__` describes.
pub(crate) fn import_schema(object: &Bound<'_, PyAny>) -> PyResult<Schema> {
    match import_field(object)?.data_type() {
        DataType::Struct(fields) => Ok(Schema::new(fields.clone())),
        other => {
            let error = ArrowError::SchemaError(format!("{other} has no columns"));
            Err(exchange_error(object.py(), &error))
        }
    }
}

/// The array of an object with `__arrow_c_array__`, and its field.
pub(crate) fn import_array(object: &Bound<'_, PyAny>) -> PyResult<(Field, ArrayRef)> {
    let py = object.py();
    let capsules = object.call_method0("__arrow_c_array__")?;
    let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
    let schema: NonNull<FFI_ArrowSchema> = pointer(&schema, SCHEMA)?;
    let array: NonNull<FFI_ArrowArray> = pointer(&array, ARRAY)?;
    // SAFETY: capsules of these names hold an initialised, aligned schema and array, which
    // `capsules` keeps alive here; the array is moved out, so that it is released once.
    let (schema, array) = unsafe { (schema.as_ref(), FFI_ArrowArray::from_raw(array.as_ptr())) };
    let field = Field::try_from(schema).map_err(|error| exchange_error(py, &error))?;
    // SAFETY: whoever implements the interface vouches that the array is as its schema says.
    let data = unsafe { from_ffi(array, schema) };
    let data = data.map_err(|error| exchange_error(py, &error))?;
    Ok((field, make_array(data)))
}

/// The batch of an object with `__arrow_c_array__`.
pub(crate) fn import_batch(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let py = object.py();
    let (field, array) = import_array(object)?;
    let rows = array.len();
    let DataType::Struct(fields) = field.data_type() else {
        let error = ArrowError::SchemaError(format!("{} has no columns", field.data_type()));
        return Err(exchange_error(py, &error));
    };
    let columns = StructArray::from(array.to_data()).into_parts().1;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = Schema::new(fields.clone()).with_metadata(field.metadata().clone());
    RecordBatch::try_new_with_options(schema.into(), columns, &options)
        .map_err(|error| exchange_error(py, &error))
}
