//! `session`: for each group, rows that follow each other closely.

use std::time::Duration;

use super::{Shape, Window, WindowKind};

/// What users see of the kind.
pub const KIND: WindowKind = WindowKind {
    name: "session",
    arguments: "gap",
    summary: "for each group, rows closer than the gap to each other; ends a gap after the last",
};

/// For each group, windows of rows less than `gap` apart.
pub fn session(gap: Duration) -> Window {
    Shape::Session { gap }.into()
}
