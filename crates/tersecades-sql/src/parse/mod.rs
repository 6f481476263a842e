//! From text to commands: tokens, then the statements of ours, then sqlparser for queries.

pub(crate) mod bits;
mod call;
pub(crate) mod cast;
pub(crate) mod check;
pub(crate) mod clause;
pub(crate) mod column_name;
pub(crate) mod digit;
pub(crate) mod distinct_from;
mod dropped;
pub(crate) mod from_first;
pub(crate) mod grouping;
mod interval;
mod join;
mod limit;
pub(crate) mod named_window;
pub(crate) mod order_by;
pub(crate) mod power;
pub(crate) mod row;
pub(crate) mod row_in;
pub(crate) mod shadow;
pub(crate) mod sign;
pub(crate) mod similar;
mod spelling;
mod statement;
pub(crate) mod using;
pub(crate) mod values;
pub(crate) mod window;
mod with;

use datafusion_sql::sqlparser::ast::{DataType, Ident, ObjectName, Query};
use datafusion_sql::sqlparser::dialect::GenericDialect;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::{
    Location, Token, TokenWithSpan, Tokenizer, TokenizerError,
};
use tersecades_columnar::error::{Error, Result};

use crate::error::UNITS_OF_TIME;
use clause::Clauses;

/// What an `EXPLAIN` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Explained {
    /// The plan.
    Plan,
    /// The plan and what running it took.
    Run,
    /// How each column was encoded, and what the other codecs would have cost.
    Codecs,
}

/// A query and the clauses behind it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The query.
    pub(crate) query: Box<Query>,
    /// When its results come, and where late rows go.
    pub(crate) clauses: Clauses,
}

impl From<Box<Query>> for Asked {
    fn from(query: Box<Query>) -> Self {
        let clauses = Clauses::default();
        Asked { query, clauses }
    }
}

/// A statement.
#[derive(Debug)]
pub(crate) enum Command {
    /// A query whose rows are wanted.
    Query(Asked),
    /// `EXPLAIN [ANALYZE | CODECS] query`
    Explain(Explained, Asked),
    /// `DESCRIBE table` or `DESCRIBE query`
    Describe(Asked),
    /// `SHOW TABLES`
    ShowTables,
    /// `SUMMARIZE table` or `SUMMARIZE query`
    Summarize(Asked),
    /// `COPY table | (query) TO 'file'`, `INSERT INTO 'file' query`
    Copy {
        /// What is written.
        asked: Asked,
        /// The file.
        path: String,
        /// The format, unless the suffix of the file says it.
        format: Option<String>,
        /// Whether it may replace a file.
        replace: bool,
    },
    /// `CREATE [OR REPLACE] TABLE | STREAM | VIEW name ...`
    Create(Created),
    /// `SET option = value`
    Set(String, String),
}

impl Command {
    /// Whether its answer is rows.
    pub(crate) fn gives_rows(&self) -> bool {
        !matches!(
            self,
            Command::Copy { .. } | Command::Create(_) | Command::Set(..)
        )
    }
}

/// A table or stream to be created.
#[derive(Debug)]
pub(crate) struct Created {
    /// Its name.
    pub(crate) name: String,
    /// Whether it may replace another.
    pub(crate) replace: bool,
    /// Whether its rows are computed at once and kept, or it is a name for a query.
    pub(crate) is_table: bool,
    /// Its rows.
    pub(crate) rows: Rows,
    /// Watermark, what is kept, when results come.
    pub(crate) clauses: Clauses,
}

/// Where the rows of something to be created come from.
#[derive(Debug)]
pub(crate) enum Rows {
    /// A query, or a table that exists.
    Query(Box<Query>),
    /// A file, with its columns and their types.
    File {
        /// The file, glob or folder.
        path: String,
        /// Names and types of the wanted columns, where not all are.
        columns: Vec<(Ident, DataType)>,
    },
}

/// Stack of the thread that parses, for queries that nest deeply.
const PARSING_STACK_BYTES: usize = 32 << 20;

/// The statements of `text`.
///
/// # Errors
/// `InvalidArgument` with line and column for what is no SQL.
pub(crate) fn parse(text: &str) -> Result<Vec<Command>> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PARSING_STACK_BYTES);
        let parsing = thread.spawn_scoped(scope, || parse_here(text))?;
        let failed = |_| Error::internal("parsing the query failed");
        parsing.join().map_err(failed)?
    })
}

fn parse_here(text: &str) -> Result<Vec<Command>> {
    let dialect = GenericDialect {};
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|TokenizerError { message, location }| {
            Error::invalid(format!("{message}{}", place(location)))
                .hint("is a quote or a comment left open?")
        })?;
    let tokens = power::marked(spelling::whole_numbers(tokens)?)?;
    let tokens = distinct_from::marked(tokens);
    let statements = tokens.split(|token| token.token == Token::SemiColon);
    let mut commands = Vec::new();
    for tokens in statements {
        let is_blank =
            |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_) | Token::EOF);
        if tokens.iter().all(is_blank) {
            continue;
        }
        commands.push(parse_statement(tokens)?);
    }
    Ok(commands)
}

fn parse_statement(tokens: &[TokenWithSpan]) -> Result<Command> {
    limit::check(tokens)?;
    let (main, behind) = clause::split(tokens);
    let main = window::without_table_keyword(&join::sided(join::marked(main)?));
    let (mut parser, mut rest) = (parser_of(main), parser_of(behind.to_vec()));
    let end = tokens.last().map(|token| token.span.end);
    let wrong = |error: ParserError| syntax_error(&error, tokens, end);
    statement::check_supported(&parser)?;
    let command = statement::parse(&mut parser).map_err(wrong)?;
    check_end(&parser)?;
    let clauses = clause::parse(&mut rest).map_err(wrong)?;
    check_end(&rest)?;
    statement::with_clauses(command, clauses)
}

fn parser_of(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&GenericDialect {}).with_tokens_with_locations(tokens)
}

fn check_end(parser: &Parser) -> Result<()> {
    let rest = parser.peek_token();
    if rest.token == Token::EOF {
        return Ok(());
    }
    let message = format!("unexpected `{}`{}", rest.token, place(rest.span.start));
    let hint = match rest.token.to_string().to_lowercase().as_str() {
        "emit" => "write EMIT FINAL, EMIT UPDATE or EMIT EVERY INTERVAL '10' SECOND",
        "allowed" => "write ALLOWED LATENESS INTERVAL '10' SECOND",
        "late" => "write LATE INTO 'file.parquet'",
        "watermark" => "write WATERMARK FOR ts AS ts - INTERVAL '2' SECOND",
        "order" | "limit" | "where" | "group" | "having" => {
            "EMIT, ALLOWED LATENESS, LATE INTO, WATERMARK and KEEP stand at the end"
        }
        _ => "end a statement with `;`",
    };
    Err(Error::invalid(message).hint(hint))
}

/// ` at line 1, column 8`
pub(crate) fn place(at: Location) -> String {
    format!(" at line {}, column {}", at.line, at.column)
}

/// The next name.
fn name(parser: &mut Parser) -> statement::Parsed<String> {
    Ok(folded(&parser.parse_identifier()?))
}

/// A name as it is compared: without quotes in small letters.
pub(crate) fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// The name of a table that has no schema before it.
fn single(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

/// What the parser says, with the place in words of ours; the statement ends at `end`.
fn syntax_error(error: &ParserError, tokens: &[TokenWithSpan], end: Option<Location>) -> Error {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        ParserError::RecursionLimitExceeded => {
            return limit::too_deep_within(tokens);
        }
    };
    let message = message
        .replace(" at Line: ", " at line ")
        .replace(", Column: ", ", column ")
        // What stands for powers.
        .replace(": ^@", ": ^");
    let message = match (message.strip_suffix("found: EOF"), end) {
        (Some(message), Some(end)) => format!("{message}found: the end{}", place(end)),
        _ => message,
    };
    let error = Error::invalid(format!("syntax error: {message}"));
    match message.contains(clause::UNIT) {
        true => error.hint(UNITS_OF_TIME),
        false => error,
    }
}

/// Whether the next token is the word `word`, which it then passes.
fn take_word(parser: &mut Parser, word: &str) -> bool {
    let found = matches!(parser.peek_token().token, Token::Word(next)
        if next.quote_style.is_none() && next.value.eq_ignore_ascii_case(word));
    if found {
        parser.next_token();
    }
    found
}

/// Whether the next words start a query.
fn starts_query(parser: &Parser) -> bool {
    match parser.peek_token().token {
        Token::LParen => true,
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::FROM
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn statements_are_told_by_their_first_words() {
        let commands = parse(
            "SELECT 1; EXPLAIN CODECS SELECT 2;; SHOW TABLES; DESCRIBE t; SUMMARIZE t;
             COPY t TO 'x.csv'; SET threads = 2",
        );
        let commands = commands.unwrap();
        assert_eq!(commands.len(), 7);
        assert!(matches!(
            commands[1],
            Command::Explain(Explained::Codecs, _)
        ));
        assert!(matches!(&commands[5], Command::Copy { path, .. } if path == "x.csv"));
        assert!(
            matches!(&commands[6], Command::Set(name, value) if name == "threads" && value == "2")
        );
    }

    #[test]
    fn errors_name_line_and_column() {
        assert!(
            error("SELECT 1\nFROM )").contains("line 2"),
            "{}",
            error("SELECT 1\nFROM )")
        );
        assert!(
            error("SELECT 'a").contains("line 1, column 8"),
            "{}",
            error("SELECT 'a")
        );
        assert!(
            error("SELECT\n1 +").contains("the end at line 2, column 4"),
            "{}",
            error("SELECT\n1 +")
        );
        assert!(error("SHOW TABLES now").contains("unexpected `now`"));
    }

    #[test]
    fn statements_of_other_engines_are_refused_with_ours() {
        for (text, hint) in [
            ("ALTER TABLE t ADD COLUMN w BIGINT", "store add-column DIR"),
            ("alter stream t drop column w", "CREATE OR REPLACE TABLE"),
            ("DROP TABLE t", "names last as long as the session"),
            ("UPDATE t SET a = 1", "store ingest"),
            ("DELETE FROM t WHERE a = 1", "store delete"),
            ("TRUNCATE t", "store delete"),
            ("MERGE INTO t USING u ON t.a = u.a", "store ingest"),
        ] {
            let error = parse(&format!("SELECT 1;\n{text}")).unwrap_err();
            let word = text.split(' ').next().unwrap_or_default().to_uppercase();
            let message = format!("{word} is not supported at line 2, column 1");
            assert_eq!(error.message(), message);
            assert!(error.hint_text().unwrap().contains(hint), "{error:?}");
        }
    }

    #[test]
    fn lengths_of_time_that_have_no_unit_are_told_of_units() {
        let mark = "CREATE STREAM p FROM 'p.csv' WATERMARK FOR ts AS ts - 2 SECONDS";
        for keep in ["7 DAYS", "7 MONTHS", "1.5 hours INTO 's'", "INTERVAL '7'"] {
            parse(&format!("{mark} KEEP {keep}")).unwrap();
        }
        for keep in ["7 APPLES", "7 apples INTO 's'", "7", "INTERVAL '7 apples'"] {
            let error = parse(&format!("{mark} KEEP {keep}")).unwrap_err();
            let message = error.message();
            let place = match keep {
                "7" => "the end at line 1, column",
                "INTERVAL '7 apples'" => "at line 1, column 70",
                _ => "at line 1, column 72",
            };
            assert!(message.contains("a unit of time"), "{message}");
            assert!(message.contains(place), "{message}");
            assert_eq!(error.hint_text(), Some(UNITS_OF_TIME));
        }
        let error = parse("CREATE STREAM p FROM 'p.csv' WATERMARK FOR ts AS ts - 2 apples");
        assert!(error.unwrap_err().message().contains("found: apples"));
    }
}
