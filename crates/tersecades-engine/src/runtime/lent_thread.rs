//! Threads that outlive a run: what one run is through with works for the next.
//!
//! ```text
//! lend(work) ──▶ a thread that waits, else a new one ──▶ work ──▶ waits for a while, then ends
//!                                                          └──▶ Lent::wait returns
//! ```
//! Two threads gain up to a tenth over queries of a few milliseconds by not being started:
//! `make bench ARGS='apart --data target/rivals/data --threads 2'`.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(5);

/// Looks at what is waited for before a thread sleeps: some tens of microseconds.
const LOOKS: usize = 512;

static POOL: Pool = Pool::new(IDLE);

/// Does `work` on a thread of its own.
///
/// # Errors
/// When the system starts no more threads.
///
/// # Cost
/// A wake-up where a thread waits, else the start of one.
pub(super) fn lend(work: impl FnOnce() + Send + 'static) -> io::Result<Arc<Lent>> {
    POOL.lend(Box::new(work))
}

/// Threads that wait for work, each on the processors of the thread that started it.
struct Pool {
    idle: Duration,
    /// Whose threads they are: a fork of the process has none of them, and the lock may have been
    /// taken when it was forked.
    process: AtomicU32,
    waiting: Mutex<Vec<Arc<Seat>>>,
}

/// Where a thread is given its task.
#[derive(Default)]
struct Seat {
    task: Mutex<Option<Task>>,
    given: Condvar,
}

/// What a thread is to do.
struct Task {
    work: Box<dyn FnOnce() + Send>,
    done: Done,
}

/// Says that a task is done when it is dropped, by a panic too.
struct Done(Arc<Lent>);

/// A thread at work.
#[derive(Debug, Default)]
pub(super) struct Lent {
    is_done: Mutex<bool>,
    done: Condvar,
}

impl Pool {
    const fn new(idle: Duration) -> Self {
        Pool {
            idle,
            process: AtomicU32::new(0),
            waiting: Mutex::new(Vec::new()),
        }
    }

    fn lend(&'static self, work: Box<dyn FnOnce() + Send>) -> io::Result<Arc<Lent>> {
        let lent = Arc::new(Lent::default());
        let done = Done(Arc::clone(&lent));
        let task = Task { work, done };
        let thread = thread::Builder::new().name("tersecades-worker".to_owned());
        if self.is_forked() {
            thread.spawn(move || drop(task.perform()))?;
            return Ok(lent);
        }
        let seat = lock(&self.waiting).pop();
        match seat {
            Some(seat) => {
                *lock(&seat.task) = Some(task);
                seat.given.notify_one();
            }
            None => drop(thread.spawn(move || self.work_off(task))?),
        }
        Ok(lent)
    }

    /// Whether this process is a fork of the one that used the pool first.
    fn is_forked(&self) -> bool {
        let (order, process) = (Ordering::Relaxed, std::process::id());
        let first = self.process.compare_exchange(0, process, order, order);
        first.is_err_and(|first| first != process)
    }

    /// Does `first`, and what is given to this thread after it.
    fn work_off(&self, first: Task) {
        let seat = Arc::new(Seat::default());
        let mut next = Some(first);
        while let Some(task) = next {
            let done = task.perform();
            // Whoever waits for the work finds the thread waiting.
            lock(&self.waiting).push(Arc::clone(&seat));
            drop(done);
            next = seat.next(self.idle).or_else(|| match self.leave(&seat) {
                true => None,
                false => seat.next(Duration::MAX),
            });
        }
    }

    /// Gives a seat up; false where somebody has taken it, who gives it a task.
    fn leave(&self, seat: &Arc<Seat>) -> bool {
        let mut seats = lock(&self.waiting);
        let at = seats.iter().position(|other| Arc::ptr_eq(other, seat));
        at.map(|at| seats.swap_remove(at)).is_some()
    }
}

impl Task {
    /// Does the work; it is done when what this returns is dropped.
    fn perform(self) -> Done {
        (self.work)();
        self.done
    }
}

impl Seat {
    /// The next task, if there is one within `wait`.
    fn next(&self, wait: Duration) -> Option<Task> {
        look(&self.task, Option::take).or_else(|| {
            let task = lock(&self.task);
            let waited = self
                .given
                .wait_timeout_while(task, wait, |task| task.is_none());
            let (mut task, _) = waited.unwrap_or_else(PoisonError::into_inner);
            task.take()
        })
    }
}

impl Lent {
    /// Waits until the work is done, or has panicked, and all that it held is dropped.
    pub(super) fn wait(&self) {
        if look(&self.is_done, |is_done| is_done.then_some(())).is_none() {
            let is_done = lock(&self.is_done);
            drop(self.done.wait_while(is_done, |is_done| !*is_done));
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        *lock(&self.0.is_done) = true;
        self.0.done.notify_all();
    }
}

/// Looks a few times for what `find` finds in `place`.
fn look<T, R>(place: &Mutex<T>, find: impl Fn(&mut T) -> Option<R>) -> Option<R> {
    (0..LOOKS).find_map(|_| {
        std::hint::spin_loop();
        place.try_lock().ok().and_then(|mut place| find(&mut place))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::thread::ThreadId;

    use super::*;

    /// The thread that does some work, which is done.
    fn thread_of(pool: &'static Pool) -> ThreadId {
        let found = Arc::new(Mutex::new(None));
        let told = Arc::clone(&found);
        let tell = move || *lock(&told) = Some(thread::current().id());
        pool.lend(Box::new(tell)).unwrap().wait();
        // What the work held is dropped.
        assert_eq!(Arc::strong_count(&found), 1);
        lock(&found).unwrap()
    }

    #[test]
    fn a_thread_that_is_through_works_on() {
        static POOL: Pool = Pool::new(Duration::from_secs(60));
        let first = thread_of(&POOL);
        assert_ne!(first, thread::current().id());
        for _ in 0..100 {
            assert_eq!(thread_of(&POOL), first);
        }
        assert_eq!(lock(&POOL.waiting).len(), 1);
    }

    #[test]
    fn work_is_done_at_once_by_threads_that_wait_and_new_ones() {
        static POOL: Pool = Pool::new(Duration::from_secs(60));
        for threads in [1, 4, 2, 8, 3] {
            let together = Arc::new(Barrier::new(threads));
            let lent: Vec<_> = (0..threads)
                .map(|_| {
                    let together = Arc::clone(&together);
                    let meet = move || {
                        together.wait();
                    };
                    POOL.lend(Box::new(meet)).unwrap()
                })
                .collect();
            lent.iter().for_each(|lent| lent.wait());
        }
        assert_eq!(lock(&POOL.waiting).len(), 8);
    }

    #[test]
    fn threads_end_when_they_have_waited_and_no_work_is_lost_by_then() {
        static POOL: Pool = Pool::new(Duration::from_micros(20));
        let done = Arc::new(AtomicUsize::new(0));
        for round in 0..2_000 {
            let counted = Arc::clone(&done);
            let count = move || {
                counted.fetch_add(1, Ordering::Relaxed);
            };
            POOL.lend(Box::new(count)).unwrap().wait();
            assert_eq!(done.load(Ordering::Relaxed), round + 1);
            // Shorter and longer than threads look and wait.
            thread::sleep(Duration::from_micros(round as u64 % 100));
        }
        while !lock(&POOL.waiting).is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_panic_is_waited_for_and_takes_its_thread_along() {
        static POOL: Pool = Pool::new(Duration::from_secs(60));
        let first = thread_of(&POOL);
        let held = Arc::new(());
        let dropped = Arc::clone(&held);
        let fail = move || {
            let _held = dropped;
            panic!("of the test");
        };
        POOL.lend(Box::new(fail)).unwrap().wait();
        assert_eq!(Arc::strong_count(&held), 1);
        assert_ne!(thread_of(&POOL), first);
    }

    #[test]
    fn a_fork_waits_for_no_thread_and_no_lock_of_the_process_before() {
        static POOL: Pool = Pool::new(Duration::from_secs(60));
        let first = thread_of(&POOL);
        POOL.process.store(u32::MAX, Ordering::Relaxed);
        let held = lock(&POOL.waiting);
        assert_ne!(thread_of(&POOL), first);
        assert_eq!(held.len(), 1);
    }
}
