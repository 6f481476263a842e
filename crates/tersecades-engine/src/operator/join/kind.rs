//! Which rows a join hands on, and how it names and compares.

use tersecades_columnar::error::{Error, Result};

use crate::expression::Expression;

/// Which rows a join hands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and rows of the left stream without one.
    Left,
    /// Pairs, and rows of the right stream without one.
    Right,
    /// Pairs, and rows of both streams without one.
    Full,
    /// Rows of the left stream that have a pair.
    LeftSemi,
    /// Rows of the left stream that have none.
    LeftAnti,
    /// Rows of the right stream that have a pair.
    RightSemi,
    /// Rows of the right stream that have none.
    RightAnti,
    /// Every row of one stream with every row of the other.
    Cross,
}

impl JoinKind {
    /// Whether columns of the left stream come out.
    pub fn shows_left(self) -> bool {
        !matches!(self, JoinKind::RightSemi | JoinKind::RightAnti)
    }

    /// Whether columns of the right stream come out.
    pub fn shows_right(self) -> bool {
        !matches!(self, JoinKind::LeftSemi | JoinKind::LeftAnti)
    }

    /// Whether pairs come out.
    pub fn shows_pairs(self) -> bool {
        self.shows_left() && self.shows_right()
    }

    /// Whether rows of the left stream without a pair come out.
    pub fn keeps_left(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full | JoinKind::LeftAnti)
    }

    /// Whether rows of the right stream without a pair come out.
    pub fn keeps_right(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full | JoinKind::RightAnti)
    }

    /// Whether all right rows that are wanted come out, so that event time is theirs.
    pub fn goes_by_right(self) -> bool {
        matches!(
            self,
            JoinKind::Right | JoinKind::RightSemi | JoinKind::RightAnti
        )
    }
}

/// What a join is told apart from its kind and keys.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinOptions {
    /// What must be true of a pair besides equal keys; it sees the columns of both streams.
    pub residual: Option<Expression>,
    /// Whether a null key equals a null key.
    pub null_equals_null: bool,
    /// What is appended to names of right columns that the left stream has too.
    pub suffix: String,
}

impl Default for JoinOptions {
    fn default() -> Self {
        JoinOptions {
            residual: None,
            null_equals_null: false,
            suffix: "_right".to_owned(),
        }
    }
}

/// The error of an operator whose state outgrows its memory.
fn too_large(bytes: usize, limit: usize) -> Error {
    Error::limit(format!(
        "rows kept take {bytes} bytes, the limit is {limit}"
    ))
    .hint(
        "raise the limit, filter first, shorten windows, or put the smaller stream of a join right",
    )
}

/// Refuses state of `bytes` beyond `limit`.
pub(crate) fn check_memory(bytes: usize, limit: Option<usize>) -> Result<()> {
    match limit {
        Some(limit) if bytes > limit => Err(too_large(bytes, limit)),
        _ => Ok(()),
    }
}
