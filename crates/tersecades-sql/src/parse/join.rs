//! `ASOF JOIN`, in both spellings, becomes a join with a condition that the lowering recognises.
//!
//! ```text
//! a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts
//! a ASOF JOIN b MATCH_CONDITION (a.ts >= b.ts) ON a.k = b.k
//!   ─▶ a JOIN b ON a.k = b.k AND asof_join(a.ts >= b.ts)
//! ```
//! The grammar of queries knows one spelling and no outer ones, so the word goes as a token, and
//! a mark in the condition takes its place.

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
};
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};
use tersecades_columnar::error::{Error, Result};

use super::place;
use crate::function::join::AS_OF;

const USAGE: &str = "write a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts";

/// Words that end the tables of a `FROM` or one join of it.
const ENDS: [&str; 14] = [
    "where", "group", "having", "order", "limit", "union", "join", "left", "right", "full",
    "inner", "cross", "window", "qualify",
];

/// The tokens with a mark in the condition of each as-of join.
///
/// # Errors
/// `InvalidArgument` with the place for as-of joins without a condition.
pub(super) fn marked(tokens: &[TokenWithSpan]) -> Result<Vec<TokenWithSpan>> {
    let (mut kept, mut at) = (Vec::with_capacity(tokens.len()), 0);
    while at < tokens.len() {
        if is_as_of(tokens, at) {
            at = mark(tokens, at, &mut kept)?;
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    Ok(kept)
}

/// The tokens with `SEMI JOIN` and `ANTI JOIN` as joins that keep the left side.
pub(super) fn sided(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut before = None;
    for (at, token) in tokens.iter().enumerate() {
        let this = word(token);
        let next = solid(&tokens, at + 1).and_then(|at| word(&tokens[at]));
        let sided = ["left", "right", "as"]
            .map(Some)
            .contains(&before.as_deref());
        if matches!(this.as_deref(), Some("semi" | "anti"))
            && next.as_deref() == Some("join")
            && !sided
        {
            kept.push(TokenWithSpan::new(Token::make_keyword("LEFT"), token.span));
            kept.push(TokenWithSpan::new(
                Token::Whitespace(Whitespace::Space),
                token.span,
            ));
        }
        if !matches!(token.token, Token::Whitespace(_)) {
            before = this;
        }
        kept.push(token.clone());
    }
    kept
}

fn word(token: &TokenWithSpan) -> Option<String> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_lowercase()),
        _ => None,
    }
}

/// The place of the next token that is more than white space.
fn solid(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let blank = |at: &usize| matches!(tokens[*at].token, Token::Whitespace(_));
    (from..tokens.len()).find(|at| !blank(at))
}

fn is_as_of(tokens: &[TokenWithSpan], at: usize) -> bool {
    let next = solid(tokens, at + 1).and_then(|at| word(&tokens[at]));
    word(&tokens[at]).is_some_and(|word| word == "asof")
        && next.is_some_and(|next| ["join", "left", "inner"].contains(&next.as_str()))
}

/// Copies one as-of join up to its condition; the place where that goes on.
fn mark(tokens: &[TokenWithSpan], at: usize, kept: &mut Vec<TokenWithSpan>) -> Result<usize> {
    let wrong = |what: &str| {
        let message = format!("{what}{}", place(tokens[at].span.start));
        Error::invalid(message).hint(USAGE)
    };
    let join = (at..tokens.len()).find(|at| word(&tokens[*at]).is_some_and(|word| word == "join"));
    let join = join.ok_or_else(|| wrong("ASOF without JOIN"))?;
    let end = end_of_table(tokens, join + 1).ok_or_else(|| wrong("ASOF JOIN without ON"))?;
    kept.extend(marked(&tokens[at + 1..end])?);
    let mut push = |token: Token| kept.push(TokenWithSpan::new(token, tokens[at].span));
    let on = Token::make_keyword("ON");
    let and = Token::make_keyword("AND");
    if word(&tokens[end]).as_deref() != Some("match_condition") {
        let call = [Token::make_word(AS_OF, None), Token::LParen, Token::RParen];
        std::iter::once(on).chain(call).chain([and]).for_each(push);
        return Ok(end + 1);
    }
    let close = matching(tokens, end + 1).ok_or_else(|| wrong("MATCH_CONDITION without (...)"))?;
    [on, Token::make_word(AS_OF, None)]
        .into_iter()
        .for_each(&mut push);
    kept.extend(tokens[end + 1..=close].iter().cloned());
    let next = solid(tokens, close + 1);
    match next.and_then(|at| word(&tokens[at])).as_deref() {
        Some("on") => {
            kept.push(TokenWithSpan::new(and, tokens[at].span));
            Ok(next.unwrap_or(close) + 1)
        }
        Some("using") => Err(wrong("ASOF JOIN with USING")),
        _ => Ok(close + 1),
    }
}

/// The `ON` or `MATCH_CONDITION` behind a table.
fn end_of_table(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut depth = 0i32;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        match word(token).as_deref() {
            _ if depth < 0 => return None,
            Some("on" | "match_condition") if depth == 0 => return Some(at),
            Some(end) if depth == 0 && ENDS.contains(&end) => return None,
            _ => {}
        }
    }
    None
}

/// The end of the parentheses that open next.
fn matching(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let open = solid(tokens, from).filter(|at| tokens[*at].token == Token::LParen)?;
    let mut depth = 0i32;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Gives the mark of an as-of join the inequality of its condition: called on each expression,
/// inner ones first.
pub(super) fn claim_inequality(value: &mut Expr) {
    let Expr::BinaryOp { left, op, right } = value else {
        return;
    };
    let compares = |expr: &Expr| {
        let Expr::BinaryOp { op, .. } = expr else {
            return false;
        };
        use BinaryOperator::{Gt, GtEq, Lt, LtEq};
        matches!(op, Gt | GtEq | Lt | LtEq)
    };
    if *op != BinaryOperator::And || !compares(right) {
        return;
    }
    let inequality = FunctionArg::Unnamed(FunctionArgExpr::Expr((**right).clone()));
    if let Some(mark) = empty_mark(left)
        && let FunctionArguments::List(arguments) = &mut mark.args
    {
        arguments.args.push(inequality);
        *value = (**left).clone();
    }
}

/// The mark among the terms of a conjunction that has no inequality yet.
fn empty_mark(value: &mut Expr) -> Option<&mut Function> {
    match value {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => match empty_mark(left) {
            Some(mark) => Some(mark),
            None => empty_mark(right),
        },
        Expr::Function(function) if function.name.to_string() == AS_OF => {
            let is_empty = matches!(&function.args,
                FunctionArguments::List(list) if list.args.is_empty());
            is_empty.then_some(function)
        }
        _ => None,
    }
}
