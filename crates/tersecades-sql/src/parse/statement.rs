//! Statements other than queries.

use datafusion_sql::sqlparser::ast::{DataType, Ident, Query};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;

use tersecades_columnar::error::{Error, Result as OwnResult};

use super::clause::{self, Clauses, Watermark};
use super::digit::keep_bits;
use super::{Command, Created, Explained, Rows, name, place, starts_query, take_word};

/// What parsing gives.
pub(super) type Parsed<T> = Result<T, ParserError>;

const KNOWN: &str = "SELECT, WITH, VALUES, EXPLAIN, DESCRIBE, SHOW TABLES, SUMMARIZE, COPY, \
                     INSERT INTO, CREATE STREAM, CREATE TABLE, SET";

/// Statements of other engines, and what is written in their place.
const REFUSED: [(&str, &str); 6] = [
    (
        "ALTER",
        "CREATE OR REPLACE TABLE t AS SELECT ... gives t other columns; a store gets one by \
         `tersecades store add-column DIR \"w BIGINT\"`",
    ),
    (
        "DROP",
        "names last as long as the session; CREATE OR REPLACE gives them to other rows",
    ),
    (
        "UPDATE",
        "CREATE OR REPLACE TABLE t AS SELECT ... FROM t computes rows anew; rows of a store \
         with a primary key are replaced by `tersecades store ingest`",
    ),
    ("DELETE", LESS_ROWS),
    ("TRUNCATE", LESS_ROWS),
    (
        "MERGE",
        "CREATE OR REPLACE TABLE t AS SELECT ... UNION ALL SELECT ... joins rows; a store with \
         a primary key takes new and changed rows by `tersecades store ingest`",
    ),
];

const LESS_ROWS: &str = "CREATE OR REPLACE TABLE t AS SELECT ... FROM t WHERE ... keeps fewer \
                         rows; rows of a store with a primary key go by `tersecades store delete`";

/// Refuses statements of other engines.
///
/// # Errors
/// `Unsupported` with the place and what to write.
pub(super) fn check_supported(parser: &Parser) -> OwnResult<()> {
    let is_word = |nth: usize, name: &str| {
        let token = parser.peek_nth_token(nth).token;
        matches!(token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name))
    };
    let refused = |name: &str, nth: usize| {
        let at = parser.peek_nth_token(nth).span.start;
        Error::unsupported(format!("{name} is not supported{}", place(at)))
    };
    if let Some((name, hint)) = REFUSED.iter().find(|(name, _)| is_word(0, name)) {
        return Err(refused(name, 0).hint(*hint));
    }
    // Behind `CREATE TABLE` and behind `CREATE OR REPLACE TABLE`.
    let mut conditions = [2, 4].into_iter();
    match conditions.find(|&at| is_word(0, "create") && is_word(at, "if") && is_word(at + 1, "not"))
    {
        None => Ok(()),
        Some(at) => Err(refused("IF NOT EXISTS", at).hint(
            "SHOW TABLES has the names there are; CREATE OR REPLACE gives one of them to other \
             rows",
        )),
    }
}

/// Parses one statement.
pub(super) fn parse(parser: &mut Parser) -> Parsed<Command> {
    if starts_query(parser) {
        return Ok(Command::Query(parser.parse_query()?.into()));
    }
    if take_word(parser, "explain") {
        let explained = match () {
            () if take_word(parser, "analyze") => Explained::Run,
            () if take_word(parser, "codecs") => Explained::Codecs,
            () => Explained::Plan,
        };
        return Ok(Command::Explain(explained, parser.parse_query()?.into()));
    }
    if take_word(parser, "describe") || take_word(parser, "desc") {
        return Ok(Command::Describe(table_or_query(parser)?.into()));
    }
    if take_word(parser, "show") {
        return match take_word(parser, "tables") {
            true => Ok(Command::ShowTables),
            false => parser.expected("TABLES", parser.peek_token()),
        };
    }
    if take_word(parser, "summarize") {
        return Ok(Command::Summarize(table_or_query(parser)?.into()));
    }
    if take_word(parser, "copy") {
        return copy(parser);
    }
    if take_word(parser, "insert") {
        parser.expect_keyword(Keyword::INTO)?;
        let path = parser.parse_literal_string()?;
        let asked = parser.parse_query()?.into();
        return Ok(Command::Copy {
            asked,
            path,
            format: None,
            replace: false,
        });
    }
    if take_word(parser, "create") {
        return create(parser);
    }
    if take_word(parser, "set") {
        let mut name = name(parser)?;
        while parser.consume_token(&Token::Period) {
            name = format!("{name}.{}", parser.parse_identifier()?.value);
        }
        let _ = parser.consume_token(&Token::Eq) || take_word(parser, "to");
        if parser.peek_token().token == Token::EOF {
            return parser.expected(&format!("a value of {name}"), parser.peek_token());
        }
        return Ok(Command::Set(name, parser.next_token().token.to_string()));
    }
    parser.expected(&format!("one of {KNOWN}"), parser.peek_token())
}

fn table_or_query(parser: &mut Parser) -> Parsed<Box<Query>> {
    match starts_query(parser) {
        true => parser.parse_query(),
        false => all_of(parser),
    }
}

/// `SELECT * FROM` the table named next.
fn all_of(parser: &mut Parser) -> Parsed<Box<Query>> {
    let table = parser.parse_object_name(false)?;
    parse_text(&format!("SELECT * FROM {table}"))
}

fn parse_text(text: &str) -> Parsed<Box<Query>> {
    let dialect = datafusion_sql::sqlparser::dialect::GenericDialect {};
    Parser::new(&dialect).try_with_sql(text)?.parse_query()
}

fn copy(parser: &mut Parser) -> Parsed<Command> {
    let asked = table_or_query(parser)?.into();
    parser.expect_keyword(Keyword::TO)?;
    let path = parser.parse_literal_string()?;
    let mut format = None;
    if parser.consume_token(&Token::LParen) {
        if !take_word(parser, "format") {
            return parser.expected("FORMAT", parser.peek_token());
        }
        format = Some(match parser.next_token().token {
            Token::Word(word) => word.value.to_lowercase(),
            Token::SingleQuotedString(text) => text.to_lowercase(),
            _ => return parser.expected("the name of a format", parser.peek_token()),
        });
        parser.expect_token(&Token::RParen)?;
    }
    Ok(Command::Copy {
        asked,
        path,
        format,
        replace: true,
    })
}

fn create(parser: &mut Parser) -> Parsed<Command> {
    let replace = take_word(parser, "or");
    if replace && !take_word(parser, "replace") {
        return parser.expected("REPLACE", parser.peek_token());
    }
    let is_table = take_word(parser, "table");
    if !is_table && !take_word(parser, "stream") && !take_word(parser, "view") {
        return parser.expected("TABLE, STREAM or VIEW", parser.peek_token());
    }
    let name = name(parser)?;
    let (columns, watermark) = match parser.peek_token().token {
        Token::LParen => columns(parser)?,
        _ => (Vec::new(), None),
    };
    let rows = rows(parser, columns)?;
    let clauses = Clauses {
        watermark,
        ..Clauses::default()
    };
    Ok(Command::Create(Created {
        name,
        replace,
        is_table,
        rows,
        clauses,
    }))
}

/// The columns that a statement declares.
type Declared = (Vec<(Ident, DataType)>, Option<Watermark>);

/// `(ts TIMESTAMP, k VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)`
fn columns(parser: &mut Parser) -> Parsed<Declared> {
    let (mut columns, mut watermark) = (Vec::new(), None);
    parser.expect_token(&Token::LParen)?;
    loop {
        let start = parser.peek_token().span.start;
        let is_for = matches!(parser.peek_nth_token(1).token,
            Token::Word(word) if word.keyword == Keyword::FOR);
        if is_for && take_word(parser, "watermark") {
            if watermark.replace(clause::watermark(parser)?).is_some() {
                let message = clause::second("WATERMARK", start);
                return Err(ParserError::ParserError(message));
            }
        } else {
            let (name, mut data_type) = (parser.parse_identifier()?, parser.parse_data_type()?);
            keep_bits(&mut data_type);
            columns.push((name, data_type));
        }
        if !parser.consume_token(&Token::Comma) {
            parser.expect_token(&Token::RParen)?;
            return Ok((columns, watermark));
        }
    }
}

/// `FROM 'file'`, `FROM table` or `AS query`.
fn rows(parser: &mut Parser, columns: Vec<(Ident, DataType)>) -> Parsed<Rows> {
    if take_word(parser, "from") {
        if let Token::SingleQuotedString(path) = parser.peek_token().token {
            parser.next_token();
            return Ok(Rows::File { path, columns });
        }
        if columns.is_empty() {
            return Ok(Rows::Query(all_of(parser)?));
        }
        return parser.expected("a file, as FROM 'probes.csv'", parser.peek_token());
    }
    if !columns.is_empty() {
        return parser.expected("FROM 'file' after columns", parser.peek_token());
    }
    parser.expect_keyword(Keyword::AS)?;
    Ok(Rows::Query(parser.parse_query()?))
}

/// The command with the clauses that stood behind it.
pub(super) fn with_clauses(mut command: Command, behind: Clauses) -> OwnResult<Command> {
    let (of_streams, of_queries) = (behind.of_streams, behind.of_queries);
    let misplaced = match &mut command {
        Command::Create(created) => {
            let declared = created.clauses.watermark.take();
            if let (Some(_), Some(mark)) = (&declared, &behind.watermark) {
                let message = clause::second("WATERMARK", mark.column.span.start);
                return Err(Error::invalid(message).hint("one stands in the parentheses already"));
            }
            let takes_none = created.is_table || matches!(created.rows, Rows::File { .. });
            created.clauses = Clauses {
                watermark: declared.or(behind.watermark),
                ..behind
            };
            of_queries.filter(|_| takes_none)
        }
        Command::Query(asked) | Command::Explain(_, asked) | Command::Copy { asked, .. } => {
            asked.clauses = behind;
            of_streams
        }
        _ => of_streams.or(of_queries),
    };
    match misplaced {
        None => Ok(command),
        Some((clause, at)) => {
            let message = format!("{clause} does not belong to this statement{}", place(at));
            Err(Error::invalid(message).hint(match misplaced == of_streams {
                true => "write CREATE STREAM name AS SELECT ... WATERMARK FOR ts ... KEEP ...",
                false => "write SELECT ... EMIT ..., or CREATE STREAM name AS SELECT ... EMIT ...",
            }))
        }
    }
}
