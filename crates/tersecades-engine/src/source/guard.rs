//! A fence around third-party decoders that panic on damaged input.
//!
//! The Arrow IPC reader unwraps absent parts of its metadata, and bounds checks of both readers
//! fire on bytes that no writer makes. Bad input must become an error, so such a panic is
//! caught here and the decoder is given up, without a word of the panic hook: the error says it. A
//! build with `panic = "abort"` cannot be protected.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use tersecades_columnar::error::{Error, Result};

thread_local! {
    /// Whether the thread is inside a fence.
    static FENCED: Cell<bool> = const { Cell::new(false) };
}

/// Puts a hook before the one there is that passes over panics inside a fence.
fn keep_silent() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = take_hook();
        set_hook(Box::new(move |panic| {
            if !FENCED.get() {
                told(panic);
            }
        }));
    });
}

/// Runs `decode`; a panic becomes `Corrupt`.
///
/// What `decode` was changing must not be used after an error.
///
/// # Errors
/// Those of `decode`, and `Corrupt` if it panics.
pub(crate) fn guard<T>(format: &str, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    keep_silent();
    let outer = FENCED.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    FENCED.set(outer);
    decoded.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no reason");
        Err(
            Error::corrupt(format!("the {format} decoder gave up: {text}"))
                .hint("the file is damaged, or of a newer format version"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tersecades_columnar::error::ErrorKind;

    #[test]
    fn panics_become_corrupt_and_results_pass() {
        let error = guard::<()>("test", || panic!("broken {}", 7)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("broken 7"));
        assert_eq!(guard("test", || Ok(3)), Ok(3));
        assert_eq!(
            guard::<()>("test", || Err(Error::io("x"))),
            Err(Error::io("x"))
        );
    }
}
