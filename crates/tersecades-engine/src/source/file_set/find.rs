//! The files that a folder holds or a glob matches.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError};
use tersecades_columnar::error::{Error, Result};

use super::formats;
use crate::source::{SourceOptions, kind_of};

/// Files of the folder `path`, or those that match it, by path.
pub(in crate::source) fn find_files(path: &Path, options: &SourceOptions) -> Result<Vec<PathBuf>> {
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

/// How patterns match.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The files that match the glob `pattern`.
fn matches(pattern: &Path) -> Result<Vec<PathBuf>> {
    // One spelling of the parts, as the files that are found have it.
    let pattern = &pattern.iter().collect::<PathBuf>();
    let shown = pattern.display().to_string();
    let wrong = |error: PatternError| {
        Error::invalid(format!("the pattern is wrong: {}", error.msg)).file(&shown)
    };
    if pattern.iter().any(|part| part == "**") {
        return matches_below(pattern, &Pattern::new(&shown).map_err(wrong)?);
    }
    let mut files = Vec::new();
    for path in glob::glob_with(&shown, MATCHING).map_err(wrong)? {
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

/// The files that match `pattern`, at any depth below the part of its `path` that is no pattern.
fn matches_below(path: &Path, pattern: &Pattern) -> Result<Vec<PathBuf>> {
    let is_name = |part: &&OsStr| !part.to_string_lossy().contains(['*', '?', '[']);
    let root: PathBuf = path.iter().take_while(is_name).collect();
    let is_here = root.as_os_str().is_empty();
    let root = if is_here { Path::new(".") } else { &root };
    let mut files = Vec::new();
    if !root.is_dir() {
        return Ok(files);
    }
    let is_hidden = |part: &OsStr| part.to_string_lossy().starts_with('.');
    let hidden: &[char] = match path.iter().skip_while(is_name).any(is_hidden) {
        true => &[],
        false => &['.'],
    };
    walk(root, hidden, &mut Vec::new(), &mut |file| {
        let file = if is_here {
            file.strip_prefix(".").unwrap_or(file)
        } else {
            file
        };
        if pattern.matches_path_with(file, MATCHING) {
            files.push(file.to_owned());
        }
    })?;
    Ok(files)
}

/// The files of known formats below `root`.
fn folder(root: &Path, options: &SourceOptions) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(root, &['.', '_'], &mut Vec::new(), &mut |path| {
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

/// Visits the files below `folder`, but for links that lead back to one of the folders `above`;
/// names that begin with a `hidden` letter are passed over.
fn walk(
    folder: &Path,
    hidden: &[char],
    above: &mut Vec<PathBuf>,
    visit: &mut impl FnMut(&Path),
) -> Result<()> {
    let here = |error: std::io::Error| Error::from(error).file(folder.display().to_string());
    let place = folder.canonicalize().map_err(here)?;
    if above.contains(&place) {
        return Ok(());
    }
    above.push(place);
    let entries = std::fs::read_dir(folder).map_err(here)?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<std::io::Result<_>>().map_err(here)?;
    paths.sort_unstable();
    for path in paths {
        let name = path
            .file_name()
            .map(OsStr::to_string_lossy)
            .unwrap_or_default();
        if name.starts_with(hidden) {
            continue;
        }
        match path.is_dir() {
            true => walk(&path, hidden, above, visit)?,
            false => visit(&path),
        }
    }
    above.pop();
    Ok(())
}
