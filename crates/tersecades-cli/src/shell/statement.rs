//! Lines gathered to statements: a `;` ends one, unless it stands in a text (`'a;b'`, `$$a;b$$`), a
//! name or a comment. Comments alone are none.

/// Lines that are not yet a whole statement.
#[derive(Debug, Default)]
pub(super) struct Pending {
    text: String,
}

/// What surrounds a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// `'text'` or `"name"`, up to this character.
    Quotes(char),
    /// `$$text$$` or `$mark$text$mark$` that has not ended.
    Dollars,
    LineComment,
    /// `/* comments */`, which may hold others.
    Comment(usize),
}

impl Pending {
    /// Whether no statement has begun.
    pub(super) fn is_empty(&self) -> bool {
        says_nothing(&self.text)
    }

    /// Adds a line; the statements that it ends.
    pub(super) fn add(&mut self, line: &str) -> Vec<String> {
        self.text.push_str(line);
        self.text.push('\n');
        let ends = scan(&self.text).ends;
        let mut statements = Vec::with_capacity(ends.len());
        let mut start = 0;
        for end in ends {
            if !says_nothing(&self.text[start..end - 1]) {
                statements.push(self.text[start..end].trim().to_owned());
            }
            start = end;
        }
        self.text.drain(..start);
        statements
    }

    /// What stands behind the last `;`.
    pub(super) fn rest(self) -> String {
        self.text
    }
}

/// What is in a text.
struct Scanned {
    /// The places behind each `;` that ends a statement.
    ends: Vec<usize>,
    /// Whether there is anything but blanks and comments.
    speaks: bool,
    /// What surrounds what comes behind it.
    inside: Inside,
}

/// Whether there is nothing but blanks, and comments that have ended.
fn says_nothing(text: &str) -> bool {
    let Scanned { speaks, inside, .. } = scan(text);
    !speaks && matches!(inside, Inside::Nothing | Inside::LineComment)
}

fn scan(text: &str) -> Scanned {
    let (mut ends, mut speaks, mut inside) = (Vec::new(), false, Inside::Nothing);
    let is_comment = |inside| matches!(inside, Inside::LineComment | Inside::Comment(_));
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if inside == Inside::Nothing
            && let Some(mark) = dollars(text, at)
        {
            speaks = true;
            let from = at + mark.len();
            let Some(length) = text[from..].find(mark) else {
                inside = Inside::Dollars;
                break;
            };
            let end = from + length + mark.len();
            while characters.next_if(|(next, _)| *next < end).is_some() {}
            continue;
        }
        let next = characters.peek().map(|(_, next)| *next);
        let before = inside;
        inside = match (inside, c, next) {
            (Inside::Nothing, '\'' | '"', _) => Inside::Quotes(c),
            (Inside::Quotes(quote), c, _) if c == quote => Inside::Nothing,
            (Inside::Nothing, '-', Some('-')) => Inside::LineComment,
            (Inside::LineComment, '\n', _) => Inside::Nothing,
            (Inside::Nothing, '/', Some('*')) => Inside::Comment(1),
            (Inside::Comment(depth), '/', Some('*')) => Inside::Comment(depth + 1),
            (Inside::Comment(1), '*', Some('/')) => Inside::Nothing,
            (Inside::Comment(depth), '*', Some('/')) => Inside::Comment(depth - 1),
            (same, ..) => same,
        };
        let two_long = matches!((before, inside), (Inside::Comment(_), Inside::Nothing))
            || matches!((before, inside), (_, Inside::Comment(_)) if before != inside);
        if two_long {
            characters.next();
        }
        speaks |= !c.is_whitespace() && !is_comment(before) && !is_comment(inside);
        if c == ';' && inside == Inside::Nothing {
            ends.push(at + 1);
        }
    }
    Scanned {
        ends,
        speaks,
        inside,
    }
}

/// The `$$` or `$mark$` that begins a text at `at`.
fn dollars(text: &str, at: usize) -> Option<&str> {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    let behind_name = text[..at].ends_with(|c| in_name(c) || c == '$');
    let mark = text[at..].strip_prefix('$').filter(|_| !behind_name)?;
    let name = &mark[..mark.find(|c| !in_name(c))?];
    let is_mark = mark[name.len()..].starts_with('$') && !name.starts_with(char::is_numeric);
    is_mark.then(|| &text[at..at + name.len() + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_at_a_semicolon_outside_of_quotes_and_comments() {
        let mut pending = Pending::default();
        assert!(pending.is_empty());
        assert!(pending.add("SELECT ';' -- ; no").is_empty());
        assert!(pending.add("/* ; /* ; */ ; */ , \";\"").is_empty());
        assert!(!pending.is_empty());
        let statements = pending.add("FROM t; SELECT 'it''s;' ; SELECT");
        assert_eq!(statements.len(), 2);
        assert!(statements[0].starts_with("SELECT ';'") && statements[0].ends_with("FROM t;"));
        assert_eq!(statements[1], "SELECT 'it''s;' ;");
        assert_eq!(pending.rest().trim(), "SELECT");
    }

    #[test]
    fn texts_between_dollars_hold_semicolons() {
        let mut pending = Pending::default();
        let statements = pending.add("SELECT $$a;b$$; SELECT $x$ ; $$ ; $x$, $1; SELECT a$b$; $$");
        let expected = [
            "SELECT $$a;b$$;",
            "SELECT $x$ ; $$ ; $x$, $1;",
            "SELECT a$b$;",
        ];
        assert_eq!(statements, expected);
        assert!(pending.add("; still;").is_empty());
        assert!(!pending.is_empty());
        assert_eq!(pending.add("'$$;"), ["$$\n; still;\n'$$;"]);
        assert!(pending.is_empty());
    }

    #[test]
    fn comments_alone_are_no_statement() {
        let mut pending = Pending::default();
        assert!(pending.add("-- a comment; and its end").is_empty());
        assert!(pending.is_empty());
        assert_eq!(pending.add("SELECT 1;; ; -- done").len(), 1);
        assert!(pending.is_empty());
        assert!(pending.add("/* one that goes on").is_empty());
        assert!(!pending.is_empty());
        assert!(pending.add("*/ -- and ends").is_empty());
        assert!(pending.is_empty());
        assert!(pending.add("/* ; */ ;").is_empty());
        assert!(pending.is_empty());
    }
}
