//! `strftime(t, format)`: times as texts of a format.

use std::fmt::{Result as Written, Write};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_schema::DataType;
use chrono::{Datelike, NaiveDate};
use datafusion_common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::calendar::{day_name, month_name};
use super::format::{Piece, constant, pieces};
use super::moment::{DAY, Moment, SECOND, Times, date_of};
use super::{time_type, udf, zone_of};

const NAME: &str = "strftime";

#[derive(Debug, PartialEq, Eq, Hash)]
struct Strftime(Signature);

pub(super) fn function() -> ScalarUDF {
    udf(Strftime(Signature::user_defined(Volatility::Immutable)))
}

impl ScalarUDFImpl for Strftime {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [first, second] = given else {
            return plan_err!("{NAME} takes 2 arguments, got {}", given.len());
        };
        match first.is_string() && !second.is_string() && !second.is_null() {
            true => Ok(vec![DataType::Utf8, time_type(NAME, second)?]),
            false => Ok(vec![time_type(NAME, first)?, DataType::Utf8]),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [first, second] = arguments.args.as_slice() else {
            return exec_err!("{NAME} takes 2 arguments");
        };
        let (times, format) = match first.data_type() {
            DataType::Utf8 => (second, first),
            _ => (first, second),
        };
        let rows = arguments.number_rows;
        let format = match format {
            ColumnarValue::Scalar(format) => constant(NAME, Some(format))?,
            ColumnarValue::Array(_) => constant(NAME, None)?,
        };
        let Some(format) = format else {
            let nulls = arrow_array::new_null_array(&DataType::Utf8, rows);
            return Ok(ColumnarValue::Array(nulls));
        };
        let pieces = pieces(format)?;
        let times = times.to_array(rows)?;
        let zone = zone_of(times.data_type()).map_or("", |zone| zone.as_ref());
        let (moments, mut texts) = (Times::of(&times)?, StringBuilder::new());
        for moment in moments.iter() {
            let dated = moment.and_then(|moment| Some((moment, date_of(moment.local)?)));
            match dated {
                Some((moment, date)) => {
                    for piece in &pieces {
                        write_piece(&mut texts, piece, (moment, date), zone)
                            .map_err(|_| exec_datafusion_err!("{NAME} wrote no text"))?;
                    }
                    texts.append_value("");
                }
                None => texts.append_null(),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(texts.finish())))
    }
}

fn write_piece(
    out: &mut StringBuilder,
    piece: &Piece,
    (moment, date): (Moment, NaiveDate),
    zone: &str,
) -> Written {
    let (field, padded) = match piece {
        Piece::Text(text) => return out.write_char(*text),
        Piece::Field(field, padded) => (*field, *padded),
    };
    let clock = moment.local.rem_euclid(DAY);
    let (second, fraction) = (clock / SECOND, clock % SECOND);
    let hour = second / 3_600;
    let number = match field {
        'a' => return out.write_str(&day_name(date)[..3]),
        'A' => return out.write_str(day_name(date)),
        'b' => return out.write_str(&month_name(date)[..3]),
        'B' => return out.write_str(month_name(date)),
        'p' => return out.write_str(if hour < 12 { "AM" } else { "PM" }),
        'Y' => return write_year(out, date.year()),
        'G' => return write_year(out, date.iso_week().year()),
        'w' => return write!(out, "{}", date.weekday().num_days_from_sunday()),
        'u' => return write!(out, "{}", date.weekday().number_from_monday()),
        'n' => return write!(out, "{fraction:09}"),
        'f' => return write!(out, "{:06}", fraction / 1_000),
        'g' => return write!(out, "{:03}", fraction / 1_000_000),
        'Z' => return out.write_str(zone),
        'z' => return write_offset(out, (moment.local - moment.instant) / SECOND),
        'd' => date.day().into(),
        'm' => date.month().into(),
        'y' => i128::from(date.year().unsigned_abs() % 100),
        'H' => hour,
        'I' => (hour + 11) % 12 + 1,
        'M' => second / 60 % 60,
        'S' => second % 60,
        'j' => date.ordinal().into(),
        'U' => week_of_year(date, date.weekday().num_days_from_sunday()),
        'W' => week_of_year(date, date.weekday().num_days_from_monday()),
        _ => date.iso_week().week().into(),
    };
    match (padded, field) {
        (false, _) => write!(out, "{number}"),
        (true, 'j') => write!(out, "{number:03}"),
        (true, _) => write!(out, "{number:02}"),
    }
}

/// The number of the week of the year, whose first one begins with the first day of its kind.
fn week_of_year(date: NaiveDate, day_of_week: u32) -> i128 {
    i128::from((date.ordinal0() + 7 - day_of_week) / 7)
}

fn write_year(out: &mut StringBuilder, year: i32) -> Written {
    match year < 0 {
        true => write!(out, "{year}"),
        false => write!(out, "{year:04}"),
    }
}

/// `+02`, and minutes where there are some.
fn write_offset(out: &mut StringBuilder, seconds: i128) -> Written {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    write!(out, "{sign}{:02}", minutes / 60)?;
    match minutes % 60 {
        0 => Ok(()),
        rest => write!(out, ":{rest:02}"),
    }
}
