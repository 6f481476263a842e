//! `SIMILAR TO`, as a regular expression, and `LIKE` with an escape character of its own.
//!
//! ```text
//! s LIKE 'a!%' ESCAPE '!'     ─▶  s LIKE 'a\%' ESCAPE '\'
//! s SIMILAR TO '(a|b)_%'      ─▶  s ~ '^(?s:(?:a|b)..*)$'
//! s NOT SIMILAR TO '1.[0-9]'  ─▶  s !~ '^(?s:1\.[0-9])$'
//! ```
//! The pattern is of the whole text. `%` is any text and `_` any character; `|`, `*`, `+`, `?`,
//! `{n}`, parentheses and sets in brackets are as in regular expressions, all else is itself, as is
//! what stands behind the character of `ESCAPE`, a backslash where none is said. Letters behind it
//! that name a class of characters do that, as in PostgreSQL: `\d`.

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::str::Chars;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use tersecades_columnar::error::{Error, Result};

use super::check::placed;
use super::using::joined::binary;

/// Writes each `SIMILAR TO` of `query` as a match, and each escaped pattern of `LIKE` with
/// backslashes.
///
/// # Errors
/// `Unsupported` for patterns of `SIMILAR TO` that are computed, `InvalidArgument` for those that
/// are none; both with the place.
pub(crate) fn match_patterns(query: &mut Query) -> Result<()> {
    match query.visit(&mut Patterns) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Patterns;

/// What means something in a regular expression, or in a set of one.
const SPECIAL: &str = r"\.^$|*+?(){}[]&~-";

impl VisitorMut for Patterns {
    type Break = Error;

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Like {
            pattern,
            escape_char: Some(escape),
            ..
        }
        | Expr::ILike {
            pattern,
            escape_char: Some(escape),
            ..
        } = value
        {
            return escape_by_backslash(pattern, escape);
        }
        if let Expr::SimilarTo {
            negated,
            expr,
            pattern,
            escape_char,
        } = value
        {
            let op = match negated {
                true => BinaryOperator::PGRegexNotMatch,
                false => BinaryOperator::PGRegexMatch,
            };
            match regular(pattern, escape_char.as_ref()) {
                Ok(regular) => {
                    let matched = binary((**expr).clone(), op, regular);
                    *value = Expr::Nested(Box::new(matched));
                }
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}

/// The regular expression that stands for `pattern`.
fn regular(pattern: &Expr, escape: Option<&ValueWithSpan>) -> Result<Expr> {
    let text = match pattern {
        Expr::Value(value) => text_of(&value.value),
        _ => None,
    };
    let Some(text) = text else {
        let message = format!(
            "a computed pattern of SIMILAR TO is not supported{}",
            placed(pattern)
        );
        return Err(Error::unsupported(message)
            .hint("write it as text in quotes, or s ~ pattern, a regular expression"));
    };
    let escape = match escape {
        None => Some('\\'),
        Some(escape) => character(escape, pattern)?,
    };
    let regular = translated(text, escape).map_err(|what| {
        let message = format!("{what} in the pattern `{text}`{}", placed(pattern));
        Error::invalid(message).hint("s ~ '...' takes any regular expression")
    })?;
    let mut matched = pattern.clone();
    if let Expr::Value(value) = &mut matched {
        value.value = Value::SingleQuotedString(regular);
    }
    Ok(matched)
}

/// The character of `ESCAPE`, none for `''`.
fn character(escape: &ValueWithSpan, pattern: &Expr) -> Result<Option<char>> {
    match text_of(&escape.value) {
        Some(text) if text.chars().count() <= 1 => Ok(text.chars().next()),
        _ => {
            let message = format!("ESCAPE is one character in quotes{}", placed(pattern));
            Err(Error::invalid(message).hint("write ESCAPE '!', or '' for none"))
        }
    }
}

/// Writes a pattern of `LIKE` that stands there as text with a backslash where `escape` stands.
fn escape_by_backslash(pattern: &mut Expr, escape: &mut ValueWithSpan) -> ControlFlow<Error> {
    let by = match character(escape, pattern) {
        Ok(by) => by,
        Err(error) => return ControlFlow::Break(error),
    };
    let Expr::Value(value) = pattern else {
        return ControlFlow::Continue(());
    };
    let Some(text) = text_of(&value.value) else {
        return ControlFlow::Continue(());
    };
    let (mut written, mut rest) = (String::new(), text.chars());
    while let Some(next) = rest.next() {
        let escaped = if Some(next) == by { rest.next() } else { None };
        match escaped.unwrap_or(next) {
            plain @ ('%' | '_') if escaped.is_some() => written.extend(['\\', plain]),
            '\\' => written.push_str(r"\\"),
            plain => written.push(plain),
        }
    }
    value.value = Value::SingleQuotedString(written);
    escape.value = Value::SingleQuotedString("\\".to_owned());
    ControlFlow::Continue(())
}

pub(super) fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
        _ => None,
    }
}

/// `pattern` as a regular expression of the whole text, or what is wrong with it.
fn translated(pattern: &str, escape: Option<char>) -> std::result::Result<String, String> {
    let mut regular = String::from("^(?s:");
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            next if Some(next) == escape => regular.push_str(&escaped(rest.next())?),
            '%' => regular.push_str(".*"),
            '_' => regular.push('.'),
            '(' => regular.push_str("(?:"),
            '[' => add_set(&mut regular, &mut rest, escape)?,
            '.' | '^' | '$' | '\\' => regular.extend(['\\', next]),
            next => regular.push(next),
        }
    }
    regular.push_str(")$");
    Ok(regular)
}

/// What stands for the character `next` behind the one that escapes.
fn escaped(next: Option<char>) -> std::result::Result<String, String> {
    match next {
        None => Err("nothing is escaped at the end".to_owned()),
        Some('d' | 'D' | 's' | 'S' | 'w' | 'W') => Ok(format!("\\{}", next.unwrap_or_default())),
        Some(next) if next.is_alphanumeric() => Err(format!("`{next}` is escaped")),
        Some(next) if SPECIAL.contains(next) => Ok(format!("\\{next}")),
        Some(next) => Ok(next.to_string()),
    }
}

/// Adds a set whose bracket is passed: a bracket that comes first in it is of the set.
fn add_set(
    regular: &mut String,
    rest: &mut Peekable<Chars<'_>>,
    escape: Option<char>,
) -> std::result::Result<(), String> {
    regular.push('[');
    if rest.next_if_eq(&'^').is_some() {
        regular.push('^');
    }
    if rest.next_if_eq(&']').is_some() {
        regular.push_str("\\]");
    }
    while let Some(next) = rest.next() {
        match next {
            ']' => {
                regular.push(']');
                return Ok(());
            }
            next if Some(next) == escape => regular.push_str(&escaped(rest.next())?),
            '[' if rest.next_if_eq(&':').is_some() => {
                regular.push_str("[:");
                let mut name = rest.by_ref().take_while(|letter| *letter != ']');
                regular.extend(&mut name);
                regular.push(']');
            }
            '[' | '\\' | '&' | '~' => regular.extend(['\\', next]),
            next => regular.push(next),
        }
    }
    Err("a bracket is left open".to_owned())
}

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn patterns_are_regular_expressions_of_the_whole_text() {
        for (pattern, escape, wanted) in [
            ("", Some('\\'), "^(?s:)$"),
            ("(a|b)_%", Some('\\'), "^(?s:(?:a|b)..*)$"),
            ("a.b^c$", Some('\\'), r"^(?s:a\.b\^c\$)$"),
            (r"a\%\\\d", Some('\\'), r"^(?s:a%\\\d)$"),
            (r"a!%\_", Some('!'), r"^(?s:a%\\.)$"),
            (r"a!%\_", None, r"^(?s:a!.*\\.)$"),
            ("[]a[%_]{2}", Some('\\'), r"^(?s:[\]a\[%_]{2})$"),
            ("[^[:alpha:]&]+", Some('\\'), r"^(?s:[^[:alpha:]\&]+)$"),
        ] {
            let regular = translated(pattern, escape);
            assert_eq!(regular.as_deref(), Ok(wanted), "{pattern}");
        }
        for wrong in [r"a\", "[a", r"a\b"] {
            assert!(translated(wrong, Some('\\')).is_err(), "{wrong}");
        }
    }
}
