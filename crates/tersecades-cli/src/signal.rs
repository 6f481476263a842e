//! Ctrl-C and SIGTERM end the program as they would anyway, but no partial file stays behind.
//!
//! ```text
//! signal ─▶ thread ─▶ partial files removed ─▶ the program ends by the signal (130, 143)
//!              └▶ the first Ctrl-C while a statement of the shell runs: the statement stops
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use tersecades::store::whole_file::remove_partial_files;

use crate::outcome::Outcome;

/// Whether Ctrl-C ends the program. Where it is false, the next one makes it true.
pub(crate) static CONTROL_C_ENDS: AtomicBool = AtomicBool::new(true);

/// Takes the signals over.
///
/// # Errors
/// When the system refuses.
pub(crate) fn watch() -> Outcome {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let work = move || signals.forever().for_each(arrived);
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(work)?;
    Ok(())
}

fn arrived(signal: i32) {
    if signal == SIGINT && !CONTROL_C_ENDS.swap(true, Ordering::Relaxed) {
        return;
    }
    let _until_the_end = remove_partial_files();
    if low_level::emulate_default_handler(signal).is_err() {
        low_level::exit(128 + signal);
    }
}
