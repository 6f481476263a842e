//! Packed files: compressed, and readable in the middle.

use std::ops::Range;
use std::path::PathBuf;
use std::thread;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tersecades::Result;
use tersecades::store::partition::{
    self, GzipFile, PackOptions, PackedFile, find_layout, pack_file,
};

use crate::error::OrRaise;
use crate::number;

/// The bytes that `part` reads of a range, with the lock of the interpreter free meanwhile.
fn read(
    py: Python<'_>,
    offset: u64,
    length: usize,
    part: impl FnOnce(Range<u64>) -> Result<Vec<u8>> + Send,
) -> PyResult<Bound<'_, PyBytes>> {
    let range = offset..offset.saturating_add(length as u64);
    let bytes = py.detach(|| part(range)).or_raise()?;
    Ok(PyBytes::new(py, &bytes))
}

/// A packed file: compressed bytes of which any part is read without the rest.
#[pyclass(frozen, module = "tersecades")]
struct Packed(PackedFile);

#[pymethods]
impl Packed {
    /// `length` bytes from `offset` on, fewer only at the end.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number::count)] offset: u64,
        #[pyo3(from_py_with = number::size)] length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        read(py, offset, length, |range| self.0.read_range(range))
    }

    /// How many bytes the packed ones stand for.
    #[getter]
    fn size(&self) -> u64 {
        self.0.len()
    }

    /// How many bytes the partitions take in the file.
    #[getter]
    fn stored_size(&self) -> u64 {
        self.0.stored_len()
    }

    /// How the partitions are stored, as `zlib`.
    #[getter]
    fn layout(&self) -> &'static str {
        self.0.layout().name()
    }

    /// Reads and checks everything; raises `Corrupt` where something is damaged.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.verify()).or_raise()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.len()).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        let (size, stored) = (self.0.len(), self.0.stored_len());
        format!("Packed({size} bytes in {stored}, {})", self.layout())
    }
}

/// A gzip file of others, of which any part is read through an index.
#[pyclass(frozen, module = "tersecades")]
struct Gzip(GzipFile);

#[pymethods]
impl Gzip {
    /// `length` bytes from `offset` on, fewer only at the end.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number::count)] offset: u64,
        #[pyo3(from_py_with = number::size)] length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        read(py, offset, length, |range| self.0.read_range(range))
    }

    /// How many bytes the file stands for.
    #[getter]
    fn size(&self) -> u64 {
        self.0.len()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.len()).unwrap_or(usize::MAX)
    }
}

/// Opens a gzip file of others. Its index is read from the file `index`, and made and written there
/// where there is none; without a name for it it is made each time.
///
/// >>> import tersecades as tc, tempfile, gzip, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.gz"
/// >>> _ = path.write_bytes(gzip.compress(b"2024-05-01 node-7 ok\n" * 100_000))
/// >>> tc.open_gzip(path, index=path.with_suffix(".index")).read_at(21 * 90_000 + 11, 9)
/// b'node-7 ok'
#[pyfunction]
#[pyo3(signature = (path, *, index=None))]
fn open_gzip(py: Python<'_>, path: PathBuf, index: Option<PathBuf>) -> PyResult<Gzip> {
    let opened = py.detach(|| partition::open_gzip(&path, index.as_deref()));
    Ok(Gzip(opened.or_raise()?))
}

/// Opens a packed file, as `pack` makes it.
///
/// >>> import tersecades as tc, tempfile, gzip, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> _ = (folder / "log").write_bytes(b"2024-05-01 node-7 ok\n" * 10_000)
/// >>> tc.pack(folder / "log", folder / "log.tcz")
/// Packed(210000 bytes in ..., zlib)
/// >>> tc.open_packed(folder / "log.tcz").read_at(21 * 9_000 + 11, 9)
/// b'node-7 ok'
/// >>> len(gzip.open(folder / "log.tcz").read())
/// 210000
#[pyfunction]
fn open_packed(py: Python<'_>, path: PathBuf) -> PyResult<Packed> {
    Ok(Packed(py.detach(|| partition::open(&path)).or_raise()?))
}

/// Packs the file `path` into the file `output`, and opens it.
///
/// `layout` is `"zlib"`, which gunzip reads too, `"zstd"` or `"lz4"`; `partition` is the number of
/// bytes that are compressed on their own.
#[pyfunction]
#[pyo3(signature = (path, output, *, layout="zlib", partition=None, level=None))]
fn pack(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    layout: &str,
    partition: Option<usize>,
    level: Option<i32>,
) -> PyResult<Packed> {
    let options = PackOptions {
        partition,
        level,
        threads: thread::available_parallelism().map_or(1, usize::from),
        ..PackOptions::of(find_layout(layout).or_raise()?)
    };
    py.detach(|| pack_file(&path, &output, options, |_| ()))
        .or_raise()?;
    open_packed(py, output)
}

/// Adds the class and its functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Packed>()?;
    module.add_class::<Gzip>()?;
    module.add_function(wrap_pyfunction!(open_gzip, module)?)?;
    module.add_function(wrap_pyfunction!(open_packed, module)?)?;
    module.add_function(wrap_pyfunction!(pack, module)?)
}
