//! Seeded cases in great number: run on all cores, counted, made smaller when they fail.
//!
//! ```text
//! seed ──make──▶ case ──check──▶ fine, with an observation
//!                  ▲        └──▶ a difference ──smaller, check again …──▶ printed, with the seed
//! ```
//! `TERSECADES_ORACLE_TIMES` multiplies the number of cases of every test;
//! `TERSECADES_ORACLE_FIRST` and `TERSECADES_ORACLE_SEEDS` name the seeds, so that one that failed
//! can be run by itself.

mod quiet;
pub mod smaller;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long one failing case may be made smaller.
const SHRINKING: Duration = Duration::from_secs(20);

/// Cases that are smaller than another one, most drastic first.
pub type Smaller<'a, C> = Box<dyn Iterator<Item = C> + 'a>;

/// A family of cases, each named by a seed.
pub trait Cases: Sync {
    /// One case.
    type Case;
    /// What a case that is fine says of itself, for what a test asserts of all of them.
    type Seen: Send;

    /// The case of `seed`.
    fn make(&self, seed: u64) -> Self::Case;

    /// What was seen, or how the answers differ.
    ///
    /// # Errors
    /// The difference, in words; a panic counts as one too.
    fn check(&self, case: &Self::Case) -> Result<Self::Seen, String>;

    /// What might fail in the same way and is easier to read.
    fn smaller<'a>(&'a self, case: &'a Self::Case) -> Smaller<'a, Self::Case>;

    /// The case for people.
    fn show(&self, case: &Self::Case) -> String;
}

/// Runs `default` cases, or as many as the environment says, and gives what was seen, by seed.
///
/// # Panics
/// When a case fails: with its seed, and the smallest case found that fails too.
pub fn run<F: Cases>(what: &str, default: u64, family: &F) -> Vec<F::Seen> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let times: u64 = number("TERSECADES_ORACLE_TIMES").unwrap_or(1);
    let first: u64 = number("TERSECADES_ORACLE_FIRST").unwrap_or(0);
    let count: u64 = number("TERSECADES_ORACLE_SEEDS").unwrap_or(default * times);
    let started = Instant::now();
    let next = AtomicU64::new(first);
    let seen = Mutex::new(Vec::new());
    let failed = Mutex::new(None);
    let worker = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return;
            }
            match attempt(|| family.check(&family.make(seed))) {
                Ok(one) => hold(&seen).push((seed, one)),
                Err(message) => {
                    // The others stop; the least failing seed is not worth their time.
                    next.store(u64::MAX / 2, Ordering::Relaxed);
                    hold(&failed).get_or_insert((seed, message));
                    return;
                }
            }
        }
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..workers {
            scope.spawn(worker);
        }
    });
    if let Some((seed, message)) = hold(&failed).take() {
        panic!("{what}: {}", report(family, seed, message));
    }
    let mut seen = std::mem::take(&mut *hold(&seen));
    seen.sort_by_key(|(seed, _)| *seed);
    let (last, seconds) = (first + count, started.elapsed().as_secs_f64());
    println!("{what}: {count} cases (seeds {first}..{last}), 0 differences, {seconds:.1} s");
    seen.into_iter().map(|(_, one)| one).collect()
}

/// What `check` says, a panic being a failure like any other.
fn attempt<S>(check: impl FnOnce() -> Result<S, String>) -> Result<S, String> {
    let _silence = quiet::Silence::begin();
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("no message")))
    })
}

/// The failing case of `seed`, and the smallest one found.
fn report<F: Cases>(family: &F, seed: u64, message: String) -> String {
    let Ok(made) = attempt(|| Ok(family.make(seed))) else {
        return format!("seed {seed} makes no case: {message}");
    };
    let (small, small_message, steps) = shrink(family, made);
    format!(
        "seed {seed} fails (TERSECADES_ORACLE_FIRST={seed} TERSECADES_ORACLE_SEEDS=1)\n\
         {message}\n\nmade smaller {steps} times: {small_message}\n{}",
        family.show(&small)
    )
}

/// What a failure begins with, numbers left out: a smaller case must fail in the same way.
fn kind_of(message: &str) -> String {
    let letters = message.chars().filter(|letter| !letter.is_ascii_digit());
    letters.take(8).collect()
}

/// Takes the first smaller case that fails, again and again; the case, what it says, how often.
fn shrink<F: Cases>(family: &F, mut case: F::Case) -> (F::Case, String, usize) {
    let deadline = Instant::now() + SHRINKING;
    let fails = |case: &F::Case| attempt(|| family.check(case)).err();
    let Some(mut message) = fails(&case) else {
        return (case, "it passes when run again".to_owned(), 0);
    };
    let kind = kind_of(&message);
    let fails = |case: &F::Case| fails(case).filter(|message| kind_of(message) == kind);
    let mut steps = 0;
    loop {
        let candidates = family
            .smaller(&case)
            .take_while(|_| Instant::now() < deadline);
        let found = candidates
            .map(|smaller| (fails(&smaller), smaller))
            .find_map(|(failure, smaller)| failure.map(|failure| (failure, smaller)));
        let Some((failure, smaller)) = found else {
            return (case, message, steps);
        };
        (message, case) = (failure, smaller);
        steps += 1;
    }
}

fn hold<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of numbers, of which none may hold two above 500.
    struct Numbers;

    impl Cases for Numbers {
        type Case = Vec<u64>;
        type Seen = usize;

        fn make(&self, seed: u64) -> Vec<u64> {
            (0..40).map(|index| (seed * 7 + index * 13) % 520).collect()
        }

        fn check(&self, case: &Vec<u64>) -> Result<usize, String> {
            assert!(!case.contains(&519), "519 is refused");
            let large = case.iter().filter(|number| **number > 500).count();
            match large > 1 {
                true => Err(format!("{large} large numbers")),
                false => Ok(large),
            }
        }

        fn smaller<'a>(&'a self, case: &'a Vec<u64>) -> Smaller<'a, Vec<u64>> {
            Box::new(smaller::rows(case))
        }

        fn show(&self, case: &Vec<u64>) -> String {
            format!("{case:?}")
        }
    }

    #[test]
    fn a_case_that_fails_is_made_as_small_as_it_goes() {
        let failing: Vec<u64> = (0..200)
            .filter(|n| n % 3 == 0)
            .chain([501, 3, 510])
            .collect();
        let (small, message, steps) = shrink(&Numbers, failing);
        assert_eq!(
            (small, message.as_str()),
            (vec![501, 510], "2 large numbers")
        );
        assert!(steps > 2);
        let (small, message, _) = shrink(&Numbers, vec![1, 519, 2]);
        assert_eq!(
            (small, message.as_str()),
            (vec![519], "panicked: 519 is refused")
        );
    }

    #[test]
    fn a_failing_seed_is_named() {
        let failed = catch_unwind(|| run("numbers", 50, &Numbers)).map(|seen| seen.len());
        let message = failed.unwrap_err().downcast::<String>().unwrap();
        assert!(message.starts_with("numbers: seed "), "{message}");
        assert!(message.contains("made smaller"), "{message}");
    }
}
