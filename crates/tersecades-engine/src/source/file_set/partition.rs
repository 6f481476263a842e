//! Columns that stand in paths: `key=value` folders, typed by what all their values are.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array};
use arrow_schema::Field;
use arrow_select::take::take;
use tersecades_columnar::error::{Error, Result};

use crate::source::csv::column::ColumnBuilder;
use crate::source::csv::field::{Cell, FieldKind};
use crate::source::csv::inference::TypeGuess;

/// What writers of such folders call null.
const NULL_NAME: &str = "__HIVE_DEFAULT_PARTITION__";

/// The columns in the paths of files.
#[derive(Debug)]
pub(super) struct Partitions {
    fields: Vec<Arc<Field>>,
    /// By file, by key; `None` is null.
    values: Vec<Vec<Option<String>>>,
}

impl Partitions {
    /// The keys of `files`, which must be the same everywhere.
    pub(super) fn new(files: &[PathBuf]) -> Result<Self> {
        let pairs: Vec<Vec<(String, Option<String>)>> = files.iter().map(|it| keys(it)).collect();
        let first = pairs.first().cloned().unwrap_or_default();
        let names: Vec<&String> = first.iter().map(|(key, _)| key).collect();
        for (file, found) in files.iter().zip(&pairs) {
            let found: Vec<&String> = found.iter().map(|(key, _)| key).collect();
            if found != names {
                let list = |keys: &[&String]| match keys.len() {
                    0 => "none".to_owned(),
                    _ => keys
                        .iter()
                        .map(|key| key.as_str())
                        .collect::<Vec<_>>()
                        .join(", "),
                };
                let message = format!(
                    "the path has the keys {} where the first file has {}",
                    list(&found),
                    list(&names)
                );
                return Err(Error::schema(message)
                    .file(file.display().to_string())
                    .hint("give every file the same `key=value` folders"));
            }
        }
        if let Some(twice) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            let message = format!("the key `{}` stands twice in the path", names[twice]);
            return Err(Error::schema(message).column(names[twice]));
        }
        let field = |(at, name): (usize, &&String)| {
            let mut guess = TypeGuess::default();
            let values = pairs.iter().filter_map(|pairs| pairs.get(at)?.1.as_ref());
            values.for_each(|value| guess.observe(value));
            Arc::new(Field::new(name.as_str(), guess.data_type_of_parts(), true))
        };
        Ok(Partitions {
            fields: names.iter().enumerate().map(field).collect(),
            values: pairs
                .into_iter()
                .map(|pairs| pairs.into_iter().map(|(_, value)| value).collect())
                .collect(),
        })
    }

    /// The columns.
    pub(super) fn fields(&self) -> &[Arc<Field>] {
        &self.fields
    }

    /// Place of the key `name`.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name() == name)
    }

    /// What file number `file` has under key number `key`, as an array of one.
    pub(super) fn value(&self, file: usize, key: usize) -> Result<ArrayRef> {
        let field = self
            .fields
            .get(key)
            .ok_or_else(|| Error::internal("no such key"))?;
        let mut column = ColumnBuilder::new(field.data_type().clone());
        let values = self.values.get(file);
        match values.and_then(|values| values.get(key)?.as_deref()) {
            None => column.push(Cell::Null, "")?,
            Some(text) => {
                let kind = FieldKind::new(field.data_type(), None)?;
                let cell = kind.parse(text).map_err(|misfit| {
                    Error::schema(format!("`{text}` {}", misfit.reason)).column(field.name())
                })?;
                column.push(cell, text)?;
            }
        }
        column.finish()
    }
}

/// The only value of `value`, `rows` times; a text is kept once.
pub(super) fn repeat(value: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    Ok(take(
        value.as_ref(),
        &UInt32Array::from(vec![0; rows]),
        None,
    )?)
}

/// Keys and values in the folders of `path`.
fn keys(path: &Path) -> Vec<(String, Option<String>)> {
    let folders = path.parent().into_iter().flat_map(Path::components);
    let pair = |component: Component<'_>| {
        let Component::Normal(name) = component else {
            return None;
        };
        let name = name.to_string_lossy();
        let (key, value) = name.split_once('=')?;
        let value = match value {
            "" | NULL_NAME => None,
            value => Some(unescape(value)),
        };
        (!key.is_empty()).then(|| (unescape(key), value))
    };
    folders.filter_map(pair).collect()
}

/// `text` with `%XX` resolved; what is no such escape stays.
fn unescape(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = match (first, after) {
            (b'%', [high, low, ..]) => hexadecimal(*high).zip(hexadecimal(*low)),
            _ => None,
        };
        match code {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn hexadecimal(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_unescaped() {
        let path = Path::new(
            "/a=/data/day=2024-05-01/name=x%20y%2Fz%zz/n=__HIVE_DEFAULT_PARTITION__/f=1.csv",
        );
        let owned = |text: &str| Some(text.to_owned());
        let expected = [
            ("a", None),
            ("day", owned("2024-05-01")),
            ("name", owned("x y/z%zz")),
            ("n", None),
        ];
        assert_eq!(
            keys(path),
            expected.map(|(key, value)| (key.to_owned(), value))
        );
    }
}
