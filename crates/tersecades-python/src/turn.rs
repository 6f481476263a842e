//! Threads of Python that take turns at one thing, first come, first served.
//!
//! ```text
//! thread a  ──has its turn──▶ leaves ┐
//! thread b  ──waits without Python's lock, looks for Ctrl-C──▶ has its turn
//! ```
//! A function that is called in the midst of a turn does not wait for it: it would wait for itself.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::invalid;

/// How long a thread waits before it looks for Ctrl-C.
const WAIT: Duration = Duration::from_millis(20);

thread_local! {
    /// Whether this thread runs a function of Python for a query.
    static IN_QUERY: Cell<bool> = const { Cell::new(false) };
}

/// Sets back whether this thread runs a function for a query.
struct Called {
    before: bool,
}

impl Drop for Called {
    fn drop(&mut self) {
        IN_QUERY.set(self.before);
    }
}

/// Calls a function of Python, or takes from an iterator of it, for a query that runs.
pub(crate) fn call_in_query<R>(call: impl FnOnce(Python<'_>) -> R) -> R {
    let before = IN_QUERY.replace(true);
    let _called = Called { before };
    Python::attach(call)
}

/// Something that one thread has at a time.
pub(crate) struct Turns<T> {
    line: Mutex<Line>,
    moved: Condvar,
    held: Mutex<T>,
}

/// Who waits; the first has its turn.
#[derive(Default)]
struct Line {
    tickets: VecDeque<Ticket>,
    next: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Ticket {
    number: u64,
    thread: ThreadId,
}

/// The turn of a thread.
pub(crate) struct Turn<'t, T> {
    turns: &'t Turns<T>,
    ticket: Ticket,
    held: MutexGuard<'t, T>,
}

/// What a lock guards, also after a panic.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(|held| held.into_inner())
}

impl<T> Turns<T> {
    pub(crate) fn new(held: T) -> Self {
        Turns {
            line: Mutex::default(),
            moved: Condvar::new(),
            held: Mutex::new(held),
        }
    }

    /// The thing itself, which no other thread knows.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.held.get_mut().unwrap_or_else(|held| held.into_inner())
    }
}

impl<T: Send> Turns<T> {
    /// Waits for a turn.
    ///
    /// # Errors
    /// `InvalidArgument` in functions that the turn waits for; what handlers of signals raise.
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<Turn<'_, T>> {
        let ticket = self.enter()?;
        while !self.is_first(ticket) {
            py.detach(|| self.wait(ticket));
            if let Err(raised) = py.check_signals() {
                self.leave(ticket);
                return Err(raised);
            }
        }
        Ok(Turn {
            turns: self,
            ticket,
            held: locked(&self.held),
        })
    }

    fn enter(&self) -> PyResult<Ticket> {
        let mut line = locked(&self.line);
        let ticket = Ticket {
            number: line.next,
            thread: thread::current().id(),
        };
        let own = line.tickets.iter().any(|t| t.thread == ticket.thread);
        if own || IN_QUERY.get() && !line.tickets.is_empty() {
            drop(line);
            return Err(invalid(
                "the query is in the midst of a step, and a function that it calls cannot wait \
                 for it",
                "take its results and figures outside of its functions and sources, and of \
                 handlers of signals",
            ));
        }
        line.next += 1;
        line.tickets.push_back(ticket);
        Ok(ticket)
    }

    /// Waits until another thread leaves, or for a while.
    fn wait(&self, ticket: Ticket) {
        let line = locked(&self.line);
        if line.tickets.front() != Some(&ticket) {
            drop(self.moved.wait_timeout(line, WAIT));
        }
    }
}

impl<T> Turns<T> {
    fn is_first(&self, ticket: Ticket) -> bool {
        locked(&self.line).tickets.front() == Some(&ticket)
    }

    fn leave(&self, ticket: Ticket) {
        locked(&self.line).tickets.retain(|other| *other != ticket);
        self.moved.notify_all();
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.turns.leave(self.ticket);
    }
}
