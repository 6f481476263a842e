//! Ctrl-C, SIGTERM and a closed terminal end the program as they would anyway, but no partial file
//! stays behind, and rows that could not be read are in their file.
//!
//! ```text
//! signal ─▶ thread ─▶ dead letters finished ─▶ partial files removed ─▶ the program ends by the
//!              │                                                       signal (129, 130, 143)
//!              └▶ the first Ctrl-C while a statement of the shell runs: the statement stops
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use tersecades::store::whole_file::remove_partial_files;

use crate::dead_letter;
use crate::outcome::Outcome;

/// Whether Ctrl-C ends the program. Where it is false, the next one makes it true.
pub(crate) static CONTROL_C_ENDS: AtomicBool = AtomicBool::new(true);

/// Takes the signals over.
///
/// # Errors
/// When the system refuses.
pub(crate) fn watch() -> Outcome {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let work = move || signals.forever().for_each(arrived);
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(work)?;
    Ok(())
}

/// Whether the program was started with `signal` ignored, as by `nohup`; where the system does not
/// tell, it is.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

fn arrived(signal: i32) {
    if signal == SIGINT && !CONTROL_C_ENDS.swap(true, Ordering::Relaxed) {
        return;
    }
    dead_letter::finish_all();
    let _until_the_end = remove_partial_files();
    if low_level::emulate_default_handler(signal).is_err() {
        low_level::exit(128 + signal);
    }
}
