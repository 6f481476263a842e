//! Clauses of ours behind a query: when its results come, and what is kept.
//!
//! ```text
//! SELECT … EMIT UPDATE | EMIT EVERY INTERVAL '10' SECOND | EMIT FINAL
//!          ALLOWED LATENESS INTERVAL '5' SECOND
//!          LATE INTO 'late.csv'
//! CREATE STREAM … WATERMARK FOR ts AS ts - INTERVAL '2' SECOND   KEEP 1 HOUR
//!          KEEP 7 DAYS INTO 'folder' | KEEP ALL INTO 'folder'
//! ```
//! They are cut off as tokens, so that the grammar of queries does not take them for aliases.

use arrow_cast::parse::parse_interval_month_day_nano;
use datafusion_sql::sqlparser::ast::{Expr, Ident};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::statement::Parsed;
use super::{folded, take_word};

/// What stands behind a query.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Clauses {
    /// Event time and lateness.
    pub(crate) watermark: Option<Watermark>,
    /// How much of the stream stays, as the text of an interval; empty for all of it.
    pub(crate) keep: Option<String>,
    /// The folder of the store in which the stream is kept.
    pub(crate) keep_into: Option<String>,
    /// When results come.
    pub(crate) emit: Option<EmitClause>,
    /// How late rows still change results, as the text of an interval.
    pub(crate) allowed_lateness: Option<String>,
    /// The file that takes the late rows.
    pub(crate) late_into: Option<String>,
    /// Where the first of them stands.
    pub(crate) place: Option<Location>,
}

/// `WATERMARK FOR column AS column - INTERVAL ...`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Watermark {
    /// The column of the event time.
    pub(crate) column: Ident,
    /// How late rows may be, as the text of an interval.
    pub(crate) lateness: Option<String>,
}

/// When results come.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EmitClause {
    /// When their window closes.
    Final,
    /// Behind each batch.
    Update,
    /// At multiples of the interval with this text.
    Every(String),
}

impl Clauses {
    /// Whether there are clauses that only `CREATE STREAM` takes: their name and place.
    pub(crate) fn of_streams(&self) -> Option<(&'static str, Location)> {
        let name = match (&self.watermark, &self.keep) {
            (Some(_), _) => "WATERMARK",
            (_, Some(_)) => "KEEP",
            _ => return None,
        };
        Some((name, self.place.unwrap_or(Location { line: 1, column: 1 })))
    }

    /// Whether there are clauses of queries.
    pub(crate) fn of_queries(&self) -> Option<(&'static str, Location)> {
        let name = match (&self.emit, &self.allowed_lateness, &self.late_into) {
            (Some(_), ..) => "EMIT",
            (_, Some(_), _) => "ALLOWED LATENESS",
            (.., Some(_)) => "LATE INTO",
            _ => return None,
        };
        Some((name, self.place.unwrap_or(Location { line: 1, column: 1 })))
    }
}

/// Pairs of words that start a clause; `None` stands for a number or an interval.
const STARTS: [(&str, &[&str]); 5] = [
    ("watermark", &["for"]),
    ("keep", &["interval", "all"]),
    ("emit", &["final", "update", "updates", "every"]),
    ("allowed", &["lateness"]),
    ("late", &["into"]),
];

/// The tokens of a statement, and those of its clauses.
pub(super) fn split(tokens: &[TokenWithSpan]) -> (&[TokenWithSpan], &[TokenWithSpan]) {
    let solid: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let mut depth = 0usize;
    for pair in solid.windows(2) {
        let (here, next) = (&tokens[pair[0]].token, &tokens[pair[1]].token);
        match here {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && pair[0] != solid[0] && starts(here, next) {
            return tokens.split_at(pair[0]);
        }
    }
    (tokens, &[])
}

fn starts(here: &Token, next: &Token) -> bool {
    let word = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_lowercase()),
        _ => None,
    };
    let Some(here) = word(here) else {
        return false;
    };
    if here == "keep" && matches!(next, Token::Number(..)) {
        return true;
    }
    let Some(next) = word(next) else {
        return false;
    };
    STARTS
        .iter()
        .any(|(first, seconds)| *first == here && seconds.contains(&next.as_str()))
}

/// Parses all clauses.
pub(super) fn parse(parser: &mut Parser) -> Parsed<Clauses> {
    let mut clauses = Clauses::default();
    loop {
        let start = parser.peek_token().span.start;
        if take_word(parser, "watermark") {
            clauses.watermark = Some(watermark(parser)?);
        } else if take_word(parser, "keep") {
            let all = take_word(parser, "all");
            clauses.keep = Some(if all { String::new() } else { length(parser)? });
            if all || parser.peek_keyword(Keyword::INTO) {
                parser.expect_keyword(Keyword::INTO)?;
                clauses.keep_into = Some(parser.parse_literal_string()?);
            }
        } else if take_word(parser, "emit") {
            clauses.emit = Some(emit(parser)?);
        } else if take_word(parser, "allowed") {
            if !take_word(parser, "lateness") {
                return parser.expected("LATENESS", parser.peek_token());
            }
            clauses.allowed_lateness = Some(length(parser)?);
        } else if take_word(parser, "late") {
            parser.expect_keyword(Keyword::INTO)?;
            clauses.late_into = Some(parser.parse_literal_string()?);
        } else {
            return Ok(clauses);
        }
        clauses.place.get_or_insert(start);
    }
}

/// The rest of `WATERMARK FOR column AS column - INTERVAL '2' SECOND`.
pub(super) fn watermark(parser: &mut Parser) -> Parsed<Watermark> {
    parser.expect_keyword(Keyword::FOR)?;
    let column = parser.parse_identifier()?;
    let mut lateness = None;
    if take_word(parser, "as") {
        let place = parser.peek_token();
        let name = folded(&column);
        if super::name(parser)? != name {
            return parser.expected(&format!("`{name}`, as after FOR"), place);
        }
        if parser.consume_token(&Token::Minus) {
            lateness = Some(length(parser)?);
        }
    }
    Ok(Watermark { column, lateness })
}

fn emit(parser: &mut Parser) -> Parsed<EmitClause> {
    if take_word(parser, "final") {
        return Ok(EmitClause::Final);
    }
    if take_word(parser, "update") || take_word(parser, "updates") {
        return Ok(EmitClause::Update);
    }
    if take_word(parser, "every") {
        return Ok(EmitClause::Every(length(parser)?));
    }
    parser.expected("FINAL, UPDATE or EVERY INTERVAL ...", parser.peek_token())
}

/// What stands behind a number that is a length of time.
pub(super) const UNIT: &str = "a unit of time";

/// `INTERVAL '2' SECOND` or `2 SECONDS`, as the text of an interval.
fn length(parser: &mut Parser) -> Parsed<String> {
    let start = parser.peek_token();
    let Token::Number(number, _) = &start.token else {
        let length = parser.parse_expr()?;
        return match has_no_unit(&length) {
            true => parser.expected(&format!("{UNIT} in an interval"), start),
            false => Ok(length.to_string()),
        };
    };
    parser.next_token();
    let unit = parser.next_token();
    match &unit.token {
        Token::Word(word) if is_interval(&format!("{number} {}", word.value)) => {
            Ok(format!("INTERVAL '{number} {}'", word.value))
        }
        _ => parser.expected(&format!("{UNIT}, as in 2 SECONDS"), unit),
    }
}

/// Whether `length` is `INTERVAL 'text'` with words in the text that are no units.
fn has_no_unit(length: &Expr) -> bool {
    let Expr::Interval(interval) = length else {
        return false;
    };
    match &*interval.value {
        Expr::Value(value) if interval.leading_field.is_none() => {
            let text = value.value.clone().into_string().unwrap_or_default();
            text.contains(char::is_alphabetic) && !is_interval(&text)
        }
        _ => false,
    }
}

fn is_interval(text: &str) -> bool {
    parse_interval_month_day_nano(text).is_ok()
}
