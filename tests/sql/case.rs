//! Files of cases in the manner of sqllogictest.
//!
//! ```text
//! # what the case is about
//! statement                      query [ordered] [ours: RULE]      error TEXT
//! CREATE TABLE t AS ...          SELECT a, b FROM t                SELECT nothing FROM t
//!                                ----
//!                                1 x
//! ```
//! Cases end with an empty line, cells are separated by tabs, empty text is `(empty)`. `ours: RULE`
//! marks an answer that DuckDB gives otherwise, by the rule of that name in `docs/sql.md`.

use crate::answer::Rows;

/// What a case asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// Something to be done.
    Statement,
    /// Rows.
    Query {
        ordered: bool,
        rule: Option<String>,
        rows: Option<Rows>,
    },
    /// An error that holds this text.
    Error(String),
}

/// A case.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) line: usize,
    pub(crate) comments: Vec<String>,
    pub(crate) kind: Kind,
    pub(crate) sql: String,
}

/// The cases of a file.
pub(crate) fn parse(text: &str) -> Vec<Case> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut cases, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        if lines[at].trim().is_empty() {
            at += 1;
            continue;
        }
        let end = (at..lines.len())
            .find(|&line| lines[line].is_empty())
            .unwrap_or(lines.len());
        cases.push(parse_case(&lines[at..end], at + 1));
        at = end;
    }
    cases
}

fn parse_case(lines: &[&str], line: usize) -> Case {
    let is_comment = |line: &&&str| line.starts_with('#');
    let comments: Vec<String> = lines
        .iter()
        .take_while(is_comment)
        .map(|line| (*line).to_owned())
        .collect();
    let rest = &lines[comments.len()..];
    let Some((head, body)) = rest.split_first() else {
        panic!("line {line}: a comment without a case");
    };
    let split = body.iter().position(|line| *line == "----");
    let sql = body[..split.unwrap_or(body.len())].join("\n");
    let rows = split.map(|split| {
        let rows = body[split + 1..].iter();
        rows.map(|row| row.split('\t').map(str::to_owned).collect())
            .collect()
    });
    let kind = match head.split_once(' ').unwrap_or((head, "")) {
        ("statement", _) => Kind::Statement,
        ("error", text) => Kind::Error(text.to_owned()),
        ("query", options) => Kind::Query {
            ordered: options.contains("ordered"),
            rule: options
                .split_once("ours: ")
                .map(|(_, rule)| rule.to_owned()),
            rows,
        },
        _ => panic!("line {line}: `{head}` is neither statement, query nor error"),
    };
    Case {
        line,
        comments,
        kind,
        sql,
    }
}

/// The file of these cases.
pub(crate) fn write(cases: &[Case]) -> String {
    let mut text = String::new();
    for case in cases {
        case.comments
            .iter()
            .for_each(|comment| text.push_str(&format!("{comment}\n")));
        let (head, rows) = match &case.kind {
            Kind::Statement => ("statement".to_owned(), None),
            Kind::Error(message) => (format!("error {message}"), None),
            Kind::Query {
                ordered,
                rule,
                rows,
            } => {
                let ordered = if *ordered { " ordered" } else { "" };
                let rule = rule
                    .as_ref()
                    .map_or(String::new(), |rule| format!(" ours: {rule}"));
                (format!("query{ordered}{rule}"), rows.as_ref())
            }
        };
        text.push_str(&format!("{head}\n{}\n", case.sql));
        if let Some(rows) = rows {
            text.push_str("----\n");
            rows.iter()
                .for_each(|row| text.push_str(&format!("{}\n", row.join("\t"))));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
