//! `hop`: windows that overlap, or leave gaps.

use std::time::Duration;

use super::{Window, WindowKind};

/// What users see of the kind.
pub const KIND: WindowKind = WindowKind {
    name: "hop",
    arguments: "size, slide [, offset]",
    summary: "windows of one size, one starting every slide: a row is in size / slide of them",
};

/// Windows of `size`, one starting every `slide`, aligned to the epoch.
pub fn hop(size: Duration, slide: Duration) -> Window {
    Window {
        kind: KIND.name,
        size,
        slide,
        offset: Duration::ZERO,
    }
}
