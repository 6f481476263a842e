//! Lines gathered to statements: a `;` ends one, unless it stands in a text, a name or a comment.

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
    LineComment,
    /// `/* comments */`, which may hold others.
    Comment(usize),
}

impl Pending {
    /// Whether no statement has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Adds a line; the statements that it ends.
    pub(super) fn add(&mut self, line: &str) -> Vec<String> {
        self.text.push_str(line);
        self.text.push('\n');
        let ends = ends(&self.text);
        let mut statements = Vec::with_capacity(ends.len());
        let mut start = 0;
        for end in ends {
            statements.push(self.text[start..end].trim().to_owned());
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

/// The places behind each `;` that ends a statement.
fn ends(text: &str) -> Vec<usize> {
    let (mut ends, mut inside) = (Vec::new(), Inside::Nothing);
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
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
        if c == ';' && inside == Inside::Nothing {
            ends.push(at + 1);
        }
    }
    ends
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
}
