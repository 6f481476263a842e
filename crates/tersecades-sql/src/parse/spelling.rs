//! Spellings that the planner lacks, as others that it has.
//!
//! ```text
//! 1_000                      ─▶ 1000
//! mod(a, b)                  ─▶ (a) % (b)
//! FETCH FIRST 5 ROWS ONLY    ─▶ LIMIT 5
//! ```

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Fetch, FunctionArg, FunctionArgExpr, FunctionArguments, LimitClause,
    Query, Value,
};
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use tersecades_columnar::error::{Error, Result};

use super::place;

/// The tokens with numbers whole: their digits may be grouped by `_`.
///
/// # Errors
/// `InvalidArgument` with the place for numbers that run into a word.
pub(super) fn whole_numbers(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut whole: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let before = whole.last_mut().map(|before| &mut before.token);
        match (before, &token.token) {
            (Some(Token::Number(number, _)), Token::Word(word)) => {
                let grouped = word.quote_style.is_none() && is_digits_in_groups(&word.value);
                if !grouped {
                    let message = format!("`{number}{word}` is no number");
                    let message = format!("{message}{}", place(token.span.start));
                    return Err(Error::invalid(message).hint("put a blank behind the number"));
                }
                number.extend(word.value.chars().filter(char::is_ascii_digit));
            }
            (Some(Token::Number(number, _)), Token::Number(fraction, _)) => {
                number.push_str(fraction);
            }
            _ => whole.push(token),
        }
    }
    Ok(whole)
}

/// `_000_000`: single underscores, each before a digit.
fn is_digits_in_groups(text: &str) -> bool {
    let groups = text.strip_prefix('_').unwrap_or_default().split('_');
    groups
        .into_iter()
        .all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Writes a call of `mod` as the operator.
pub(super) fn respell(value: &mut Expr) {
    let Expr::Function(function) = value else {
        return;
    };
    let FunctionArguments::List(list) = &function.args else {
        return;
    };
    if !function.name.to_string().eq_ignore_ascii_case("mod") || function.over.is_some() {
        return;
    }
    if let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(left)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(right)),
    ] = list.args.as_slice()
    {
        let nested = |side: &Expr| Box::new(Expr::Nested(Box::new(side.clone())));
        let remainder = Expr::BinaryOp {
            left: nested(left),
            op: BinaryOperator::Modulo,
            right: nested(right),
        };
        *value = Expr::Nested(Box::new(remainder));
    }
}

/// Writes `FETCH FIRST n ROWS ONLY` as `LIMIT n`.
pub(super) fn fetch_as_limit(query: &mut Query) {
    let Some(Fetch {
        with_ties: false,
        percent: false,
        quantity,
    }) = &query.fetch
    else {
        return;
    };
    let one = || Expr::Value(Value::Number("1".to_owned(), false).into());
    let rows = quantity.clone().unwrap_or_else(one);
    let (offset, limit_by) = match query.limit_clause.take() {
        None => (None, Vec::new()),
        Some(LimitClause::LimitOffset {
            limit: None,
            offset,
            limit_by,
        }) => (offset, limit_by),
        both => {
            query.limit_clause = both;
            return;
        }
    };
    query.fetch = None;
    query.limit_clause = Some(LimitClause::LimitOffset {
        limit: Some(rows),
        offset,
        limit_by,
    });
}
