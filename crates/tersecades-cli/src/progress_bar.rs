//! A progress bar on stderr; nothing where stderr is no terminal.

use indicatif::{ProgressBar, ProgressStyle};

use crate::log::{self, Level};

const TEMPLATE: &str = "{msg} {wide_bar} {human_pos} of {human_len} rows, {per_sec}, {eta} left";
const TEMPLATE_BYTES: &str =
    "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
const TEMPLATE_ENDLESS: &str = "{msg} {spinner} {human_pos} rows, {per_sec}";

#[cfg(feature = "sql")]
const TEMPLATE_STEPS: &str = "{msg} {wide_bar} {pos} of {len} runs, {eta} left";

/// Shows how many rows or bytes are done.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Starts a bar for `rows`, or a counter where their number is unknown.
    pub(crate) fn start(what: &'static str, rows: Option<u64>) -> Self {
        match rows {
            Some(rows) => Self::of(what, ProgressBar::new(rows), TEMPLATE),
            None => Self::of(what, ProgressBar::new_spinner(), TEMPLATE_ENDLESS),
        }
    }

    /// Starts a bar for `bytes`.
    pub(crate) fn start_bytes(what: &'static str, bytes: u64) -> Self {
        Self::of(what, ProgressBar::new(bytes), TEMPLATE_BYTES)
    }

    fn of(what: &'static str, bar: ProgressBar, template: &str) -> Self {
        let bar = match log::says(Level::Info) {
            true => bar,
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Progress(bar)
    }

    /// Starts a bar for so many runs.
    #[cfg(feature = "sql")]
    pub(crate) fn runs(what: &'static str, runs: usize) -> Self {
        Self::of(what, ProgressBar::new(runs as u64), TEMPLATE_STEPS)
    }

    /// So many are done.
    pub(crate) fn show(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
