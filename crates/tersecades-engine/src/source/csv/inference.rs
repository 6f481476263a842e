//! The type of a column without one, from some of its fields.

use arrow_schema::{DataType, TimeUnit};

use crate::source::text_type;

use super::field::{FieldKind, parse_bool};
use super::timestamp::{Moment, parse_iso};

/// Which types the fields of a column seen so far would all fit.
#[derive(Debug, Clone)]
pub struct TypeGuess {
    empty: bool,
    bool: bool,
    int: bool,
    float: bool,
    /// Whether some number would lose zeros before it.
    padded: bool,
    date: bool,
    local_time: bool,
    zoned_time: bool,
    nanoseconds: bool,
    /// Whether all moments lie in the three centuries around 1970 that nanoseconds reach.
    near: bool,
}

impl Default for TypeGuess {
    fn default() -> Self {
        TypeGuess {
            empty: true,
            bool: true,
            int: true,
            float: true,
            padded: false,
            date: true,
            local_time: true,
            zoned_time: true,
            nanoseconds: false,
            near: true,
        }
    }
}

impl TypeGuess {
    /// Takes one more field, which is no null string, into account.
    pub fn observe(&mut self, text: &str) {
        let text = text.trim_ascii();
        self.empty = false;
        self.bool = self.bool && parse_bool(text).is_some();
        self.padded = self.padded || is_padded(text);
        self.int = self.int && text.parse::<i64>().is_ok();
        self.float = self.float && parse_guessed_float(text);
        if !(self.date || self.local_time || self.zoned_time) {
            return;
        }
        let moment = parse_iso(text);
        let is = |wanted: fn(&Moment) -> bool| moment.as_ref().is_some_and(wanted);
        self.date = self.date && is(|moment| moment.date_only);
        self.local_time = self.local_time && is(|moment| !moment.zoned);
        self.zoned_time = self.zoned_time && is(|moment| moment.zoned);
        self.nanoseconds = self.nanoseconds || is(|moment| moment.nanoseconds % 1_000 != 0);
        self.near = self.near && is(|moment| moment.scale(TimeUnit::Nanosecond).is_some());
    }

    /// The narrowest type that fits; text for a column without a value, and for one with whole
    /// numbers such as `007`, which are names.
    pub fn data_type(&self) -> DataType {
        match self.data_type_of_parts() {
            DataType::Int64 | DataType::Float64 if self.padded => text_type(),
            found => found,
        }
    }

    /// As [`TypeGuess::data_type`], where zeros before a number only give all the same width.
    pub fn data_type_of_parts(&self) -> DataType {
        let unit = match self.nanoseconds {
            true => TimeUnit::Nanosecond,
            false => TimeUnit::Microsecond,
        };
        match self {
            guess if guess.empty => text_type(),
            guess if guess.bool => DataType::Boolean,
            guess if guess.int => DataType::Int64,
            guess if guess.float => DataType::Float64,
            guess if guess.date => DataType::Date32,
            guess if guess.nanoseconds && !guess.near => text_type(),
            guess if guess.local_time => DataType::Timestamp(unit, None),
            guess if guess.zoned_time => DataType::Timestamp(unit, Some("UTC".into())),
            _ => text_type(),
        }
    }
}

/// Whether `text` is digits, the first of several a zero.
fn is_padded(text: &str) -> bool {
    let text = text.as_bytes();
    text.len() > 1 && text[0] == b'0' && text.iter().all(u8::is_ascii_digit)
}

/// Whether `text` is a float; a whole number past 64 bits is an identifier, kept as text.
fn parse_guessed_float(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    let whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    FieldKind::Float64.parse(text).is_ok() && (!whole || text.parse::<i64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(texts: &[&str]) -> DataType {
        let mut guess = TypeGuess::default();
        texts.iter().for_each(|text| guess.observe(text));
        guess.data_type()
    }

    #[test]
    fn types_are_guessed() {
        let timestamp = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
        for (texts, expected) in [
            (vec![], text_type()),
            (vec!["true", "False"], DataType::Boolean),
            (vec!["1", " -2 ", "+3"], DataType::Int64),
            (vec!["1", "2.5", "1e3"], DataType::Float64),
            (vec!["0", "-07", "+08", "00.5"], DataType::Float64),
            (vec!["1", "007"], text_type()),
            (vec!["00", "1.5"], text_type()),
            (vec!["1", "true"], text_type()),
            (vec!["2013-01-01"], DataType::Date32),
            (
                vec!["2013-01-01", "2013-01-01 10:00"],
                timestamp(TimeUnit::Microsecond, None),
            ),
            (
                vec!["2013-01-01T10:00:00Z"],
                timestamp(TimeUnit::Microsecond, Some("UTC")),
            ),
            (
                vec!["2013-01-01T10:00:00.123456789"],
                timestamp(TimeUnit::Nanosecond, None),
            ),
            (vec!["2013-01-01T10:00Z", "2013-01-01T10:00"], text_type()),
            (
                vec!["2024-01-01T00:00:00.123456789", "9999-12-31T00:00:00"],
                text_type(),
            ),
            (
                vec!["2024-01-01T00:00:00.123456", "9999-12-31"],
                timestamp(TimeUnit::Microsecond, None),
            ),
            (vec!["1.5", "1e400"], text_type()),
            (vec!["1.5", "-inf"], DataType::Float64),
            (vec!["99999999999999999999"], text_type()),
            (vec!["1", "99999999999999999999"], text_type()),
            (vec!["10.0.0.1"], text_type()),
        ] {
            assert_eq!(guess(&texts), expected, "{texts:?}");
        }
    }
}
