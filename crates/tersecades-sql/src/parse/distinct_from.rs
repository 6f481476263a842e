//! `a IS [NOT] DISTINCT FROM b`, which binds as that of PostgreSQL does.
//!
//! ```text
//! a IS DISTINCT FROM b AND c      ─▶  (a IS DISTINCT FROM b) AND c
//! a IS DISTINCT FROM b = c        ─▶  a IS DISTINCT FROM (b = c)
//! NOT a IS NOT DISTINCT FROM b    ─▶  NOT (a IS NOT DISTINCT FROM b)
//! ```
//! The parser takes everything behind these words for their right side. Operators that it does not
//! know it takes behind comparisons and before `NOT`: the words are one of those meanwhile.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{BinaryOperator, Expr, Query, VisitMut, VisitorMut};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};

const DISTINCT: &str = "IS DISTINCT FROM";
const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// The tokens with these words as the one operator that [`bind`] reads.
pub(super) fn marked(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut marked = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let mut token = token.clone();
        at += 1;
        if let Some((operator, length)) = operator_at(&tokens[at - 1..]) {
            at += length - 1;
            token.token = Token::CustomBinaryOperator(operator.to_owned());
            token.span.end = tokens[at - 1].span.end;
        }
        marked.push(token);
    }
    marked
}

/// The operator that the next tokens spell, and how many they are with the blanks between them.
fn operator_at(tokens: &[TokenWithSpan]) -> Option<(&'static str, usize)> {
    use Keyword::{DISTINCT as DISTINCT_WORD, FROM, IS, NOT};
    let solid = tokens.iter().enumerate();
    let mut solid =
        solid.filter(|(at, token)| *at == 0 || !matches!(token.token, Token::Whitespace(_)));
    let mut next = || match solid.next() {
        Some((
            at,
            TokenWithSpan {
                token: Token::Word(word),
                ..
            },
        )) => Some((at, word.keyword)),
        _ => None,
    };
    let (0, IS) = next()? else { return None };
    let (operator, word) = match next()?.1 {
        NOT => (NOT_DISTINCT, next()?.1),
        word => (DISTINCT, word),
    };
    match (word, next()?) {
        (DISTINCT_WORD, (at, FROM)) => Some((operator, at + 1)),
        _ => None,
    }
}

/// Gives `query` the comparisons that these operators stand for.
pub(crate) fn bind(query: &mut Query) {
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = query.visit(&mut Comparisons);
}

struct Comparisons;

impl VisitorMut for Comparisons {
    type Break = ();

    fn post_visit_expr(&mut self, value: &mut Expr) -> ControlFlow<()> {
        if let Expr::BinaryOp {
            left,
            op: BinaryOperator::Custom(operator),
            right,
        } = value
        {
            let sides = (left.clone(), right.clone());
            match operator.as_str() {
                DISTINCT => *value = Expr::IsDistinctFrom(sides.0, sides.1),
                NOT_DISTINCT => *value = Expr::IsNotDistinctFrom(sides.0, sides.1),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}
