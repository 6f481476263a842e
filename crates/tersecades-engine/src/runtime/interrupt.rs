//! Stopping a run from outside: what is asked between two batches, however deep they are nested.

use std::fmt;
use std::sync::Arc;

use tersecades_columnar::error::Result;

type Check = dyn Fn() -> Result<()> + Send + Sync;

/// Asked before every batch of a run and of the runs that feed it; its error ends them.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use tersecades_columnar::error::{Error, ErrorKind};
/// use tersecades_engine::runtime::Interrupt;
/// let stopped = Arc::new(AtomicBool::new(false));
/// let seen = Arc::clone(&stopped);
/// let interrupt = Interrupt::new(move || match seen.load(Ordering::Relaxed) {
///     true => Err(Error::new(ErrorKind::Interrupted, "the query was stopped")),
///     false => Ok(()),
/// });
/// assert!(interrupt.check().is_ok());
/// stopped.store(true, Ordering::Relaxed);
/// assert_eq!(interrupt.check().unwrap_err().kind(), ErrorKind::Interrupted);
/// ```
#[derive(Clone, Default)]
pub struct Interrupt(Option<Arc<Check>>);

impl Interrupt {
    /// An interrupt that `check` decides about; it is called often and has to be quick.
    pub fn new(check: impl Fn() -> Result<()> + Send + Sync + 'static) -> Self {
        Interrupt(Some(Arc::new(check)))
    }

    /// Whether the run may go on.
    ///
    /// # Errors
    /// What the caller's check says, `Interrupted` by convention.
    pub fn check(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |check| check())
    }

    /// This one, or `other` where this one checks nothing.
    pub(crate) fn or(self, other: &Interrupt) -> Interrupt {
        Interrupt(self.0.or_else(|| other.0.clone()))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(if self.0.is_some() {
            "Interrupt"
        } else {
            "None"
        })
    }
}

/// Two are equal when they are the same check.
impl PartialEq for Interrupt {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}
