//! From text to commands: tokens, then the statements of ours, then sqlparser for queries.

pub(crate) mod column_name;
mod statement;
pub(crate) mod window;

use datafusion_sql::sqlparser::ast::Query;
use datafusion_sql::sqlparser::dialect::GenericDialect;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};
use tersecades_columnar::error::{Error, Result};

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

/// A statement.
#[derive(Debug)]
pub(crate) enum Command {
    /// A query whose rows are wanted.
    Query(Box<Query>),
    /// `EXPLAIN [ANALYZE | CODECS] query`
    Explain(Explained, Box<Query>),
    /// `DESCRIBE table` or `DESCRIBE query`
    Describe(Box<Query>),
    /// `SHOW TABLES`
    ShowTables,
    /// `SUMMARIZE table` or `SUMMARIZE query`
    Summarize(Box<Query>),
    /// `COPY table | (query) TO 'file'`, `INSERT INTO 'file' query`
    Copy {
        /// What is written.
        query: Box<Query>,
        /// The file.
        path: String,
        /// The format, unless the suffix of the file says it.
        format: Option<String>,
    },
    /// `CREATE [OR REPLACE] TABLE name AS query`: the rows are kept.
    CreateTable(Created),
    /// `CREATE [OR REPLACE] STREAM | VIEW name AS query`: a name for the query.
    CreateStream(Created),
    /// `SET option = value`
    Set(String, String),
}

/// A table or stream to be created.
#[derive(Debug)]
pub(crate) struct Created {
    /// Its name.
    pub(crate) name: String,
    /// Whether it may replace another.
    pub(crate) replace: bool,
    /// Its rows.
    pub(crate) query: Box<Query>,
    /// Event time and lateness in seconds, if it has a watermark.
    pub(crate) watermark: Option<Watermark>,
}

/// `WATERMARK FOR column AS column - INTERVAL ...`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Watermark {
    /// The column of the event time.
    pub(crate) column: String,
    /// How late rows may be, as an interval literal such as `2 seconds`.
    pub(crate) lateness: Option<String>,
}

/// The statements of `text`.
///
/// # Errors
/// `InvalidArgument` with line and column for what is no SQL.
pub(crate) fn parse(text: &str) -> Result<Vec<Command>> {
    let dialect = GenericDialect {};
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|TokenizerError { message, location }| {
            let message = format!(
                "{message} at line {}, column {}",
                location.line, location.column
            );
            Error::invalid(message).hint("is a quote or a comment left open?")
        })?;
    let statements = tokens.split(|token| token.token == Token::SemiColon);
    let mut commands = Vec::new();
    for tokens in statements {
        let is_blank =
            |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_) | Token::EOF);
        if tokens.iter().all(is_blank) {
            continue;
        }
        let tokens = window::without_table_keyword(tokens);
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
        let command = statement::parse(&mut parser).map_err(|error| syntax_error(&error))?;
        let rest = parser.peek_token();
        if rest.token != Token::EOF {
            let (line, column) = (rest.span.start.line, rest.span.start.column);
            let message = format!(
                "unexpected `{}` at line {line}, column {column}",
                rest.token
            );
            return Err(Error::invalid(message).hint("end a statement with `;`"));
        }
        commands.push(command);
    }
    Ok(commands)
}

/// What the parser says, with the place in words of ours.
fn syntax_error(error: &ParserError) -> Error {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        ParserError::RecursionLimitExceeded => {
            return Error::limit("the query is nested too deeply")
                .hint("write inner queries as WITH name AS (...)");
        }
    };
    let message = message
        .replace(" at Line: ", " at line ")
        .replace(", Column: ", ", column ");
    Error::invalid(format!("syntax error: {message}"))
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
            error("DROP TABLE t").contains("DROP"),
            "{}",
            error("DROP TABLE t")
        );
        assert!(error("SHOW TABLES now").contains("unexpected `now`"));
    }
}
