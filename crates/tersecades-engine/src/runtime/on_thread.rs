//! Work that falls into pieces, done by several threads while the one that asks for it waits.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};

use tersecades_columnar::error::Result;

/// What `work` makes of each of `items`, in their order, by at most so many threads: the caller's
/// and others that end before this returns.
///
/// # Errors
/// What `work` says of the first of the items of which it says one, whatever the number of threads;
/// items behind it may be left out.
///
/// # Panics
/// As `work` does.
///
/// # Cost
/// Starts a thread for each item but one, no more than `threads` say; with one thread none.
pub(crate) fn on_threads<I, R>(
    threads: usize,
    items: I,
    work: impl Fn(I::Item) -> Result<R> + Sync,
) -> Result<Vec<R>>
where
    I: IntoIterator<Item: Send, IntoIter: ExactSizeIterator + Send>,
    R: Send,
{
    let items = items.into_iter();
    let others = threads.min(items.len()).saturating_sub(1);
    if others == 0 {
        return items.map(work).collect();
    }
    let waiting = Mutex::new(Some(items.enumerate()));
    let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let work_off = || -> Vec<(usize, Result<R>)> {
        let mut done = Vec::new();
        loop {
            let next = lock().as_mut().and_then(Iterator::next);
            let Some((at, item)) = next else {
                return done;
            };
            let result = work(item);
            if result.is_err() {
                // All items before this one are in hand.
                *lock() = None;
            }
            done.push((at, result));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(work_off)).collect();
        let mut done = work_off();
        for thread in others {
            done.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Work that is done once.
pub(crate) type Task<'t> = Box<dyn FnOnce() -> Result<()> + Send + 't>;

/// Does all of `tasks`, at once where so many threads may.
///
/// # Errors
/// As [`on_threads`].
///
/// # Panics
/// As [`on_threads`].
pub(crate) fn together<const TASKS: usize>(threads: usize, tasks: [Task<'_>; TASKS]) -> Result<()> {
    on_threads(threads, tasks, |task| task()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::panic::catch_unwind;
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    use tersecades_columnar::error::Error;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_items() {
        for threads in [0, 1, 2, 3, 8, 200] {
            let squares = on_threads(threads, 0..100_u32, |item| {
                // The first are done last.
                thread::sleep(Duration::from_micros(u64::from(100 - item)));
                Ok(item * item)
            });
            let expected: Vec<u32> = (0..100).map(|item| item * item).collect();
            assert_eq!(squares.unwrap(), expected);
            let none = on_threads(threads, 0..0_usize, Ok);
            assert!(none.unwrap().is_empty());
        }
    }

    #[test]
    fn items_are_worked_on_at_once() {
        let together = Barrier::new(3);
        let meet = |_| {
            together.wait();
            Ok(thread::current().id())
        };
        let ids: HashSet<_> = on_threads(3, 0..3_usize, meet)
            .unwrap()
            .into_iter()
            .collect();
        assert_eq!(ids.len(), 3);
        assert!(ids.contains(&thread::current().id()));
    }

    #[test]
    fn one_thread_is_that_of_the_caller() {
        let ids = on_threads(1, 0..9_usize, |_| Ok(thread::current().id())).unwrap();
        assert!(ids.iter().all(|id| *id == thread::current().id()));
    }

    #[test]
    fn items_may_be_lent_to_be_changed() {
        let mut parts = [3, 1, 2, 9, 8, 7];
        let sort = |part: &mut [i32]| {
            part.sort_unstable();
            Ok(part.len())
        };
        let lens = on_threads(2, parts.chunks_mut(3), sort);
        assert_eq!(lens.unwrap(), [3, 3]);
        assert_eq!(parts, [1, 2, 3, 7, 8, 9]);
    }

    #[test]
    fn the_first_error_is_told_whoever_met_it() {
        for threads in [1, 2, 8] {
            let refused = on_threads(threads, 0..64_u32, |item| match item % 10 {
                7 => {
                    thread::sleep(Duration::from_micros(u64::from(100 - item)));
                    Err(Error::invalid(format!("item {item}")))
                }
                _ => Ok(item),
            });
            assert!(refused.unwrap_err().to_string().contains("item 7"));
        }
    }

    #[test]
    fn tasks_are_all_done() {
        for threads in [1, 2, 3] {
            let (mut sum, mut text) = (0, String::new());
            let add = || {
                sum += 3;
                Ok(())
            };
            let write = || {
                text.push('x');
                Ok(())
            };
            together(threads, [Box::new(add), Box::new(write)]).unwrap();
            assert_eq!((sum, text.as_str()), (3, "x"));
            let refuse = |what: &'static str| move || Err(Error::invalid(what));
            let refused = together(
                threads,
                [Box::new(refuse("this")), Box::new(refuse("that"))],
            );
            assert!(refused.unwrap_err().to_string().contains("this"));
        }
    }

    #[test]
    fn a_panic_goes_on_to_the_caller() {
        for threads in [1, 2, 8] {
            let panicked = catch_unwind(|| {
                on_threads(threads, 0..64_usize, |item| {
                    assert!(item != 20, "item 20");
                    Ok(item)
                })
            });
            let said = panicked.unwrap_err();
            assert_eq!(said.downcast_ref::<&str>(), Some(&"item 20"));
        }
    }
}
