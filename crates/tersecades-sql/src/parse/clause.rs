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
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::statement::Parsed;
use super::{folded, place, take_word};

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
    /// The first of them that only `CREATE STREAM` takes, and where it stands.
    pub(crate) of_streams: Option<(&'static str, Location)>,
    /// The first of them that is one of queries, and where it stands.
    pub(crate) of_queries: Option<(&'static str, Location)>,
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
        let (name, is_second) = if take_word(parser, "watermark") {
            let mark = watermark(parser)?;
            ("WATERMARK", clauses.watermark.replace(mark).is_some())
        } else if take_word(parser, "keep") {
            let all = take_word(parser, "all");
            let kept = if all { String::new() } else { length(parser)? };
            if all || parser.peek_keyword(Keyword::INTO) {
                parser.expect_keyword(Keyword::INTO)?;
                clauses.keep_into = Some(parser.parse_literal_string()?);
            }
            ("KEEP", clauses.keep.replace(kept).is_some())
        } else if take_word(parser, "emit") {
            let emit = emit(parser)?;
            ("EMIT", clauses.emit.replace(emit).is_some())
        } else if take_word(parser, "allowed") {
            if !take_word(parser, "lateness") {
                return parser.expected("LATENESS", parser.peek_token());
            }
            let allowed = &mut clauses.allowed_lateness;
            let is_second = allowed.replace(length(parser)?).is_some();
            ("ALLOWED LATENESS", is_second)
        } else if take_word(parser, "late") {
            parser.expect_keyword(Keyword::INTO)?;
            let file = parser.parse_literal_string()?;
            ("LATE INTO", clauses.late_into.replace(file).is_some())
        } else {
            return Ok(clauses);
        };
        if is_second {
            return Err(ParserError::ParserError(second(name, start)));
        }
        let first = match name {
            "WATERMARK" | "KEEP" => &mut clauses.of_streams,
            _ => &mut clauses.of_queries,
        };
        first.get_or_insert((name, start));
    }
}

/// What is said of a clause that stands there once more.
pub(super) fn second(name: &str, at: Location) -> String {
    format!("a second {name}{}", place(at))
}

/// The rest of `WATERMARK FOR column AS column - INTERVAL '2' SECOND`.
pub(super) fn watermark(parser: &mut Parser) -> Parsed<Watermark> {
    parser.expect_keyword(Keyword::FOR)?;
    let column = parser.parse_identifier()?;
    let mut lateness = None;
    if take_word(parser, "as") {
        let start = parser.peek_token();
        let name = folded(&column);
        if super::name(parser)? != name {
            return parser.expected(&format!("`{name}`, as after FOR"), start);
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
