//! The sets of real data: folders of files that an engine source reads, raw float columns and lines
//! of logs.
//!
//! Archives of whole files have no columns and are passed over: Canterbury, Silesia, `storage34`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use flate2::read::GzDecoder;
use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_engine::source::{self, SourceOptions};

/// Suffix of files of little-endian 64-bit floats.
const FLOATS: &str = ".f64le.bin";

/// Suffix of logs, a text a line.
const LINES: &str = ".log.gz";

const SUFFIXES: [&str; 6] = [".parquet", ".csv", ".csv.gz", ".jsonl.gz", LINES, FLOATS];

/// The list of an archive's files.
const ARCHIVE_LIST: &str = "MANIFEST.csv";

/// The rows of one file.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) batches: Vec<RecordBatch>,
}

/// The folders of `data` that hold a file of a known suffix, with these files.
pub(crate) fn sets(data: &Path) -> Result<Vec<(String, Vec<PathBuf>)>> {
    let mut sets = Vec::new();
    for folder in entries(data)? {
        let name = name_of(&folder);
        let mut files = if folder.is_dir() {
            entries(&folder)?
        } else {
            Vec::new()
        };
        files.retain(|file| {
            let name = name_of(file);
            let known = SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
            known && name != ARCHIVE_LIST && file.is_file()
        });
        if !files.is_empty() {
            sets.push((name, files));
        }
    }
    Ok(sets)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The first `rows` rows of a file.
pub(crate) fn read(path: &Path, rows: usize) -> Result<Table> {
    let name = name_of(path);
    let batches = if name.ends_with(FLOATS) {
        floats(path, rows)?
    } else if name.ends_with(LINES) {
        lines(path, rows)?
    } else {
        // Whole numbers turn into floats late in some files, so types are inferred from all rows.
        let mut options = SourceOptions::default();
        options.csv.infer_rows = rows;
        let mut source = source::open(path, &options)?;
        let (mut batches, mut left) = (Vec::new(), rows);
        while left > 0 {
            let Some(batch) = source.next()? else { break };
            let batch = batch.slice(0, batch.num_rows().min(left));
            left -= batch.num_rows();
            batches.push(batch);
        }
        batches
    };
    Ok(Table { name, batches })
}

fn floats(path: &Path, rows: usize) -> Result<Vec<RecordBatch>> {
    let bytes = std::fs::read(path)?;
    let words = bytes.as_chunks::<8>().0;
    let words = &words[..words.len().min(rows)];
    let batch = |words: &[[u8; 8]]| {
        let values = words.iter().map(|word| f64::from_le_bytes(*word));
        let column: ArrayRef = Arc::new(Float64Array::from_iter_values(values));
        Ok(RecordBatch::try_from_iter([("value", column)])?)
    };
    words.chunks(BATCH_ROWS).map(batch).collect()
}

fn lines(path: &Path, rows: usize) -> Result<Vec<RecordBatch>> {
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path)?).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().take(rows).collect();
    let batch = |lines: &[&str]| {
        let column: ArrayRef = Arc::new(StringArray::from_iter_values(lines));
        Ok(RecordBatch::try_from_iter([("line", column)])?)
    };
    lines.chunks(BATCH_ROWS).map(batch).collect()
}
