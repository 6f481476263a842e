//! Recursive extraction: copies are followed back to literals, and what was found is kept.

use super::rank_select::RankSelect;
use super::sequential::copy_back;
use super::{Phrase, PhraseMap};

/// Room to extract in; use it again for the next read.
#[derive(Debug)]
pub struct Extraction {
    /// Bytes at their own places; those with a known bit are right.
    raw: Vec<u8>,
    known: RankSelect,
    /// Ranges with known bits.
    marked: Vec<(usize, usize)>,
    steps: Vec<Step>,
}

/// What is left to do, the next at the end.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Make bytes known.
    Know { start: usize, end: usize },
    /// Copy bytes that have become known.
    Copy {
        start: usize,
        end: usize,
        distance: usize,
    },
}

impl Default for Extraction {
    fn default() -> Self {
        Extraction {
            raw: Vec::new(),
            known: RankSelect::zeros(0),
            marked: Vec::new(),
            steps: Vec::new(),
        }
    }
}

impl Extraction {
    /// Fills `out` with the bytes of the partition from `from`; false where it has fewer.
    ///
    /// # Cost
    /// One phrase lookup for each phrase on the way to literals; no byte is found twice.
    pub fn extract(&mut self, map: &PhraseMap, from: usize, out: &mut [u8]) -> bool {
        let Some(end) = from
            .checked_add(out.len())
            .filter(|end| *end <= map.raw_len())
        else {
            return false;
        };
        if self.raw.len() < map.raw_len() {
            self.raw.resize(map.raw_len(), 0);
            self.known = RankSelect::zeros(map.raw_len());
        }
        self.steps.push(Step::Know { start: from, end });
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Know { start, end } => self.know(map, start, end),
                Step::Copy {
                    start,
                    end,
                    distance,
                } => self.copy(start, end, distance),
            }
        }
        out.copy_from_slice(&self.raw[from..end]);
        for (start, end) in self.marked.drain(..) {
            self.known.clear_words(start..end);
        }
        true
    }

    fn know(&mut self, map: &PhraseMap, start: usize, end: usize) {
        let mut at = start;
        loop {
            at = self.known.next_zero(at, end);
            if at >= end {
                return;
            }
            let stop = self.known.next_one(at, end);
            match map.phrase_at(at) {
                Phrase::Literals {
                    number,
                    end: run_end,
                } => {
                    let stop = stop.min(run_end);
                    let literals = map.literals_from(number, stop - at);
                    self.raw[at..stop].copy_from_slice(literals);
                    self.mark(at, stop);
                    at = stop;
                }
                Phrase::Copy {
                    start,
                    end: copy_end,
                    distance,
                } => {
                    let stop = stop.min(copy_end);
                    // A copy that overlaps itself repeats: go back by whole periods at once.
                    let distance = (at - start) / distance * distance + distance;
                    let source = at - distance;
                    self.steps.push(Step::Know { start: stop, end });
                    self.steps.push(Step::Copy {
                        start: at,
                        end: stop,
                        distance,
                    });
                    self.steps.push(Step::Know {
                        start: source,
                        end: (stop - distance).min(at),
                    });
                    return;
                }
            }
        }
    }

    fn copy(&mut self, start: usize, end: usize, distance: usize) {
        copy_back(&mut self.raw, start, end, distance);
        self.mark(start, end);
    }

    fn mark(&mut self, start: usize, end: usize) {
        self.known.set_range(start..end);
        self.marked.push((start, end));
    }
}
