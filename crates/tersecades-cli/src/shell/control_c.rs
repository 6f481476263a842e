//! Ctrl-C ends the statement that runs, and the shell where none does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use tersecades::Error;
use tersecades::columnar::error::ErrorKind;
use tersecades::engine::runtime::Interrupt;

use crate::outcome::Outcome;

/// What a shell exits with that Ctrl-C ends.
const EXIT_CODE: i32 = 130;

/// Whether Ctrl-C ends the process: no statement runs, or one has been told to stop already.
#[derive(Clone)]
pub(super) struct ControlC(Arc<AtomicBool>);

impl ControlC {
    /// Takes Ctrl-C over.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn watch() -> Outcome<ControlC> {
        let ends = Arc::new(AtomicBool::new(true));
        flag::register_conditional_shutdown(SIGINT, EXIT_CODE, Arc::clone(&ends))?;
        flag::register(SIGINT, Arc::clone(&ends))?;
        Ok(ControlC(ends))
    }

    /// What stops a statement.
    pub(super) fn interrupt(&self) -> Interrupt {
        let pressed = Arc::clone(&self.0);
        Interrupt::new(move || match pressed.load(Ordering::Relaxed) {
            true => Err(Error::new(
                ErrorKind::Interrupted,
                "the statement was stopped",
            )),
            false => Ok(()),
        })
    }

    /// Does the work of a statement, which Ctrl-C stops.
    pub(super) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.store(false, Ordering::Relaxed);
        let done = work();
        self.0.store(true, Ordering::Relaxed);
        done
    }
}
