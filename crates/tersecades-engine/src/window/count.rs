//! `count`: for each group, so many rows at a time.

use super::{Shape, Window, WindowKind};

/// What users see of the kind.
pub const KIND: WindowKind = WindowKind {
    name: "count",
    arguments: "rows",
    summary: "for each group, so many rows in order of arrival; event time is not needed",
};

/// For each group, windows of `rows` rows in order of arrival.
pub fn count(rows: u64) -> Window {
    Shape::Count { rows }.into()
}
