//! What users name to say where rows come from: a file, many files, or standard input.
//!
//! ```text
//! probes.parquet        FileTable
//! probes/*.parquet      FilesTable, as are folders
//! a pipe with a name    read once
//! -                     standard input, read once, in the format that the options name
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tersecades_columnar::error::{Error, Result};

use super::file_set::{FilesTable, find_files};
use super::table::{FileTable, OneRun, Table};
use super::{SourceOptions, Trickle, open, read};

/// The name of standard input.
pub const STANDARD_INPUT: &str = "-";

/// The rows at `location`: a file, a glob, a folder, or `-`.
///
/// # Errors
/// `InvalidArgument` for unknown formats and when nothing is there; what opening the first file
/// says.
///
/// # Examples
/// ```no_run
/// use tersecades_engine::source::{SourceOptions, location::open_table};
/// let probes = open_table("probes/region=*/*.parquet", &SourceOptions::default())?;
/// println!("{}", probes.schema());
/// # Ok::<(), tersecades_columnar::error::Error>(())
/// ```
pub fn open_table(location: impl AsRef<Path>, options: &SourceOptions) -> Result<Arc<dyn Table>> {
    let path = location.as_ref();
    if path == Path::new(STANDARD_INPUT) {
        let input = Trickle::start(std::io::stdin())?;
        let source = read(input, options).map_err(|error| error.file("stdin"))?;
        return Ok(Arc::new(OneRun::new(source)));
    }
    if is_read_once(path) {
        return Ok(Arc::new(OneRun::new(open(path, options)?)));
    }
    if !is_pattern(path) {
        let named = |error: std::io::Error| Error::from(error).file(path.display().to_string());
        path.metadata().map_err(named)?;
    }
    match path.is_dir() || is_pattern(path) {
        true => Ok(Arc::new(FilesTable::new(path, options)?)),
        false => Ok(Arc::new(FileTable::new(path, options)?)),
    }
}

/// The files at `location`: one, or those of a glob or a folder.
///
/// # Errors
/// `InvalidArgument` for a wrong pattern, when nothing matches, or when a folder holds several
/// formats; `Io` for folders that cannot be read.
pub fn files_at(location: impl AsRef<Path>, options: &SourceOptions) -> Result<Vec<PathBuf>> {
    let path = location.as_ref();
    match path.is_dir() || is_pattern(path) {
        true => find_files(path, options),
        false => Ok(vec![path.to_path_buf()]),
    }
}

/// Whether the rows at `location` can be read once only: those of standard input and of pipes.
pub fn is_read_once(location: impl AsRef<Path>) -> bool {
    let path = location.as_ref();
    let found = path.metadata();
    path == Path::new(STANDARD_INPUT)
        || found.is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether `path` stands for several files; a file that has such a name stands for itself.
pub(super) fn is_pattern(path: &Path) -> bool {
    let has_wildcard = path.to_string_lossy().contains(['*', '?', '[']);
    has_wildcard && !path.exists()
}
