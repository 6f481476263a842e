//! Formats of times: texts and the specifiers of `strftime` between them.

use datafusion_common::{Result, ScalarValue, exec_err};

/// A piece of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text as it is.
    Text(char),
    /// A specifier, and whether zeros fill its place.
    Field(char, bool),
}

/// All specifiers, with those that stand for others behind them.
const FIELDS: &str = "aAwudbBmyYHIpMSfgnzZjUWVG";
/// Those that may be written without zeros before them.
const BARE: &str = "dmyHIMSj";

/// The pieces of `format`.
///
/// # Errors
/// For specifiers that there are not.
pub(super) fn pieces(format: &str) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = format.chars();
    while let Some(next) = rest.next() {
        if next != '%' {
            pieces.push(Piece::Text(next));
            continue;
        }
        match rest.next() {
            Some('%') => pieces.push(Piece::Text('%')),
            Some('h') => pieces.push(Piece::Field('b', true)),
            Some('c') => pieces.extend(self::pieces("%Y-%m-%d %H:%M:%S")?),
            Some('x') => pieces.extend(self::pieces("%Y-%m-%d")?),
            Some('X') => pieces.extend(self::pieces("%H:%M:%S")?),
            Some('-') => match rest.next() {
                Some(field) if BARE.contains(field) => pieces.push(Piece::Field(field, false)),
                other => return unknown("%-", other),
            },
            Some(field) if FIELDS.contains(field) => pieces.push(Piece::Field(field, true)),
            other => return unknown("%", other),
        }
    }
    Ok(pieces)
}

fn unknown(mark: &str, field: Option<char>) -> Result<Vec<Piece>> {
    let field = field.map_or(String::new(), String::from);
    exec_err!(
        "`{mark}{field}` is no part of a format of times; `%%` is a percent sign, and \
         %Y %m %d %H %M %S %f %b %a %j %p %I %y are some that there are"
    )
}

/// The text of a format that is a constant; `None` for a null.
pub(super) fn constant<'v>(
    function: &str,
    format: Option<&'v ScalarValue>,
) -> Result<Option<&'v str>> {
    match format {
        Some(format) if format.is_null() => Ok(None),
        Some(format) => Ok(format.try_as_str().flatten()),
        None => exec_err!("the format of {function} must be a constant"),
    }
}
