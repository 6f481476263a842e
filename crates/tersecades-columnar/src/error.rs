//! The one error type of the workspace: kind, message, where, hint.
//!
//! Bad *input* never panics: it becomes an [`Error`] that says what is wrong, where (file, row,
//! column, block) and what to do about it. Broken *invariants* of our own assert.

use std::fmt;

/// What sort of failure an [`Error`] is; front ends map each kind to one exit code or exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The caller asked for something that makes no sense (a negative window, an unknown column).
    InvalidArgument,
    /// Types or columns do not match what is expected.
    SchemaMismatch,
    /// Bytes that should be a block, chunk or file are damaged.
    Corrupt,
    /// Legal, but not built (yet); the hint names the nearest thing that is.
    Unsupported,
    /// A named limit (memory budget, cardinality, result range) would be exceeded.
    LimitExceeded,
    /// The operating system said no.
    Io,
    /// The user or a peer stopped the work.
    Interrupted,
    /// A bug of ours that was caught before it could give a wrong answer.
    Internal,
}

/// Where an [`Error`] happened; absent parts are not printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// Path of the file, as the user wrote it.
    pub file: Option<String>,
    /// Row (or line) number, starting at 1.
    pub row: Option<u64>,
    /// Column name.
    pub column: Option<String>,
    /// Block index inside its chunk.
    pub block: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    kind: ErrorKind,
    message: String,
    context: Context,
    hint: Option<String>,
}

/// A failure with its kind, message, context and hint.
///
/// # Examples
/// ```
/// use tersecades_columnar::error::{Error, ErrorKind};
/// let error = Error::invalid("unknown column `rt_us`").hint("did you mean `rtt_us`?");
/// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
/// assert!(error.to_string().contains("did you mean"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Details>);

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Details {
            kind,
            message: message.into(),
            context: Context::default(),
            hint: None,
        }))
    }

    /// [`ErrorKind::InvalidArgument`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// [`ErrorKind::SchemaMismatch`].
    pub fn schema(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::SchemaMismatch, message)
    }

    /// [`ErrorKind::Corrupt`].
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// [`ErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::LimitExceeded`].
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::LimitExceeded, message)
    }

    /// [`ErrorKind::Io`].
    pub fn io(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Io, message)
    }

    /// [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The same error, naming the file.
    pub fn file(mut self, file: impl Into<String>) -> Self {
        self.0.context.file = Some(file.into());
        self
    }

    /// The same error, naming the row or line (from 1).
    pub fn row(mut self, row: u64) -> Self {
        self.0.context.row = Some(row);
        self
    }

    /// The same error, naming the column.
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.0.context.column = Some(column.into());
        self
    }

    /// The same error, naming the block.
    pub fn block(mut self, block: u32) -> Self {
        self.0.context.block = Some(block);
        self
    }

    /// The same error with advice on what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same error with more advice, behind what there is.
    pub fn also(self, hint: impl fmt::Display) -> Self {
        let hint = match self.hint_text() {
            Some(first) => format!("{first}; {hint}"),
            None => hint.to_string(),
        };
        self.hint(hint)
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What happened, without place and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it happened.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The advice, if there is any.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details {
            message,
            context,
            hint,
            ..
        } = &*self.0;
        f.write_str(message)?;
        let mut open = " (";
        let mut place = |f: &mut fmt::Formatter<'_>, what: &str, value: &dyn fmt::Display| {
            let written = write!(f, "{open}{what} {value}");
            open = ", ";
            written
        };
        if let Some(file) = &context.file {
            place(f, "file", file)?;
        }
        if let Some(row) = &context.row {
            place(f, "row", row)?;
        }
        if let Some(column) = &context.column {
            place(f, "column", column)?;
        }
        if let Some(block) = &context.block {
            place(f, "block", block)?;
        }
        if context != &Context::default() {
            f.write_str(")")?;
        }
        match hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::Interrupted => ErrorKind::Interrupted,
            _ => ErrorKind::Io,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Error::new(ErrorKind::Corrupt, error.to_string())
    }
}

const _: () = assert!(
    size_of::<Error>() <= 64,
    "errors travel in every Result: keep them small"
);
