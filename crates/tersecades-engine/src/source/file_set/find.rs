//! The files that a folder holds or a glob matches.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use glob::MatchOptions;
use tersecades_columnar::error::{Error, Result};

use super::formats;
use crate::source::{SourceOptions, kind_of};

/// How deep folders may lie in each other; links may make circles.
const DEPTH_LIMIT: usize = 64;

/// Files of the folder `path`, or those that match it, by path.
pub(super) fn find_files(path: &Path, options: &SourceOptions) -> Result<Vec<PathBuf>> {
    let mut files = match path.is_dir() {
        true => folder(path, options)?,
        false => matches(path)?,
    };
    if files.is_empty() {
        return Err(Error::invalid("no file is there")
            .file(path.display().to_string())
            .hint("check the path; in a shell, put quotes around a glob"));
    }
    files.sort_unstable();
    Ok(files)
}

/// The files that match the glob `pattern`.
fn matches(pattern: &Path) -> Result<Vec<PathBuf>> {
    let shown = pattern.display().to_string();
    let options = MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let found = glob::glob_with(&shown, options).map_err(|error| {
        Error::invalid(format!("the pattern is wrong: {}", error.msg)).file(&shown)
    })?;
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(|error| {
            let place = error.path().display().to_string();
            Error::from(std::io::Error::from(error)).file(place)
        })?;
        if !path.is_dir() {
            files.push(path);
        }
    }
    Ok(files)
}

/// The files of known formats below `root`.
fn folder(root: &Path, options: &SourceOptions) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(root, 0, &mut |path| {
        if kind_of(path, options).is_ok() {
            files.push(path.to_owned());
        }
    })?;
    let formats = formats(&files, options);
    match formats.len() {
        0 | 1 => Ok(files),
        _ => Err(Error::invalid(format!(
            "the folder holds files of several formats: {}",
            formats.join(", ")
        ))
        .file(root.display().to_string())
        .hint("name those of one format, as in folder/**/*.parquet")),
    }
}

fn walk(folder: &Path, depth: usize, visit: &mut impl FnMut(&Path)) -> Result<()> {
    let here = |error: std::io::Error| Error::from(error).file(folder.display().to_string());
    if depth > DEPTH_LIMIT {
        let message = format!("folders lie more than {DEPTH_LIMIT} deep in each other");
        return Err(Error::limit(message)
            .file(folder.display().to_string())
            .hint("a link may lead back to a folder above it"));
    }
    for entry in std::fs::read_dir(folder).map_err(here)? {
        let path = entry.map_err(here)?.path();
        let name = path
            .file_name()
            .map(OsStr::to_string_lossy)
            .unwrap_or_default();
        if name.starts_with(['.', '_']) {
            continue;
        }
        match path.is_dir() {
            true => walk(&path, depth + 1, visit)?,
            false => visit(&path),
        }
    }
    Ok(())
}
