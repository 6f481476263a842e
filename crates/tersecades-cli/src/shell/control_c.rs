//! Ctrl-C ends the statement that runs, and the shell where none does.

use std::sync::atomic::Ordering;

use tersecades::Error;
use tersecades::columnar::error::ErrorKind;
use tersecades::engine::runtime::Interrupt;

use crate::signal::CONTROL_C_ENDS;

/// What stops a statement.
pub(super) fn interrupt() -> Interrupt {
    Interrupt::new(|| match CONTROL_C_ENDS.load(Ordering::Relaxed) {
        true => Err(Error::new(
            ErrorKind::Interrupted,
            "the statement was stopped",
        )),
        false => Ok(()),
    })
}

/// Does the work of a statement, which Ctrl-C stops.
pub(super) fn during<T>(work: impl FnOnce() -> T) -> T {
    CONTROL_C_ENDS.store(false, Ordering::Relaxed);
    let done = work();
    CONTROL_C_ENDS.store(true, Ordering::Relaxed);
    done
}
