//! `strptime(text, format)` and `try_strptime`: times from texts of a format.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use chrono::NaiveDate;
use datafusion_common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::calendar::{DAYS, MONTHS};
use super::format::{Piece, constant, pieces};
use super::moment::{SECOND, begin_of, nanoseconds};
use super::udf;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Strptime {
    name: &'static str,
    /// Whether what is no time of the format is null.
    tries: bool,
    signature: Signature,
}

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named = [("strptime", false), ("try_strptime", true)];
    named.into_iter().map(|(name, tries)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        udf(Strptime {
            name,
            tries,
            signature,
        })
    })
}

impl ScalarUDFImpl for Strptime {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let is_text = |given: &DataType| given.is_string() || given.is_null();
        match given {
            [text, format] if is_text(text) && is_text(format) => Ok(vec![DataType::Utf8; 2]),
            _ => plan_err!("{} takes a text and a format", self.name),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        plan_err!("{} needs its format to know its type", self.name)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let format = arguments.scalar_arguments.get(1).copied().flatten();
        let format = constant(self.name, format)?.unwrap_or_default();
        let pieces = pieces(format)?;
        check(&pieces)?;
        let has = |wanted: char| pieces.iter().any(|piece| is_field(piece, wanted));
        let unit = match has('n') {
            true => TimeUnit::Nanosecond,
            false => TimeUnit::Microsecond,
        };
        let zone = (has('z') || has('Z')).then(|| "UTC".into());
        let data_type = DataType::Timestamp(unit, zone);
        Ok(Arc::new(Field::new(self.name, data_type, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [texts, ColumnarValue::Scalar(format)] = arguments.args.as_slice() else {
            return exec_err!("{} takes a text and a constant format", self.name);
        };
        let to = arguments.return_field.data_type();
        let texts = texts.to_array(arguments.number_rows)?;
        let times = match constant(self.name, Some(format))? {
            Some(format) => self.times(texts.as_string(), format, to)?,
            None => arrow_array::new_null_array(to, texts.len()),
        };
        Ok(ColumnarValue::Array(times))
    }
}

impl Strptime {
    fn times(&self, texts: &StringArray, format: &str, to: &DataType) -> Result<ArrayRef> {
        let tick = match to {
            DataType::Timestamp(unit, _) => nanoseconds(*unit),
            other => return exec_err!("{} gives times, not {other}", self.name),
        };
        let pieces = pieces(format)?;
        let hint = match pieces.iter().any(|piece| is_field(piece, 'Z')) {
            true => "`%Z` reads UTC, GMT and Z, and `%z` offsets such as +0100",
            false => "try_strptime gives null",
        };
        let ticks = texts.iter().map(|text| {
            let Some(text) = text else { return Ok(None) };
            let time = Reader::time(text, &pieces);
            let time = time.and_then(|time| i64::try_from(time.div_euclid(tick)).ok());
            match (time, self.tries) {
                (None, false) => Err(exec_datafusion_err!(
                    "`{text}` is no time of the format `{format}`; {hint}"
                )),
                (time, _) => Ok(time),
            }
        });
        let ticks: Int64Array = ticks.collect::<Result<_>>()?;
        Ok(arrow_cast::cast(&ticks, to)?)
    }
}

fn is_field(piece: &Piece, wanted: char) -> bool {
    matches!(piece, Piece::Field(field, _) if *field == wanted)
}

/// Refuses what texts are not read by.
fn check(pieces: &[Piece]) -> Result<()> {
    let has = |wanted: char| pieces.iter().any(|piece| is_field(piece, wanted));
    if let Some(field) = "wuUWVG".chars().find(|field| has(*field)) {
        return exec_err!("`%{field}` is written by strftime, and not read by strptime");
    }
    if has('j') && (has('m') || has('d') || has('b') || has('B')) {
        return exec_err!("`%j` is the day of a year, beside which a format has no month or day");
    }
    Ok(())
}

/// What was read of a text, and what is left of it.
struct Reader<'t> {
    rest: &'t str,
    year: i32,
    month: u32,
    day: u32,
    day_of_year: Option<u32>,
    hour: u32,
    is_afternoon: Option<bool>,
    minute: u32,
    second: u32,
    nanosecond: u32,
    seconds_ahead: i64,
}

impl Reader<'_> {
    /// The nanoseconds since 1970 of a text.
    fn time(text: &str, pieces: &[Piece]) -> Option<i128> {
        let mut reader = Reader {
            rest: text.trim_start(),
            year: 1900,
            month: 1,
            day: 1,
            day_of_year: None,
            hour: 0,
            is_afternoon: None,
            minute: 0,
            second: 0,
            nanosecond: 0,
            seconds_ahead: 0,
        };
        for piece in pieces {
            match piece {
                Piece::Text(blank) if blank.is_whitespace() => reader.blanks()?,
                Piece::Text(text) => reader.rest = reader.rest.strip_prefix(*text)?,
                Piece::Field(field, _) => reader.field(*field)?,
            }
        }
        reader.rest.trim().is_empty().then_some(())?;
        reader.nanoseconds()
    }

    fn blanks(&mut self) -> Option<()> {
        let rest = self.rest.trim_start();
        (rest.len() < self.rest.len()).then_some(())?;
        self.rest = rest;
        Some(())
    }

    fn field(&mut self, field: char) -> Option<()> {
        match field {
            'a' => drop(self.name(&DAYS, 3)?),
            'A' => drop(self.name(&DAYS, usize::MAX)?),
            'b' => self.month = self.name(&MONTHS, 3)? + 1,
            'B' => self.month = self.name(&MONTHS, usize::MAX)? + 1,
            'p' => self.is_afternoon = Some(self.name(&["AM", "PM"], 2)? == 1),
            'Y' => self.year = i32::try_from(self.number(4, 0..=9_999)?).ok()?,
            'y' => {
                let year = i32::try_from(self.number(2, 0..=99)?).ok()?;
                self.year = year + if year < 69 { 2_000 } else { 1_900 };
            }
            'm' => self.month = self.number(2, 1..=12)?,
            'd' => self.day = self.number(2, 1..=31)?,
            'j' => self.day_of_year = Some(self.number(3, 1..=366)?),
            'H' => self.hour = self.number(2, 0..=23)?,
            'I' => self.hour = self.number(2, 1..=12)?,
            'M' => self.minute = self.number(2, 0..=59)?,
            'S' => self.second = self.number(2, 0..=59)?,
            'f' => self.nanosecond = self.fraction(6)?,
            'g' => self.nanosecond = self.fraction(3)?,
            'n' => self.nanosecond = self.fraction(9)?,
            'z' => self.offset()?,
            'Z' => drop(self.name(&["UTC", "GMT", "Z"], usize::MAX)?),
            _ => return None,
        }
        Some(())
    }

    /// A number of at most so many digits.
    fn number(&mut self, digits: usize, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        let length = self.rest.bytes().take(digits).take_while(is_digit).count();
        let (number, rest) = self.rest.split_at(length);
        self.rest = rest;
        let number = number.parse().ok()?;
        range.contains(&number).then_some(number)
    }

    /// The nanoseconds of at most so many digits behind the point.
    fn fraction(&mut self, digits: usize) -> Option<u32> {
        let before = self.rest.len();
        let number = self.number(digits, 0..=999_999_999)?;
        let read = u32::try_from(before - self.rest.len()).ok()?;
        number.checked_mul(10u32.checked_pow(9 - read)?)
    }

    /// Which of `names` comes next, of each so many letters.
    fn name(&mut self, names: &[&str], letters: usize) -> Option<u32> {
        let found = names.iter().position(|name| {
            let name = &name[..name.len().min(letters)];
            let next = self.rest.get(..name.len());
            next.is_some_and(|next| next.eq_ignore_ascii_case(name))
        })?;
        self.rest = &self.rest[names[found].len().min(letters)..];
        u32::try_from(found).ok()
    }

    /// `+02`, `-0230`, `+02:30`.
    fn offset(&mut self) -> Option<()> {
        let sign = match self.rest.chars().next()? {
            '+' => 1,
            '-' => -1,
            _ => return None,
        };
        self.rest = &self.rest[1..];
        let before = self.rest.len();
        let hours = self.number(2, 0..=23)?;
        (before - self.rest.len() == 2).then_some(())?;
        let rest = self.rest.strip_prefix(':').unwrap_or(self.rest);
        let has_minutes =
            rest.len() < self.rest.len() || rest.starts_with(|c: char| c.is_ascii_digit());
        let mut minutes = 0;
        if has_minutes {
            self.rest = rest;
            minutes = self.number(2, 0..=59)?;
        }
        self.seconds_ahead = sign * i64::from(hours * 3_600 + minutes * 60);
        Some(())
    }

    fn nanoseconds(&self) -> Option<i128> {
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(self.year, day)?,
            None => NaiveDate::from_ymd_opt(self.year, self.month, self.day)?,
        };
        let hour = match self.is_afternoon {
            None => self.hour,
            Some(afternoon) if (1..=12).contains(&self.hour) => {
                self.hour % 12 + if afternoon { 12 } else { 0 }
            }
            Some(_) => return None,
        };
        let seconds = i64::from(hour * 3_600 + self.minute * 60 + self.second);
        let seconds = i128::from(seconds - self.seconds_ahead);
        Some(begin_of(date) + seconds * SECOND + i128::from(self.nanosecond))
    }
}
