//! Columns as people write them: `k BIGINT, "a name" TIMESTAMP, v DOUBLE NOT NULL`.

use arrow_array::timezone::Tz;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;
use tersecades_columnar::type_name::type_of_name;

/// Names of types without parameters.
const TYPES: &[(&str, DataType)] = &[
    ("BOOLEAN", DataType::Boolean),
    ("BOOL", DataType::Boolean),
    ("TINYINT", DataType::Int8),
    ("SMALLINT", DataType::Int16),
    ("INTEGER", DataType::Int32),
    ("INT", DataType::Int32),
    ("BIGINT", DataType::Int64),
    ("UTINYINT", DataType::UInt8),
    ("USMALLINT", DataType::UInt16),
    ("UINTEGER", DataType::UInt32),
    ("UBIGINT", DataType::UInt64),
    ("REAL", DataType::Float32),
    ("FLOAT", DataType::Float64),
    ("DOUBLE", DataType::Float64),
    ("DOUBLE PRECISION", DataType::Float64),
    ("DATE", DataType::Date32),
    ("TEXT", DataType::Utf8),
    ("VARCHAR", DataType::Utf8),
    ("STRING", DataType::Utf8),
    ("BLOB", DataType::Binary),
    ("BYTEA", DataType::Binary),
    ("BINARY", DataType::Binary),
    ("VARBINARY", DataType::Binary),
];

/// Names of types with parameters, for hints.
const WITH_PARAMETERS: [&str; 3] = ["TIMESTAMP", "TIMESTAMPTZ", "DECIMAL(18, 2)"];

/// The columns that `text` names.
///
/// # Errors
/// `InvalidArgument` for a type that is not known, naming the nearest, and for a column without a
/// name.
///
/// # Examples
/// ```
/// use arrow_schema::DataType;
/// let text = r#"k BIGINT, price DECIMAL(9, 2) NOT NULL, "the ""note"", if any" TEXT"#;
/// let fields = tersecades_store::parse_fields(text).unwrap();
/// assert_eq!(fields.field(1).data_type(), &DataType::Decimal128(9, 2));
/// assert!(!fields.field(1).is_nullable());
/// assert_eq!(fields.field(2).name(), "the \"note\", if any");
/// ```
pub fn parse_fields(text: &str) -> Result<Schema> {
    let mut fields = Vec::new();
    for column in split_list(text) {
        let (name, rest) = take_name(column, char::is_whitespace)?;
        if rest.trim().is_empty() {
            return Err(wrong(&format!("`{column}` is no column")));
        }
        if name.is_empty() {
            return Err(wrong(&format!("a column without a name: `{column}`")));
        }
        let (type_name, nullable) = match without_suffix(rest.trim(), "NOT NULL") {
            Some(type_name) => (type_name.trim(), false),
            None => (rest.trim(), true),
        };
        let data_type = parse_type(type_name).map_err(|error| error.column(name.as_str()))?;
        fields.push(Field::new(name, data_type, nullable));
    }
    Ok(Schema::new(fields))
}

/// `text` before `suffix`, which stands there in any letters.
fn without_suffix<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let (before, end) = text.split_at_checked(text.len().checked_sub(suffix.len())?)?;
    end.eq_ignore_ascii_case(suffix).then_some(before)
}

fn wrong(message: &str) -> Error {
    Error::invalid(message).hint("write `name TYPE [NOT NULL], …`, as `k BIGINT, ts TIMESTAMP`")
}

/// The names that `text` lists: `k, "a name"`.
///
/// # Errors
/// `InvalidArgument` for quotes that are not closed, and what follows them.
pub fn parse_names(text: &str) -> Result<Vec<String>> {
    let name = |part| match take_name(part, |_| false)? {
        (name, "") => Ok(name),
        (_, rest) => Err(wrong(&format!("`{rest}` follows the name of a column"))),
    };
    split_list(text).into_iter().map(name).collect()
}

/// Parts of a list between commas that are not inside parentheses, brackets or quotes, trimmed.
pub fn split_list(text: &str) -> Vec<&str> {
    let (mut depth, mut is_quoted) = (0usize, false);
    let parts = text.split(|letter| {
        match letter {
            '"' => is_quoted = !is_quoted,
            '(' | '[' if !is_quoted => depth += 1,
            ')' | ']' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0 && !is_quoted
    });
    parts.map(str::trim).collect()
}

/// The name at the start of `text` and what follows it: in double quotes, which are doubled inside,
/// or up to what `ends` it.
///
/// # Errors
/// `InvalidArgument` for quotes that are not closed.
pub fn take_name(text: &str, ends: impl Fn(char) -> bool) -> Result<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find(ends).unwrap_or(text.len());
        return Ok((text[..end].to_owned(), &text[end..]));
    };
    let mut name = String::new();
    loop {
        let (part, behind) = rest
            .split_once('"')
            .ok_or_else(|| wrong(&format!("the quote is not closed: `{text}`")))?;
        name.push_str(part);
        match behind.strip_prefix('"') {
            Some(behind) => {
                name.push('"');
                rest = behind;
            }
            None => return Ok((name, behind)),
        }
    }
}

/// The type that `text` names: one of SQL in any letters, or one as `inspect` prints it.
///
/// # Errors
/// `InvalidArgument` for one that is not known, naming the nearest.
fn parse_type(text: &str) -> Result<DataType> {
    if let Some(data_type) = printed(text) {
        return data_type;
    }
    let (name, parameters) = take_parameters(&text.to_uppercase())?;
    let Some(parameters) = parameters else {
        return without_parameters(&name);
    };
    match (name.as_str(), parameters.as_slice()) {
        ("TIMESTAMP" | "TIMESTAMP WITHOUT TIME ZONE", [digits]) => {
            Ok(DataType::Timestamp(unit(*digits)?, None))
        }
        ("TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE", [digits]) => {
            Ok(DataType::Timestamp(unit(*digits)?, Some("UTC".into())))
        }
        ("DECIMAL" | "NUMERIC", [precision]) => decimal(*precision, 0),
        ("DECIMAL" | "NUMERIC", [precision, scale]) => decimal(*precision, *scale),
        ("VARCHAR", [_]) => Ok(DataType::Utf8),
        _ => Err(match without_parameters(&name) {
            Ok(_) => unread(text).hint(format!("write {name} without them")),
            Err(unknown) => unknown,
        }),
    }
}

fn unread(text: &str) -> Error {
    Error::invalid(format!("the parameters of the type `{text}` are not known"))
}

/// A type as `inspect` prints it; `None` where the text is one of SQL: its `INT8` has 8 bytes.
fn printed(text: &str) -> Option<Result<DataType>> {
    if text == text.to_lowercase() && !text.contains('[') {
        return None;
    }
    let data_type = type_of_name(text)?;
    match &data_type {
        DataType::Timestamp(_, Some(zone)) if zone.parse::<Tz>().is_err() => {
            let error = Error::invalid(format!("unknown time zone `{zone}`"));
            Some(Err(error.hint(
                "use a name of the IANA database, as Europe/Berlin, or an offset, as +02:00",
            )))
        }
        _ => Some(Ok(data_type)),
    }
}

/// The words of a type around its parameters, and the parameters if it has any:
/// `TIMESTAMP(3) WITH TIME ZONE`.
fn take_parameters(text: &str) -> Result<(String, Option<Vec<i64>>)> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((before, rest)) = text.split_once('(') else {
        return Ok((words(text), None));
    };
    let (inside, behind) = rest.split_once(')').ok_or_else(|| {
        Error::invalid(format!("the parenthesis is not closed: `{text}`"))
            .hint("parameters stand in parentheses, as DECIMAL(18, 2)")
    })?;
    let numbers = inside.split(',').map(|number| number.trim().parse().ok());
    let numbers: Option<Vec<i64>> = numbers.collect();
    let numbers = numbers.ok_or_else(|| {
        unread(text).hint(
            "write numbers, as TIMESTAMP(3) and DECIMAL(18, 2), or types as `inspect` prints \
             them, as Timestamp(ms, UTC)",
        )
    })?;
    Ok((words(&format!("{before} {behind}")), Some(numbers)))
}

/// The type of this name, which has no parameters.
fn without_parameters(name: &str) -> Result<DataType> {
    match name {
        "TIMESTAMP" | "TIMESTAMP WITHOUT TIME ZONE" => {
            return Ok(DataType::Timestamp(TimeUnit::Microsecond, None));
        }
        "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => {
            let utc = Some("UTC".into());
            return Ok(DataType::Timestamp(TimeUnit::Microsecond, utc));
        }
        "DECIMAL" | "NUMERIC" => {
            return Err(Error::invalid("a decimal names its digits")
                .hint("DECIMAL(18, 2) has 18 digits, 2 of them behind the point"));
        }
        _ => {}
    }
    if let Some((_, data_type)) = TYPES.iter().find(|(known, _)| *known == name) {
        return Ok(data_type.clone());
    }
    let known = TYPES.iter().map(|(name, _)| *name).chain(WITH_PARAMETERS);
    let known: Vec<&str> = known.collect();
    let error = Error::invalid(format!("no type is named `{name}`"));
    Err(match nearest(name, &known) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint(format!("the types are {}", known.join(", "))),
    })
}

fn unit(digits: i64) -> Result<TimeUnit> {
    match digits {
        0 => Ok(TimeUnit::Second),
        3 => Ok(TimeUnit::Millisecond),
        6 => Ok(TimeUnit::Microsecond),
        9 => Ok(TimeUnit::Nanosecond),
        _ => Err(Error::invalid(
            "a timestamp has 0, 3, 6 or 9 digits of seconds",
        )),
    }
}

fn decimal(precision: i64, scale: i64) -> Result<DataType> {
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale))
            if scale >= 0 && i64::from(scale) <= i64::from(precision) =>
        {
            Ok(DataType::Decimal128(precision, scale))
        }
        _ => Err(Error::invalid(
            "a decimal has 1 to 38 digits and no more decimals than digits",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_as_people_write_them() {
        let fields =
            parse_fields("k bigint, \"ts\" TIMESTAMP(3) not null,v double precision").unwrap();
        let types: Vec<&DataType> = fields.fields().iter().map(|f| f.data_type()).collect();
        let millisecond = DataType::Timestamp(TimeUnit::Millisecond, None);
        assert_eq!(types, [&DataType::Int64, &millisecond, &DataType::Float64]);
        assert!(
            fields
                .field_with_name("ts")
                .is_ok_and(|ts| !ts.is_nullable())
        );
        for bad in [
            "",
            "k",
            "k BIGNT",
            "k DECIMAL(50)",
            "ts TIMESTAMP(4)",
            "\"\" INT",
            "k INT,",
            "k DECIMAL",
            "\"k INT",
            "\"k\"",
            " INT",
        ] {
            let error = parse_fields(bad).unwrap_err();
            assert!(error.hint_text().is_some() || bad.contains('('), "{bad}");
        }
        let error = parse_fields("k BIGNT").unwrap_err();
        assert!(error.hint_text().unwrap().contains("BIGINT"));
    }

    #[test]
    fn types_are_read_whole_or_refused() {
        let time = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
        let (millisecond, utc) = (TimeUnit::Millisecond, Some("UTC"));
        let berlin = time(millisecond, Some("Europe/Berlin"));
        for (text, expected) in [
            ("timestamp(3) with  time zone", time(millisecond, utc)),
            ("TIMESTAMP WITH TIME ZONE", time(TimeUnit::Microsecond, utc)),
            ("TIMESTAMPTZ (9)", time(TimeUnit::Nanosecond, utc)),
            (
                "TIMESTAMP(0) WITHOUT TIME ZONE",
                time(TimeUnit::Second, None),
            ),
            ("Timestamp(ms)", time(millisecond, None)),
            ("Timestamp(ms, Europe/Berlin)", berlin.clone()),
            ("Timestamp(ms, \"Europe/Berlin\") NOT NULL", berlin.clone()),
            ("timestamp[ms, tz=Europe/Berlin]", berlin.clone()),
            ("Decimal128(9, 2)", DataType::Decimal128(9, 2)),
            ("double  precision", DataType::Float64),
        ] {
            let fields = parse_fields(&format!("ts {text}")).unwrap();
            assert_eq!(fields.field(0).data_type(), &expected, "{text}");
        }
        for bad in [
            "TIMESTAMP(3) WITH ZONE",
            "TIMESTAMP(3",
            "TIMESTAMP()",
            "TIMESTAMP(ms)",
            "TIMESTAMP(3) x",
            "TIMESTAMP(3)) WITH TIME ZONE",
            "TIMESTAMP(3, 6)",
            "Timestamp(ms, Europe/Berlim)",
            "Timestamp(ms) x",
            "DECIMAL(9, 2, 1)",
            "DECIMAL(9, x)",
            "INT(5)",
            "INT8",
            "BIGINT NULL",
        ] {
            let error = parse_fields(&format!("ts {bad}")).unwrap_err();
            assert!(error.hint_text().is_some(), "{bad}: {error}");
        }
    }

    #[test]
    fn names_in_quotes_hold_anything() {
        let text =
            r#""a b" INT, "x,y (z" DECIMAL(9, 2), "say ""hi""" BLOB NOT NULL,it"s varbinary"#;
        let fields = parse_fields(text).unwrap();
        let names: Vec<&str> = fields.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, ["a b", "x,y (z", "say \"hi\"", "it\"s"]);
        let types: Vec<&DataType> = fields.fields().iter().map(|f| f.data_type()).collect();
        let (decimal, bytes) = (&DataType::Decimal128(9, 2), &DataType::Binary);
        assert_eq!(types, [&DataType::Int32, decimal, bytes, bytes]);
        let names = parse_names(r#"k, "a,b","say ""hi""""#).unwrap();
        assert_eq!(names, ["k", "a,b", "say \"hi\""]);
        assert!(parse_names(r#""a" b"#).is_err());
    }
}
