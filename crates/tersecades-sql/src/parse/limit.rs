//! Limits on length and nesting of a query: its plan is as deep as its longest chain of operators.

use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use tersecades_columnar::error::{Error, Result};

use super::place;

/// Most that the operators of one expression cost.
const CHAIN_MAX: usize = 1_000;

/// Costs of operators: arithmetic is typed and checked again at each of its levels.
const LOGICAL: usize = 1;
const OTHER: usize = 2;
const ARITHMETIC: usize = 4;

/// Most that the set operations and joins of a statement cost.
const STEPS_MAX: usize = 500;
const UNION_ALL: usize = 1;
const STEP: usize = 5;

/// Most parentheses within each other; the parser goes a little deeper.
const NESTED_MAX: usize = 40;

/// Most CASE, queries, and words such as CAST before a parenthesis within each other as parts of
/// expressions: the parser reads what is inside twice at each level.
const TWICE_READ_MAX: usize = 12;

/// Refuses statements that are too long or too deep to plan.
///
/// # Errors
/// `LimitExceeded` with the place where a limit is passed.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    // What the operators cost that each open parenthesis and CASE holds.
    let (mut open, mut depth, mut steps) = (vec![0usize], 0usize, 0usize);
    let mut nesting = Nesting::default();
    let solid = tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    let mut solid = solid.peekable();
    while let Some(token) = solid.next() {
        nesting.pass(token, solid.peek().map(|next| &next.token))?;
        let all = solid.peek().is_some_and(|next| is_all(&next.token));
        match part_of(&token.token, all) {
            Part::Open => open.push(0),
            Part::Close => depth -= open.pop().unwrap_or_default(),
            Part::Next => depth -= open.last_mut().map(std::mem::take).unwrap_or_default(),
            Part::Step(cost) => {
                depth -= open.last_mut().map(std::mem::take).unwrap_or_default();
                steps += cost;
            }
            Part::Operator(cost) => {
                depth += cost;
                match open.last_mut() {
                    Some(last) => *last += cost,
                    None => open.push(cost),
                }
            }
            Part::Operand => {}
        }
        let (what, hint) = match (depth > CHAIN_MAX, steps > STEPS_MAX) {
            (true, _) => ("an expression", "write `x IN (1, 2, ...)` for many values"),
            (_, true) => ("a query of so many parts", "put rows into a table first"),
            _ => continue,
        };
        let message = format!("{what} is too long{}", place(token.span.start));
        return Err(Error::limit(message).hint(hint));
    }
    Ok(())
}

/// The open parentheses and CASE, each with whether the parser may read it twice.
#[derive(Default)]
struct Nesting {
    open: Vec<bool>,
    read_twice: usize,
    behind_from: bool,
    behind_prefix: bool,
}

impl Nesting {
    fn pass(&mut self, token: &TokenWithSpan, next: Option<&Token>) -> Result<()> {
        match part_of(&token.token, false) {
            Part::Open => {
                let query = next.is_some_and(starts_query) && !self.behind_from;
                let twice = query || self.behind_prefix || is_prefix(&token.token);
                self.read_twice += usize::from(twice);
                self.open.push(twice);
            }
            Part::Close => self.read_twice -= usize::from(self.open.pop().unwrap_or_default()),
            _ => {}
        }
        self.behind_prefix = is_prefix(&token.token);
        self.behind_from = matches!(&token.token, Token::Word(word)
            if matches!(word.keyword, Keyword::FROM | Keyword::JOIN));
        if self.open.len() <= NESTED_MAX && self.read_twice <= TWICE_READ_MAX {
            return Ok(());
        }
        Err(too_deep(token.span.start))
    }
}

/// A query is nested too deeply, at a place.
fn too_deep(at: Location) -> Error {
    Error::limit(format!("the query is nested too deeply{}", place(at)))
        .hint("write inner queries as WITH name AS (...)")
}

/// What is said where the parser itself goes no deeper, with the place of the deepest token.
pub(super) fn too_deep_within(tokens: &[TokenWithSpan]) -> Error {
    let (mut open, mut most) = (0usize, 0);
    let mut at = tokens.first().map(|token| token.span.start);
    for token in tokens {
        match part_of(&token.token, false) {
            Part::Open => open += 1,
            Part::Close => open = open.saturating_sub(1),
            _ => {}
        }
        if open > most {
            (most, at) = (open, Some(token.span.start));
        }
    }
    too_deep(at.unwrap_or(Location { line: 1, column: 1 }))
}

/// Whether the parser takes a word before a parenthesis for a construct of its own first, and for
/// the name of a function then.
fn is_prefix(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none()
    && matches!(
        word.keyword,
        Keyword::ARRAY
            | Keyword::CASE
            | Keyword::CAST
            | Keyword::CEIL
            | Keyword::CONVERT
            | Keyword::EXISTS
            | Keyword::EXTRACT
            | Keyword::FLOOR
            | Keyword::INTERVAL
            | Keyword::MAP
            | Keyword::MATCH
            | Keyword::NOT
            | Keyword::OVERLAY
            | Keyword::POSITION
            | Keyword::PRIOR
            | Keyword::SAFE_CAST
            | Keyword::STRUCT
            | Keyword::SUBSTR
            | Keyword::SUBSTRING
            | Keyword::TRIM
            | Keyword::TRY_CAST
            | Keyword::TRY_CONVERT
    ))
}

fn starts_query(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none()
        && matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES))
}

/// What a token is in a chain of operators.
enum Part {
    Open,
    Close,
    /// The next expression starts.
    Next,
    /// The next query or table starts.
    Step(usize),
    Operator(usize),
    Operand,
}

fn part_of(token: &Token, before_all: bool) -> Part {
    let word = match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        Token::LParen | Token::LBracket => return Part::Open,
        Token::RParen | Token::RBracket => return Part::Close,
        Token::Comma => return Part::Next,
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod => {
            return Part::Operator(ARITHMETIC);
        }
        Token::Word(_) | Token::Number(..) | Token::Period => return Part::Operand,
        token if is_text(token) => return Part::Operand,
        _ => return Part::Operator(OTHER),
    };
    match word {
        Keyword::CASE => Part::Open,
        Keyword::END => Part::Close,
        Keyword::AND | Keyword::OR | Keyword::IS | Keyword::LIKE | Keyword::IN => {
            Part::Operator(LOGICAL)
        }
        Keyword::UNION if before_all => Part::Step(UNION_ALL),
        Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::JOIN => Part::Step(STEP),
        Keyword::SELECT
        | Keyword::FROM
        | Keyword::WHERE
        | Keyword::GROUP
        | Keyword::HAVING
        | Keyword::ORDER
        | Keyword::WHEN
        | Keyword::THEN
        | Keyword::ELSE => Part::Next,
        _ => Part::Operand,
    }
}

fn is_all(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.keyword == Keyword::ALL)
}

fn is_text(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_)
    )
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::GenericDialect;
    use datafusion_sql::sqlparser::tokenizer::Tokenizer;

    use super::{NESTED_MAX, TWICE_READ_MAX};
    use crate::parse::parse;

    /// `SELECT` of `count` terms with `between` between them.
    fn chain(term: &str, between: &str, count: usize) -> String {
        format!("SELECT {}", vec![term; count].join(between))
    }

    fn is_too_long(text: &str) -> bool {
        match parse(text) {
            Ok(_) => false,
            Err(error) => error.message().contains("too long at line 1, column "),
        }
    }

    #[test]
    fn chains_are_as_long_as_their_plans_may_be_deep() {
        for (term, between, count) in [
            ("a", " + ", 250),
            ("a = 1", " OR ", 330),
            ("a", ", ", 3_000),
        ] {
            assert!(!is_too_long(&chain(term, between, count)), "{between}");
        }
        for (term, between) in [("a", " + "), ("a", " OR "), ("'a'", " || "), ("a", " = ")] {
            assert!(is_too_long(&chain(term, between, 5_000)), "{between}");
        }
        let nested = chain("CASE WHEN a > 1 THEN 1 END", " + ", 2_000);
        assert!(is_too_long(&nested));
        assert!(!is_too_long(&chain("(a + 1)", ", ", 2_000)));
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused_by_place() {
        for (open, close, most) in [
            ("(", ")", NESTED_MAX),
            ("CASE WHEN 1 = 1 THEN ", " END", TWICE_READ_MAX),
            ("abs(", ")", NESTED_MAX),
        ] {
            let nested = |depth| format!("SELECT {}1{}", open.repeat(depth), close.repeat(depth));
            assert!(parse(&nested(most)).is_ok(), "{open}");
            let error = parse(&nested(most + 1)).unwrap_err().to_string();
            let place = format!(
                "too deeply at line 1, column {}",
                8 + most * open.len() + open.find('(').unwrap_or_default()
            );
            assert!(error.contains(&place), "{error}");
        }
        for query in ["(SELECT ", "(SELECT * FROM ("] {
            let close = ")".repeat(30 * query.matches('(').count());
            let error = parse(&format!("SELECT {}1{close}", query.repeat(30))).unwrap_err();
            assert!(
                error.message().contains("too deeply at line 1, column "),
                "{error}"
            );
        }
    }

    /// The parser would read each of these twice a level, as what is inside is wrong: the limit
    /// says so before it, with the place where it is passed.
    #[test]
    fn what_is_wrong_inside_never_reaches_the_parser() {
        for (open, level) in [
            ("CAST(", 1),
            ("NOT (", 1),
            ("CASE (", 2),
            ("floor(", 1),
            ("CAST((SELECT ", 2),
            ("NOT ((CASE (", 3),
        ] {
            let levels = TWICE_READ_MAX / level;
            let text = format!("SELECT {}1 +", open.repeat(30));
            let tokens = Tokenizer::new(&GenericDialect {}, &text).tokenize_with_location();
            let refused = super::check(&tokens.unwrap()).unwrap_err();
            let at = refused
                .message()
                .rsplit_once("too deeply at line 1, column ");
            let column: usize = at.unwrap().1.parse().unwrap();
            let passed = 8 + levels * open.len()..8 + (levels + 1) * open.len();
            assert!(passed.contains(&column), "{open}: column {column}");
            assert_eq!(parse(&text).unwrap_err().message(), refused.message());
        }
    }

    #[test]
    fn queries_of_many_parts_are_too_long() {
        assert!(!is_too_long(&chain("1", " UNION ALL SELECT ", 400)));
        assert!(is_too_long(&chain("1", " UNION ALL SELECT ", 600)));
        assert!(is_too_long(&chain("1", " UNION SELECT ", 200)));
        let joins = " JOIN b ON a.k = b.k".repeat(200);
        assert!(is_too_long(&format!("SELECT 1 FROM a{joins}")));
    }
}
