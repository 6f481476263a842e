//! Tables in the documentation that are generated from the lists in the code.
//!
//! A Markdown file holds a section between two lines of its own; everything between them belongs to
//! the generator:
//!
//! ```text
//! <!-- generated: codecs -->
//! | id | codec | ...
//! <!-- end -->
//! ```

use crate::tidy::Repository;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Prints one list as Markdown; the list's name is added as the last argument.
///
/// Named by binary and not by package: a package alone would be built with other features of its
/// dependencies than the tests are, which builds them twice.
const GENERATOR: &[&str] = &[
    "cargo",
    "run",
    "-q",
    "--bin",
    "tersecades",
    "--",
    "lists",
    "--format",
    "markdown",
];

const BEGIN: &str = "<!-- generated: ";
const BEGIN_END: &str = " -->";
const END: &str = "<!-- end -->";

/// Writes every section anew.
pub(crate) fn write(root: &Path) -> Result<String, String> {
    let mut written = 0;
    let (files, sections) = each_file(root, |path, old, new| {
        if old != new {
            written += 1;
            let path = root.join(path);
            std::fs::write(&path, new).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    })?;
    Ok(format!(
        "docs: {sections} generated sections in {files} files, {written} files written"
    ))
}

/// Fails when a section differs from what would be generated.
pub(crate) fn check(root: &Path) -> Result<String, String> {
    let mut stale = String::new();
    let (files, sections) = each_file(root, |path, old, new| {
        if let Some(line) = first_difference(old, new) {
            stale.push_str(&format!(
                "{path}:{line}: differs from the list: run `cargo xtask docs`\n"
            ));
        }
        Ok(())
    })?;
    if stale.is_empty() {
        return Ok(format!(
            "docs: {sections} generated sections in {files} files are up to date"
        ));
    }
    Err(stale.trim_end().to_owned())
}

/// Calls `visit(path, old, new)` for each file with sections; returns the files and sections seen.
fn each_file(
    root: &Path,
    mut visit: impl FnMut(&str, &str, &str) -> Result<(), String>,
) -> Result<(usize, usize), String> {
    let mut lists: BTreeMap<String, String> = BTreeMap::new();
    let (mut files, mut sections) = (0, 0);
    for source in Repository::read(root)?.sources {
        let is_text = source.path.ends_with(".md");
        let count = source
            .text
            .lines()
            .filter(|line| section_name(line).is_some())
            .count();
        if !is_text || count == 0 {
            continue;
        }
        let new = regenerate(&source.text, |name| {
            if let Some(list) = lists.get(name) {
                return Ok(list.clone());
            }
            let list = generate(root, name)?;
            lists.insert(name.to_owned(), list.clone());
            Ok(list)
        });
        let new = new.map_err(|error| format!("{}:{error}", source.path))?;
        visit(&source.path, &source.text, &new)?;
        files += 1;
        sections += count;
    }
    Ok((files, sections))
}

fn section_name(line: &str) -> Option<&str> {
    line.strip_prefix(BEGIN)?.strip_suffix(BEGIN_END)
}

/// `text` with the content of every section replaced by what `generate` gives for its name.
fn regenerate(
    text: &str,
    mut generate: impl FnMut(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut new = String::with_capacity(text.len());
    let mut open: Option<usize> = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(name) = section_name(line) {
            if let Some(first) = open {
                return Err(format!(
                    "{number}: section inside the section of line {first}"
                ));
            }
            open = Some(number);
            let list = generate(name).map_err(|error| format!("{number}: {error}"))?;
            new.push_str(&format!("{line}\n{}\n", list.trim_end()));
        } else if line == END && open.take().is_none() {
            return Err(format!("{number}: `{END}` without a section"));
        }
        if open.is_none() {
            new.push_str(&format!("{line}\n"));
        }
    }
    match open {
        Some(first) => Err(format!("{first}: section without `{END}`")),
        None => Ok(new),
    }
}

fn first_difference(old: &str, new: &str) -> Option<usize> {
    if old == new {
        return None;
    }
    let same = old
        .lines()
        .zip(new.lines())
        .take_while(|(old, new)| old == new)
        .count();
    Some(same + 1)
}

fn generate(root: &Path, name: &str) -> Result<String, String> {
    let (program, arguments) = GENERATOR.split_first().ok_or("no generator")?;
    let mut command = Command::new(program);
    command.args(arguments).arg(name).current_dir(root);
    let output = command
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("list `{name}`: {}", said.trim_end()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("list `{name}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(text: &str) -> Result<String, String> {
        regenerate(text, |name| match name {
            "codecs" => Ok("| plain |\n".to_owned()),
            _ => Err(format!("no list `{name}`")),
        })
    }

    #[test]
    fn finds_a_stale_section() {
        let fresh = "A\n<!-- generated: codecs -->\n| plain |\n<!-- end -->\nB\n";
        assert_eq!(generated(fresh).as_deref(), Ok(fresh));
        assert_eq!(first_difference(fresh, fresh), None);
        let stale = "A\n<!-- generated: codecs -->\n| old |\n| older |\n<!-- end -->\nB\n";
        assert_eq!(generated(stale).as_deref(), Ok(fresh));
        assert_eq!(first_difference(stale, fresh), Some(3));
    }

    #[test]
    fn refuses_broken_sections() {
        assert!(generated("<!-- generated: codecs -->\n").is_err());
        assert!(generated("<!-- end -->\n").is_err());
        assert!(generated("<!-- generated: nothing -->\n<!-- end -->\n").is_err());
        let nested = "<!-- generated: codecs -->\n<!-- generated: codecs -->\n<!-- end -->\n";
        assert!(generated(nested).is_err());
        assert_eq!(
            generated("Say `<!-- end -->` in text.\n").as_deref(),
            Ok("Say `<!-- end -->` in text.\n")
        );
    }
}
