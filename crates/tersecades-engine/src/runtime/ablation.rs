//! Parts of the engine that a run can do without, to measure what each of them is worth.
//!
//! Answers are the same; only time and memory differ.

use tersecades_columnar::codec::Work;

/// What a run does without; by default nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ablation {
    /// Computing on encoded values and passing over them by statistics: they are decoded first.
    pub direct: bool,
    /// Reuse of batches: each gets memory of its own.
    pub reuse: bool,
    /// The engine's own table of groups: the hash map of the standard library finds them.
    pub own_table: bool,
}

impl Ablation {
    /// Reused memory and counters of a run.
    pub(crate) fn work(self) -> Work {
        let mut work = Work::default();
        work.decode_first = self.direct;
        work
    }
}
