//! Spellings that the planner lacks, as others that it has.
//!
//! ```text
//! 1_000                      ─▶ 1000
//! mod(a, b)                  ─▶ (a) % (b)
//! a // b                     ─▶ a / b
//! a ^ b                      ─▶ power(a, b)
//! if(c, a, b)                ─▶ CASE WHEN c THEN a ELSE b END
//! FETCH FIRST 5 ROWS ONLY    ─▶ LIMIT 5
//! ```

use datafusion_sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Fetch, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, LimitClause, Query, Value,
};
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use tersecades_columnar::error::{Error, Result};

use super::call::clause_of;
use super::place;
use super::window::call_of;

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

/// Functions that are written as operators or special forms.
pub(super) const RESPELT: [&str; 2] = ["mod", "if"];

/// Writes a call or an operator as what the planner knows.
pub(super) fn respell(value: &mut Expr) {
    let respelt = match value {
        Expr::BinaryOp {
            op: op @ BinaryOperator::DuckIntegerDivide,
            ..
        } => {
            *op = BinaryOperator::Divide;
            return;
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::BitwiseXor,
            right,
        } => {
            let operands = [(**left).clone(), (**right).clone()];
            Some(Expr::Function(call_of("power", operands)))
        }
        Expr::Function(function) if clause_of(function).is_none() => respelt(function),
        _ => None,
    };
    if let Some(respelt) = respelt {
        *value = Expr::Nested(Box::new(respelt));
    }
}

fn respelt(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let arguments = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument.clone()),
        _ => None,
    });
    let arguments = arguments.collect::<Option<Vec<Expr>>>()?;
    let nested = |side: &Expr| Box::new(Expr::Nested(Box::new(side.clone())));
    match function.name.to_string().to_lowercase().as_str() {
        "mod" => match arguments.as_slice() {
            [left, right] => Some(Expr::BinaryOp {
                left: nested(left),
                op: BinaryOperator::Modulo,
                right: nested(right),
            }),
            _ => None,
        },
        "if" => match arguments.as_slice() {
            [condition, result, otherwise] => Some(Expr::Case {
                case_token: AttachedToken::empty(),
                end_token: AttachedToken::empty(),
                operand: None,
                conditions: vec![CaseWhen {
                    condition: condition.clone(),
                    result: result.clone(),
                }],
                else_result: Some(Box::new(otherwise.clone())),
            }),
            _ => None,
        },
        _ => None,
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
