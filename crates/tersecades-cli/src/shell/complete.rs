//! What the word before the cursor may become: keywords, functions, tables, columns, commands.

#[cfg(feature = "editor")]
use tersecades::sql::Session;

use super::command::COMMANDS;

/// Words of the language.
const KEYWORDS: &[&str] = &[
    "ALLOWED LATENESS",
    "AND",
    "AS",
    "ASC",
    "ASOF JOIN",
    "BETWEEN",
    "BY",
    "CALENDAR",
    "CASE",
    "CAST",
    "COPY",
    "COUNT",
    "CREATE STREAM",
    "CREATE TABLE",
    "CUMULATE",
    "DESC",
    "DESCRIBE",
    "DESCRIPTOR",
    "DISTINCT",
    "ELSE",
    "EMIT",
    "END",
    "EXISTS",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "EXPLAIN CODECS",
    "FILTER",
    "FROM",
    "FULL",
    "GROUP BY",
    "HAVING",
    "HOP",
    "IN",
    "INSERT INTO",
    "INTERVAL",
    "IS",
    "JOIN",
    "KEEP",
    "LATE INTO",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER BY",
    "OVER",
    "PARTITION BY",
    "RIGHT",
    "ROLLUP",
    "SELECT",
    "SESSION",
    "SET",
    "SHOW TABLES",
    "SUMMARIZE",
    "THEN",
    "TUMBLE",
    "UNION ALL",
    "USING",
    "VALUES",
    "WATERMARK FOR",
    "WHEN",
    "WHERE",
    "WITH",
];

/// The words that are known.
#[derive(Debug, Default)]
pub(super) struct Words {
    names: Vec<String>,
}

impl Words {
    /// Takes over the names of a session.
    #[cfg(feature = "editor")]
    pub(super) fn learn(&mut self, session: &Session) {
        self.names.clear();
        for table in session.table_names() {
            if let Some(schema) = session.table_schema(table) {
                let columns = schema.fields().iter().map(|field| field.name().clone());
                self.names.extend(columns);
            }
            self.names.push(table.to_owned());
        }
        self.names
            .extend(session.function_names().map(str::to_owned));
        self.names.sort();
        self.names.dedup();
    }

    /// Where the word before the cursor starts, and what it may become.
    pub(super) fn at(&self, before: &str) -> (usize, Vec<String>) {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let start = before
            .char_indices()
            .rev()
            .take_while(|(_, c)| is_part(*c))
            .last()
            .map_or(before.len(), |(at, _)| at);
        let word = &before[start..];
        if before[..start].trim_start() == "." {
            let commands = COMMANDS
                .iter()
                .map(|(name, _)| name.trim_start_matches('.'));
            return (start, starting(commands, word));
        }
        if word.is_empty() {
            return (start, Vec::new());
        }
        let names = self.names.iter().map(String::as_str);
        let mut words = starting(names, word);
        words.extend(starting(KEYWORDS.iter().copied(), word));
        (start, words)
    }
}

fn starting<'w>(words: impl Iterator<Item = &'w str>, start: &str) -> Vec<String> {
    let start = start.to_lowercase();
    words
        .filter(|word| word.to_lowercase().starts_with(&start))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_to_names_keywords_and_commands() {
        let names = ["rtt_us", "round"].map(str::to_owned).to_vec();
        let words = Words { names };
        assert_eq!(words.at("SELECT rt"), (7, vec!["rtt_us".to_owned()]));
        assert_eq!(words.at("sel"), (0, vec!["SELECT".to_owned()]));
        assert_eq!(words.at(".ti"), (1, vec!["timer".to_owned()]));
        assert_eq!(words.at("SELECT "), (7, Vec::new()));
        assert_eq!(words.at("é").0, 0);
    }
}
