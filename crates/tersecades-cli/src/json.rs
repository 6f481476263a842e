//! JSON out: objects and arrays written piece by piece.

use std::fmt::Write as _;

/// A JSON object under construction.
#[derive(Debug, Default)]
pub(crate) struct Object(String);

impl Object {
    fn key(&mut self, name: &str) {
        self.0.push_str(if self.0.is_empty() { "" } else { "," });
        self.0.push_str(&quoted(name));
        self.0.push(':');
    }

    /// Adds a text.
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        self.key(name);
        self.0.push_str(&quoted(value));
        self
    }

    /// Adds a whole number.
    pub(crate) fn whole(mut self, name: &str, value: u64) -> Self {
        self.key(name);
        self.0.push_str(&value.to_string());
        self
    }

    /// Adds a number; what is not finite becomes null.
    pub(crate) fn number(mut self, name: &str, value: f64) -> Self {
        self.key(name);
        match value.is_finite() {
            true => self.0.push_str(&value.to_string()),
            false => self.0.push_str("null"),
        }
        self
    }

    /// Adds an array of objects.
    pub(crate) fn list(mut self, name: &str, items: impl IntoIterator<Item = Object>) -> Self {
        self.key(name);
        let items: Vec<String> = items.into_iter().map(Object::finish).collect();
        // Writing to a string cannot fail.
        let _ = write!(self.0, "[{}]", items.join(","));
        self
    }

    /// The object as text.
    pub(crate) fn finish(self) -> String {
        format!("{{{}}}", self.0)
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                // Control characters lie below U+00A0, so four digits hold them.
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_parses() {
        let inner = Object::default().number("ns", f64::NAN).number("b", 0.25);
        let text = Object::default()
            .text("na\"me", "a\\b\n\u{7f}é")
            .whole("rows", u64::MAX)
            .list("columns", [inner, Object::default()])
            .finish();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["na\"me"], "a\\b\n\u{7f}é");
        assert_eq!(parsed["rows"], u64::MAX);
        assert_eq!(parsed["columns"][0]["b"], 0.25);
        assert!(parsed["columns"][0]["ns"].is_null());
        assert_eq!(parsed["columns"].as_array().unwrap().len(), 2);
    }
}
