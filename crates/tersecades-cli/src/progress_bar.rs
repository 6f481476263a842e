//! A progress bar on stderr; nothing where stderr is no terminal.

use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{msg} {wide_bar} {human_pos} of {human_len} rows, {per_sec}, {eta} left";
const TEMPLATE_ENDLESS: &str = "{msg} {spinner} {human_pos} rows, {per_sec}";

/// Shows how many rows are done.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Starts a bar for `rows`, or a counter where their number is unknown.
    pub(crate) fn start(what: &'static str, rows: Option<u64>) -> Self {
        let (bar, template) = match rows {
            Some(rows) => (ProgressBar::new(rows), TEMPLATE),
            None => (ProgressBar::new_spinner(), TEMPLATE_ENDLESS),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Progress(bar)
    }

    /// `rows` are done.
    pub(crate) fn show(&self, rows: u64) {
        self.0.set_position(rows);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
