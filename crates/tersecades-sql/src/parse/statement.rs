//! Statements other than queries.

use datafusion_sql::sqlparser::ast::Query;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;

use super::{Command, Created, Explained, Watermark, starts_query, take_word};

type Parsed<T> = Result<T, ParserError>;

const KNOWN: &str = "SELECT, WITH, VALUES, EXPLAIN, DESCRIBE, SHOW TABLES, SUMMARIZE, COPY, \
                     INSERT INTO, CREATE STREAM, CREATE TABLE, SET";

/// Parses one statement.
pub(super) fn parse(parser: &mut Parser) -> Parsed<Command> {
    if starts_query(parser) {
        return Ok(Command::Query(parser.parse_query()?));
    }
    if take_word(parser, "explain") {
        let explained = match () {
            () if take_word(parser, "analyze") => Explained::Run,
            () if take_word(parser, "codecs") => Explained::Codecs,
            () => Explained::Plan,
        };
        return Ok(Command::Explain(explained, parser.parse_query()?));
    }
    if take_word(parser, "describe") || take_word(parser, "desc") {
        return Ok(Command::Describe(table_or_query(parser)?));
    }
    if take_word(parser, "show") {
        return match take_word(parser, "tables") {
            true => Ok(Command::ShowTables),
            false => parser.expected("TABLES", parser.peek_token()),
        };
    }
    if take_word(parser, "summarize") {
        return Ok(Command::Summarize(table_or_query(parser)?));
    }
    if take_word(parser, "copy") {
        return copy(parser);
    }
    if take_word(parser, "insert") {
        parser.expect_keyword(Keyword::INTO)?;
        let path = parser.parse_literal_string()?;
        let query = parser.parse_query()?;
        return Ok(Command::Copy {
            query,
            path,
            format: None,
        });
    }
    if take_word(parser, "create") {
        return create(parser);
    }
    if take_word(parser, "set") {
        let name = parser.parse_identifier()?.value;
        let _ = parser.consume_token(&Token::Eq) || take_word(parser, "to");
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
    let query = table_or_query(parser)?;
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
        query,
        path,
        format,
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
    let name = parser.parse_identifier()?;
    let name = match name.quote_style {
        Some(_) => name.value,
        None => name.value.to_lowercase(),
    };
    let query = match take_word(parser, "from") {
        true => all_of(parser)?,
        false => {
            parser.expect_keyword(Keyword::AS)?;
            parser.parse_query()?
        }
    };
    let watermark = watermark(parser)?;
    let created = Created {
        name,
        replace,
        query,
        watermark,
    };
    Ok(match is_table {
        true => Command::CreateTable(created),
        false => Command::CreateStream(created),
    })
}

/// `WATERMARK FOR column AS column - INTERVAL '2' SECOND`
fn watermark(parser: &mut Parser) -> Parsed<Option<Watermark>> {
    if !take_word(parser, "watermark") {
        return Ok(None);
    }
    parser.expect_keyword(Keyword::FOR)?;
    let column = parser.parse_identifier()?.value;
    let mut lateness = None;
    if take_word(parser, "as") {
        let again = parser.parse_identifier()?.value;
        if again != column {
            return parser.expected(&format!("`{column}`, as after FOR"), parser.peek_token());
        }
        if parser.consume_token(&Token::Minus) {
            lateness = Some(parser.parse_expr()?.to_string());
        }
    }
    Ok(Some(Watermark { column, lateness }))
}
