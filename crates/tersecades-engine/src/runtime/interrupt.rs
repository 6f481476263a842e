//! Stopping a run from outside: what is asked between two batches, however deep they are nested.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use tersecades_columnar::error::Result;

type Check = dyn Fn() -> Result<()> + Send + Sync;

/// Rows that long work takes between two checks.
const CHECKED_ROWS: usize = 1 << 16;

/// Values that are sorted between two checks: fewer make the others pass by more often.
const SORTED_ROWS: usize = 1 << 18;

/// Asked before every batch of a run and of the runs that feed it; its error stops them.
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

    /// All of `items`, asking every so many of them.
    ///
    /// # Errors
    /// As [`Interrupt::check`].
    pub(crate) fn collect<T>(&self, mut items: impl Iterator<Item = T>) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(items.size_hint().0);
        loop {
            let before = all.len();
            all.extend(items.by_ref().take(CHECKED_ROWS));
            if all.len() - before < CHECKED_ROWS {
                return Ok(all);
            }
            self.check()?;
        }
    }

    /// Sorts values of which no two are equal, asking every so many of them.
    ///
    /// # Errors
    /// As [`Interrupt::check`]; the values are in any order then.
    pub(crate) fn sort<T>(
        &self,
        values: &mut [T],
        compare: &impl Fn(&T, &T) -> Ordering,
    ) -> Result<()> {
        if values.len() <= SORTED_ROWS {
            values.sort_unstable_by(compare);
            return Ok(());
        }
        let middle = values.len() / 2;
        let (less, _, greater) = values.select_nth_unstable_by(middle, compare);
        self.check()?;
        self.sort(less, compare)?;
        self.sort(greater, compare)
    }

    /// Counts work, to ask every so many rows.
    pub(crate) fn pace(&self) -> Pace<'_> {
        Pace {
            interrupt: self,
            rows: 0,
        }
    }

    /// This one, or `other` where this one checks nothing.
    pub(crate) fn or(self, other: &Interrupt) -> Interrupt {
        Interrupt(self.0.or_else(|| other.0.clone()))
    }
}

/// Rows that were worked on since an interrupt was asked.
pub(crate) struct Pace<'i> {
    interrupt: &'i Interrupt,
    rows: usize,
}

impl Pace<'_> {
    /// Counts `rows` more.
    ///
    /// # Errors
    /// As [`Interrupt::check`], which is asked where they are many.
    pub(crate) fn add(&mut self, rows: usize) -> Result<()> {
        self.rows += rows;
        if self.rows < CHECKED_ROWS {
            return Ok(());
        }
        self.rows = 0;
        self.interrupt.check()
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
