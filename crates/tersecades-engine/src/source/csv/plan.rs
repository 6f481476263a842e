//! What to read: names from the first row, types from options or from the first rows.
//!
//! ```text
//! header -> names (blank ones numbered, repeated ones numbered) -> given types, time patterns
//!        -> for the rest: the narrowest type that every field of the sampled rows fits
//! ```

use std::collections::{HashMap, HashSet, VecDeque};

use arrow_array::timezone::Tz;
use arrow_schema::{DataType, Field, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use super::field::FieldKind;
use super::inference::TypeGuess;
use super::quote::QuoteWalk;
use super::record::{Record, RecordReader};
use super::timestamp::TimePattern;
use super::{CsvOptions, excerpt};
use crate::source::text::{Next, SampleClock};
use crate::window::calendar::unknown_zone;

/// Most memory for the rows that types are inferred from; fewer rows are used beyond it.
const INFER_BYTES_LIMIT: usize = 64 << 20;

/// How to read one column.
pub(super) struct ColumnPlan {
    pub(super) name: String,
    pub(super) position: usize,
    pub(super) kind: FieldKind,
    pub(super) nulls: NullStrings,
    pub(super) trim: bool,
}

/// The texts that mean null in one column.
pub(super) struct NullStrings {
    texts: Vec<String>,
    /// Whether any of them starts with a byte; most values are told apart by that alone.
    starts: [bool; 256],
}

impl NullStrings {
    fn new(texts: Vec<String>) -> Self {
        let mut starts = [false; 256];
        for start in texts.iter().filter_map(|text| text.bytes().next()) {
            starts[usize::from(start)] = true;
        }
        NullStrings { texts, starts }
    }

    /// Whether `text` is one of them.
    pub(super) fn contains(&self, text: &str) -> bool {
        match text.bytes().next() {
            Some(start) if !self.starts[usize::from(start)] => false,
            _ => self.texts.iter().any(|null| null == text),
        }
    }
}

/// Names of the columns from the first record, which is kept as a row if it is no header; of a
/// blank file those whose types are given.
pub(super) fn read_names(
    records: &mut RecordReader,
    sample: &mut VecDeque<Record>,
    delimiter: u8,
    options: &mut CsvOptions,
) -> Result<Vec<String>> {
    let mut first = Record::default();
    let found = loop {
        match records.read(&mut first)? {
            Next::Pause => {}
            found => break found,
        }
    };
    if found == Next::End {
        let given = options.types.iter().map(|(name, _)| name.clone());
        let given: Vec<String> = given.collect();
        return match given.is_empty() {
            false => Ok(given),
            true => Err(
                Error::schema("there is no first row to take the columns from")
                    .hint("the file is empty or blank; give column types"),
            ),
        };
    }
    if let Some(quote) = first.bad_quote {
        let error = Error::schema(quote.reason()).row(quote.line);
        return Err(error.hint("mend it: the first row says which columns there are"));
    }
    let mut quotes = QuoteWalk::new(&first, delimiter);
    let has_blank = |(index, field): (usize, &[u8])| {
        let begins = field.starts_with(b" ") || field.starts_with(b"\t");
        begins && !quotes.is_quoted(index)
    };
    let trim = first.field_count() > 1 && first.fields().enumerate().skip(1).all(has_blank);
    options.trim = options.trim.or(Some(trim));
    let mut names: Vec<String> = Vec::with_capacity(first.field_count());
    let (mut taken, mut copies) = (HashSet::new(), HashMap::new());
    let mut quotes = QuoteWalk::new(&first, delimiter);
    for (index, field) in first.fields().enumerate() {
        let field = match quotes.is_quoted(index) {
            true => field,
            false => field.trim_ascii(),
        };
        let base = match options.header && !field.is_empty() {
            true => name_of(field, index, first.line)?,
            false => format!("column_{}", index + 1),
        };
        let mut name = base.clone();
        while !taken.insert(name.clone()) {
            let copy = copies.entry(base.clone()).or_insert(1);
            *copy += 1;
            name = format!("{base}_{copy}");
        }
        names.push(name);
    }
    if !options.header {
        sample.push_back(first);
    }
    Ok(names)
}

/// The name that the header in `line` gives the column `index`.
fn name_of(field: &[u8], index: usize, line: u64) -> Result<String> {
    let name = std::str::from_utf8(field).map_err(|_| {
        let shown = excerpt(&String::from_utf8_lossy(field));
        let message = format!("the name of column {}, `{shown}`, is not UTF-8", index + 1);
        let error = Error::schema(message).row(line);
        error.hint("convert the file to UTF-8")
    })?;
    Ok(name.to_owned())
}

/// The types that the options fix; `None` where a type is to be inferred.
pub(super) fn plan_types(names: &[String], options: &CsvOptions) -> Result<Vec<Option<DataType>>> {
    let given = options.types.iter().map(|(name, _)| name);
    for name in given.chain(options.timestamp_formats.iter().map(|(name, _)| name)) {
        if !names.contains(name) {
            return Err(Error::invalid(format!("unknown column `{name}`"))
                .column(name)
                .hint(format!("the columns are: {}", names.join(", "))));
        }
    }
    names.iter().map(|name| options.type_of(name)).collect()
}

impl CsvOptions {
    /// The type that is given for the column `name`.
    ///
    /// # Errors
    /// `InvalidArgument` for wrong timestamp patterns and unknown time zones.
    pub(in crate::source) fn type_of(&self, name: &str) -> Result<Option<DataType>> {
        if let Some(data_type) = find(&self.types, name) {
            if let DataType::Timestamp(_, Some(zone)) = data_type
                && zone.parse::<Tz>().is_err()
            {
                return Err(unknown_zone(zone).column(name));
            }
            return Ok(Some(data_type.clone()));
        }
        let Some(pattern) = find(&self.timestamp_formats, name) else {
            return Ok(None);
        };
        let zone = TimePattern::new(pattern)?.zoned.then(|| "UTC".into());
        Ok(Some(DataType::Timestamp(TimeUnit::Microsecond, zone)))
    }
}

fn find<'a, T>(pairs: &'a [(String, T)], name: &str) -> Option<&'a T> {
    pairs
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value)
}

/// Reads the rows that types are inferred from, if any type is missing.
pub(super) fn sample_rows(
    records: &mut RecordReader,
    sample: &mut VecDeque<Record>,
    types: &[Option<DataType>],
    options: &CsvOptions,
) -> Result<()> {
    if types.iter().all(Option::is_some) {
        return Ok(());
    }
    let (mut record, mut size_bytes) = (Record::default(), 0);
    let mut clock = SampleClock::start();
    while sample.len() < options.infer_rows && size_bytes < INFER_BYTES_LIMIT {
        match records.read(&mut record)? {
            Next::Record => {}
            Next::Pause if sample.is_empty() || !clock.is_over() => continue,
            Next::Pause | Next::End => break,
        }
        size_bytes += record.size_bytes();
        sample.push_back(record.compact());
        if sample.len() == 1 {
            clock = SampleClock::start();
        }
    }
    Ok(())
}

/// Fills in the missing types from the sampled rows; ragged rows do not count.
pub(super) fn infer_types(
    types: Vec<Option<DataType>>,
    sample: &VecDeque<Record>,
    options: &CsvOptions,
) -> Vec<DataType> {
    let mut guesses = vec![TypeGuess::default(); types.len()];
    for record in sample
        .iter()
        .filter(|record| record.field_count() == types.len())
    {
        for (guess, field) in guesses.iter_mut().zip(record.fields()) {
            let text = String::from_utf8_lossy(field);
            if !options
                .null_strings
                .iter()
                .any(|null| null == text.trim_ascii())
            {
                guess.observe(&text);
            }
        }
    }
    let choose = |(fixed, guess): (Option<DataType>, TypeGuess)| match fixed {
        Some(data_type) => data_type,
        None => guess.data_type(),
    };
    types.into_iter().zip(guesses).map(choose).collect()
}

/// The fields of the schema, all nullable.
pub(super) fn field_list(names: &[String], types: &[DataType]) -> Vec<Field> {
    let fields = names.iter().zip(types);
    fields
        .map(|(name, data_type)| Field::new(name, data_type.clone(), true))
        .collect()
}

/// How to read the column of `field`, which stands at `position` of each row.
pub(super) fn plan_column(
    position: usize,
    field: &Field,
    options: &CsvOptions,
) -> Result<ColumnPlan> {
    let pattern = find(&options.timestamp_formats, field.name());
    let pattern = pattern
        .map(|pattern| TimePattern::new(pattern))
        .transpose()?;
    let kind =
        FieldKind::new(field.data_type(), pattern).map_err(|error| error.column(field.name()))?;
    let is_value = |null: &&String| kind.has_nan() && null.eq_ignore_ascii_case("nan");
    let nulls = options.null_strings.iter().filter(|null| !is_value(null));
    let nulls = NullStrings::new(nulls.cloned().collect());
    let trim = options.trim.unwrap_or(false) || !matches!(kind, FieldKind::Text);
    Ok(ColumnPlan {
        name: field.name().clone(),
        position,
        kind,
        nulls,
        trim,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn names(header: &str) -> Vec<String> {
        let input = Cursor::new(header.to_owned().into_bytes());
        let mut records = RecordReader::new(Box::new(input), b',');
        let (mut sample, mut options) = (VecDeque::new(), CsvOptions::default());
        read_names(&mut records, &mut sample, b',', &mut options).unwrap()
    }

    #[test]
    fn names_in_quotes_keep_their_blanks_and_others_do_not() {
        assert_eq!(
            names("a, a,\" a\",\"a \" , \"b\"\n"),
            ["a", "a_2", " a", "a ", "\"b\""]
        );
        assert_eq!(
            names("a,a_2,a,,a,a_2\n"),
            ["a", "a_2", "a_3", "column_4", "a_4", "a_2_2"]
        );
    }

    #[test]
    fn many_names_that_are_the_same_take_no_time_for_each_pair() {
        let found = names(&vec!["\"a\""; 200_000].join(","));
        assert_eq!(found[199_999], "a_200000");
    }
}
