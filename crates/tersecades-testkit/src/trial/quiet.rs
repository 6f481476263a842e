//! Panics that are expected say nothing: a case that fails is run many times while it shrinks.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// While it lives, panics of this thread are not printed.
pub(super) struct Silence;

impl Silence {
    pub(super) fn begin() -> Self {
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                if !SILENT.get() {
                    usual(panic);
                }
            }));
        });
        SILENT.set(true);
        Silence
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        SILENT.set(false);
    }
}
