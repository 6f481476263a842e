//! `tumble`: windows side by side.

use std::time::Duration;

use super::{Shape, Window, WindowKind};

/// What users see of the kind.
pub const KIND: WindowKind = WindowKind {
    name: "tumble",
    arguments: "size [, offset]",
    summary: "windows of one size, side by side: every row is in exactly one",
};

/// Windows of `size`, side by side, aligned to the epoch.
pub fn tumble(size: Duration) -> Window {
    Shape::Tumble { size }.into()
}
