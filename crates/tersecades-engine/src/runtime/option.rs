//! How a query is run, apart from what it asks.

use super::encoding::EncodeOptions;
use super::retained::Keep;

/// How a query is run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Worker threads; 1 runs everything on the caller's thread.
    pub threads: usize,
    /// Whether and how much of the stream is kept, encoded, for further queries.
    pub keep: Option<Keep>,
    /// Whether late rows are kept for [`take_late`], not only counted.
    ///
    /// [`take_late`]: super::Running::take_late
    pub keep_late: bool,
    /// Most bytes of window state and retained batches.
    pub memory_bytes_limit: Option<usize>,
    /// How columns are encoded.
    pub encoding: EncodeOptions,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            threads: 1,
            keep: None,
            keep_late: false,
            memory_bytes_limit: None,
            encoding: EncodeOptions::default(),
        }
    }
}
