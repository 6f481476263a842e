//! What is said on stderr besides errors, up to the level that is asked for.

use std::fmt::Display;
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ValueEnum;

use crate::console;

/// How much is said on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// What made the command fail
    Error,
    /// Also rows that did not count
    Warn,
    /// Also what was done, and progress on a terminal
    Info,
    /// Also what took how long
    Debug,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Says what is at most at `level`.
pub(crate) fn set(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether things of `level` are said.
pub(crate) fn says(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// Says something of `level`.
pub(crate) fn say(level: Level, what: impl Display) {
    if says(level) {
        console::say(what);
    }
}
