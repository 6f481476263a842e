//! Aligned text tables, and the same as Markdown.

use std::fmt::Write as _;

/// A table that grows row by row.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Whether the cells of each column stand to the right.
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; a name that starts with `>` has its cells to the right.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let right = columns.iter().map(|name| name.starts_with('>')).collect();
        let names = columns
            .iter()
            .map(|name| name.trim_start_matches('>').to_owned());
        Table {
            right,
            rows: vec![names.collect()],
        }
    }

    /// Adds a row of one cell for each column.
    pub(crate) fn push<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        debug_assert_eq!(cells.len(), self.right.len());
        self.rows.push(cells);
    }

    /// As aligned text, each line after `indent`.
    pub(crate) fn to_text(&self, indent: &str) -> String {
        let mut widths = vec![0; self.right.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let (head, body) = self.rows.split_at(1);
        let mut text = String::new();
        for row in head.iter().chain([&rule]).chain(body) {
            let mut line = indent.to_owned();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                let padding = " ".repeat(width - cell.chars().count());
                match right {
                    true => line.extend([&padding, cell.as_str(), "  "]),
                    false => line.extend([cell.as_str(), &padding, "  "]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// As a Markdown table.
    pub(crate) fn to_markdown(&self) -> String {
        let rule = self
            .right
            .iter()
            .map(|right| if *right { "---:" } else { "---" });
        let rule = rule.map(str::to_owned).collect();
        let (head, body) = self.rows.split_at(1);
        let mut text = String::new();
        for row in head.iter().chain([&rule]).chain(body) {
            for cell in row {
                // Writing to a string cannot fail.
                let _ = write!(text, "| {} ", cell.replace('|', "\\|"));
            }
            text.push_str("|\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_line_up() {
        let mut table = Table::new(&["name", ">rows"]);
        table.push(["é", "1,000"]);
        table.push(["long name", "7"]);
        let expected = "  name        rows\n  ---------  -----\n  é          1,000\n  \
                        long name      7\n";
        assert_eq!(table.to_text("  "), expected);
    }

    #[test]
    fn markdown_escapes_the_bar() {
        let mut table = Table::new(&["a|b", ">n"]);
        table.push(["x", "1"]);
        assert_eq!(
            table.to_markdown(),
            "| a\\|b | n |\n| --- | ---: |\n| x | 1 |\n"
        );
    }
}
