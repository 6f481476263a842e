//! What to read: keys in the order in which the first rows name them, and their types.
//!
//! ```text
//! objects   -> their keys, joined by dots; one that is always empty says no more than null does
//! all true or false, all whole, all numbers, all dates, all times   -> that type
//! texts, arrays, mixtures, objects here and other values there      -> text, JSON as it stands
//! ```

use std::collections::{HashMap, HashSet, VecDeque};

use arrow_schema::{DataType, Field};
use tersecades_columnar::error::{Error, Result};

use super::record::Record;
use super::scan::{Leaf, Scan, Visit, walk};
use crate::source::csv::CsvOptions;
use crate::source::csv::inference::TypeGuess;
use crate::source::text_type;

/// What the first rows say about the keys.
#[derive(Default)]
pub(super) struct Survey {
    order: Vec<String>,
    keys: HashMap<String, KeyGuess>,
    /// The first row that is no JSON object: its line, and what is wrong with it.
    bad: Option<(u64, String)>,
}

/// What a key has held so far.
#[derive(Default)]
struct KeyGuess {
    bare: Option<TypeGuess>,
    text: Option<TypeGuess>,
    has_json: bool,
    has_object: bool,
}

impl KeyGuess {
    fn has_value(&self) -> bool {
        self.bare.is_some() || self.text.is_some() || self.has_json
    }

    fn data_type(&self) -> DataType {
        match (&self.bare, &self.text) {
            _ if self.has_json || self.has_object => text_type(),
            (Some(bare), None) => bare.data_type(),
            // A number in quotes is a name, as a postal code is.
            (None, Some(text)) => match text.data_type() {
                time @ (DataType::Date32 | DataType::Timestamp(_, _)) => time,
                _ => text_type(),
            },
            _ => text_type(),
        }
    }
}

impl Survey {
    /// What `sample` says; rows that are no JSON objects say nothing.
    pub(super) fn new(sample: &VecDeque<Record>) -> Self {
        let (mut survey, mut path) = (Survey::default(), String::new());
        for record in sample {
            let walked = match std::str::from_utf8(&record.text) {
                Ok(text) => walk(text, &mut path, &mut survey),
                Err(_) => Err("is not UTF-8".to_owned()),
            };
            if let (Err(reason), None) = (walked, &survey.bad) {
                // It is reported when its turn comes, unless nothing says which columns there are.
                survey.bad = Some((record.line, reason));
            }
        }
        survey
    }

    fn key(&mut self, path: &str) -> &mut KeyGuess {
        if !self.keys.contains_key(path) {
            self.order.push(path.to_owned());
        }
        self.keys.entry(path.to_owned()).or_default()
    }

    /// The columns: those found, with the types that `options` fix, and those that only they name.
    ///
    /// # Errors
    /// `InvalidArgument` for wrong timestamp patterns and time zones, `SchemaMismatch` without any
    /// column.
    pub(super) fn columns(&self, options: &CsvOptions) -> Result<Vec<Field>> {
        let (mut fields, mut names) = (Vec::new(), HashSet::new());
        let mixed = self.order.iter().filter(|name| {
            let guess = self.keys.get(*name);
            guess.is_some_and(|it| it.has_object && it.has_value())
        });
        let mixed: Vec<&String> = mixed.collect();
        let mut sorted: Vec<&String> = self.order.iter().collect();
        sorted.sort_unstable();
        for name in self.order.iter().chain(given(options)) {
            let fixed = options.type_of(name)?;
            let guess = self.keys.get(name);
            let mut typed = options.types.iter().map(|(name, _)| name);
            let is_inside = mixed.iter().any(|outer| lies_in(name, outer))
                || fixed.is_none() && typed.any(|outer| lies_in(name, outer));
            let is_apart = |it: &KeyGuess| {
                it.has_object && holds_any(name, &sorted) || is_taken_apart(name, options)
            };
            let is_column =
                fixed.is_some() || guess.is_some_and(|it| it.has_value() || !is_apart(it));
            if is_inside || !is_column || !names.insert(name.as_str()) {
                continue;
            }
            let guessed = guess.map_or_else(text_type, KeyGuess::data_type);
            fields.push(Field::new(name, fixed.unwrap_or(guessed), true));
        }
        if !fields.is_empty() {
            return Ok(fields);
        }
        let none = "there is no first row to take the columns from";
        Err(match &self.bad {
            Some((line, reason)) => Error::schema(format!("{none}: the row {reason}"))
                .row(*line)
                .hint("each row is a JSON object; give column types to pass over others"),
            None => Error::schema(none).hint("the file is empty; give column types"),
        })
    }
}

/// Names of the columns that `options` name.
fn given(options: &CsvOptions) -> impl Iterator<Item = &String> {
    let typed = options.types.iter().map(|(name, _)| name);
    typed.chain(options.timestamp_formats.iter().map(|(name, _)| name))
}

/// Whether `options` name what lies in `name`.
fn is_taken_apart(name: &str, options: &CsvOptions) -> bool {
    given(options).any(|given| lies_in(given, name))
}

/// Whether `name` is that of a value in the object `outer`.
fn lies_in(name: &str, outer: &str) -> bool {
    let inside = name.strip_prefix(outer);
    inside.is_some_and(|inside| inside.starts_with('.'))
}

/// Whether any of the `sorted` names lies in `name`.
fn holds_any(name: &str, sorted: &[&String]) -> bool {
    let start = format!("{name}.");
    let first = sorted.partition_point(|it| **it < start);
    sorted.get(first).is_some_and(|it| it.starts_with(&start))
}

impl<'a> Visit<'a> for Survey {
    fn is_whole(&self, _path: &str) -> bool {
        false
    }

    fn leaf(&mut self, path: &str, leaf: Leaf<'a>) -> Scan<()> {
        let key = self.key(path);
        match leaf {
            Leaf::Null => {}
            Leaf::Bare(text) => key.bare.get_or_insert_default().observe(text),
            Leaf::Text(text) => key.text.get_or_insert_default().observe(&text),
            Leaf::Json(_) => key.has_json = true,
        }
        Ok(())
    }

    fn object(&mut self, path: &str) -> Scan<()> {
        self.key(path).has_object = true;
        Ok(())
    }
}
