//! JSON text taken apart in place: no tree is built and nothing is copied but escaped texts.

use std::borrow::Cow;

/// How deep objects and arrays may lie in each other.
pub(super) const DEPTH_LIMIT: usize = 64;

/// A value that is no object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Leaf<'a> {
    /// `null`, or no value at all.
    Null,
    /// `true`, `false` or a number, as it stands.
    Bare(&'a str),
    /// A text, without quotes and escapes.
    Text(Cow<'a, str>),
    /// An array, or an object that is not taken apart, as it stands.
    Json(&'a str),
}

/// Why text is not JSON, to follow "the row".
pub(super) type Misread = String;

/// What comes of scanning.
pub(super) type Scan<T> = Result<T, Misread>;

/// What is done with the values of a record.
pub(super) trait Visit<'a> {
    /// Whether an object under `path` is one value and not taken apart.
    fn is_whole(&self, path: &str) -> bool;

    /// Takes the value under `path`: keys joined by dots.
    fn leaf(&mut self, path: &str, leaf: Leaf<'a>) -> Scan<()>;

    /// Learns that an object lies under `path`; its values follow.
    fn object(&mut self, path: &str) -> Scan<()>;
}

/// Walks over the object that `text` is.
///
/// # Errors
/// What is wrong with the text, or what `visit` has against it.
pub(super) fn walk<'a>(text: &'a str, path: &mut String, visit: &mut impl Visit<'a>) -> Scan<()> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.skip_blank();
    if scanner.peek() != Some(b'{') {
        return Err("is not a JSON object".to_owned());
    }
    path.clear();
    scanner.walk_object(path, visit, 0)?;
    scanner.skip_blank();
    match scanner.peek() {
        None => Ok(()),
        Some(_) => Err(scanner.misread("nothing after the object")),
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn misread(&self, wanted: &str) -> Misread {
        let rest = self.text.get(self.at..).unwrap_or_default();
        match rest.chars().next() {
            Some(found) => format!(
                "is not JSON: byte {} is {found:?} where {wanted} should be",
                self.at
            ),
            None => format!("is not JSON: it ends where {wanted} should be"),
        }
    }

    fn expect(&mut self, byte: u8, wanted: &str) -> Scan<()> {
        self.skip_blank();
        match self.peek() == Some(byte) {
            true => {
                self.at += 1;
                Ok(())
            }
            false => Err(self.misread(wanted)),
        }
    }

    /// Walks over an object whose `{` is next.
    fn walk_object(
        &mut self,
        path: &mut String,
        visit: &mut impl Visit<'a>,
        depth: usize,
    ) -> Scan<()> {
        self.check_depth(depth)?;
        self.at += 1;
        self.skip_blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_blank();
            let key = self.string()?;
            self.expect(b':', "`:`")?;
            self.skip_blank();
            let length = path.len();
            if depth > 0 {
                path.push('.');
            }
            path.push_str(&key);
            match self.peek() {
                Some(b'{') if !visit.is_whole(path) => {
                    visit.object(path)?;
                    self.walk_object(path, visit, depth + 1)?;
                }
                _ => {
                    let leaf = self.leaf(depth + 1)?;
                    visit.leaf(path, leaf)?;
                }
            }
            path.truncate(length);
            self.skip_blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.misread("`,` or `}`")),
            }
        }
    }

    fn check_depth(&self, depth: usize) -> Scan<()> {
        match depth < DEPTH_LIMIT {
            true => Ok(()),
            false => Err(format!("holds values more than {DEPTH_LIMIT} levels deep")),
        }
    }

    fn leaf(&mut self, depth: usize) -> Scan<Leaf<'a>> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => Ok(Leaf::Text(self.string()?)),
            Some(b'{' | b'[') => {
                self.skip_nested(depth)?;
                Ok(Leaf::Json(
                    self.text.get(start..self.at).unwrap_or_default(),
                ))
            }
            _ => {
                let is_end = |c: char| matches!(c, ',' | '}' | ']' | ' ' | '\t' | '\n' | '\r');
                let rest = self.text.get(self.at..).unwrap_or_default();
                let bare = rest.get(..rest.find(is_end).unwrap_or(rest.len()));
                let bare = bare.unwrap_or_default();
                if !is_bare(bare) {
                    return Err(self.misread("a value"));
                }
                self.at += bare.len();
                match bare {
                    "null" => Ok(Leaf::Null),
                    bare => Ok(Leaf::Bare(bare)),
                }
            }
        }
    }

    /// Passes over an array or object whose bracket is next.
    fn skip_nested(&mut self, depth: usize) -> Scan<()> {
        self.check_depth(depth)?;
        let is_object = self.peek() == Some(b'{');
        let close = if is_object { b'}' } else { b']' };
        self.at += 1;
        self.skip_blank();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_blank();
            if is_object {
                self.string()?;
                self.expect(b':', "`:`")?;
                self.skip_blank();
            }
            self.leaf(depth + 1)?;
            self.skip_blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(found) if found == close => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.misread("`,` or the end of an array or object")),
            }
        }
    }

    /// The text whose `"` is next.
    fn string(&mut self) -> Scan<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.misread("`\"`"));
        }
        let start = self.at + 1;
        let (mut at, mut is_escaped) = (start, false);
        loop {
            match self.text.as_bytes().get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    at += 2;
                }
                Some(0..0x20) => {
                    self.at = at;
                    return Err(self.misread("a character of a text"));
                }
                Some(_) => at += 1,
                None => return Err("is not JSON: a text is not closed".to_owned()),
            }
        }
        let raw = self.text.get(start..at).unwrap_or_default();
        self.at = at + 1;
        match is_escaped {
            false => Ok(Cow::Borrowed(raw)),
            true => unescape(raw).map(Cow::Owned),
        }
    }
}

/// Whether `text` is `null`, `true`, `false` or a number.
fn is_bare(text: &str) -> bool {
    match text {
        "null" | "true" | "false" | "NaN" | "Infinity" | "-Infinity" => true,
        _ => is_number(text.strip_prefix('-').unwrap_or(text).as_bytes()),
    }
}

/// Whether `text` is a JSON number without its sign.
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text.first() == Some(&b'0')) {
        return false;
    }
    let mut rest = text.get(whole..).unwrap_or_default();
    if let [b'.', fraction @ ..] = rest {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = fraction.get(length..).unwrap_or_default();
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', digits @ ..] => digits,
            digits => digits,
        };
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

/// `raw` with its escapes resolved.
fn unescape(raw: &str) -> Scan<String> {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let mut letters = escape.chars();
        let letter = letters.next().unwrap_or_default();
        rest = letters.as_str();
        let plain = match letter {
            '"' | '\\' | '/' => letter,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (decoded, after) = unescape_unicode(rest)?;
                rest = after;
                decoded
            }
            other => return Err(format!("is not JSON: `\\{other}` is no escape")),
        };
        text.push(plain);
    }
    text.push_str(rest);
    Ok(text)
}

/// The character of `XXXX`, or of `XXXX\uXXXX` for a pair, and what follows it.
fn unescape_unicode(text: &str) -> Scan<(char, &str)> {
    let wrong = || "is not JSON: a `\\u` escape names no character".to_owned();
    let (first, rest) = hexadecimal(text).ok_or_else(wrong)?;
    if let Some(found) = char::from_u32(first) {
        return Ok((found, rest));
    }
    let second = rest.strip_prefix("\\u").and_then(hexadecimal);
    let (second, rest) = second.ok_or_else(wrong)?;
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return Err(wrong());
    }
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code)
        .map(|found| (found, rest))
        .ok_or_else(wrong)
}

/// Four hexadecimal digits and what follows them.
fn hexadecimal(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok()?;
    is_hexadecimal.then_some((code, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Collect(Vec<(String, Leaf<'static>)>);

    impl Visit<'static> for Collect {
        fn is_whole(&self, path: &str) -> bool {
            path.ends_with("whole")
        }

        fn leaf(&mut self, path: &str, leaf: Leaf<'static>) -> Scan<()> {
            self.0.push((path.to_owned(), leaf));
            Ok(())
        }

        fn object(&mut self, _path: &str) -> Scan<()> {
            Ok(())
        }
    }

    fn leaves(text: &'static str) -> Scan<Vec<(String, Leaf<'static>)>> {
        let mut collect = Collect(Vec::new());
        walk(text, &mut String::new(), &mut collect).map(|()| collect.0)
    }

    #[test]
    fn objects_are_flattened_and_arrays_kept() {
        let text = r#" {"a":-1.5e3,"b":{"c":"x\n\u00e9\ud83d\ude00","d":{"e":null}},
            "f":[1,{"g":"]"}], "whole":{"h":1}, "i":{}} "#;
        let expected = [
            ("a", Leaf::Bare("-1.5e3")),
            ("b.c", Leaf::Text("x\n\u{e9}\u{1f600}".into())),
            ("b.d.e", Leaf::Null),
            ("f", Leaf::Json(r#"[1,{"g":"]"}]"#)),
            ("whole", Leaf::Json(r#"{"h":1}"#)),
        ];
        let expected = expected.map(|(path, leaf)| (path.to_owned(), leaf));
        assert_eq!(leaves(text), Ok(expected.to_vec()));
        assert_eq!(leaves("{}"), Ok(vec![]));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            "1",
            "[1]",
            "{",
            "{}x",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":+1}",
            "{\"a\":1e}",
            "{\"a\":tru}",
            "{\"a\":\"x}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":\"\\u12g4\"}",
            "{\"a\":[1 2]}",
            "{\"a\":[1,]}",
            "{\"a\":\"\u{1}\"}",
            "{\"a\":\"\\",
            "{\"a\":{\"b\":1]}",
            "{\"a\":\"\\ud800\\u0041\"}",
        ] {
            assert!(leaves(text).is_err(), "{text}");
        }
    }

    #[test]
    fn depth_is_limited() {
        for (open, close) in [("{\"a\":", "}"), ("[", "]")] {
            let nested = |levels: usize| {
                let text = format!("{{\"a\":{}1{}}}", open.repeat(levels), close.repeat(levels));
                leaves(Box::leak(text.into_boxed_str())).map(|leaves| leaves.len())
            };
            assert_eq!(nested(DEPTH_LIMIT - 2), Ok(1));
            assert!(nested(DEPTH_LIMIT + 1).unwrap_err().contains("levels deep"));
            assert!(nested(100_000).is_err());
        }
    }
}
