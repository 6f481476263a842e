//! Encoding by choice, and second thoughts where a chunk comes out dearer than its sample promised.

use crate::choose::price;
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork};
use crate::error::Result;
use crate::input::Input;

/// Most codecs tried for one chunk after the first.
const RETRIES: usize = 3;

impl Chunk {
    /// Becomes `input` under the codec that is cheapest for the goal of `work`.
    ///
    /// # Errors
    /// What [`Codec::encode`] says.
    ///
    /// # Cost
    /// Where a choice that was kept turns out to be off, or a sample promised too much, the values
    /// are encoded again.
    pub(crate) fn encode_chosen(&mut self, input: &Input<'_>, work: &mut EncodeWork) -> Result<()> {
        let (mut codec, mut priced) = work.habit.choose(input, &work.goal, work.place());
        self.encode(&codec.into(), input, work)?;
        if !priced && !work.habit.record(self.bytes_per_row()) {
            let better = work.habit.look(input, &work.goal, work.place());
            priced = true;
            if better.id() != codec.id() {
                codec = better;
                self.encode(&codec.into(), input, work)?;
            }
        }
        if priced {
            self.reconsider(codec, input, work)?;
            work.habit.record(self.bytes_per_row());
        }
        self.candidates.clear();
        self.candidates.extend(work.habit.candidates().iter());
        Ok(())
    }

    /// Tries other codecs while this chunk, encoded by `codec`, costs more than they promise.
    fn reconsider(
        &mut self,
        codec: &'static dyn Codec,
        input: &Input<'_>,
        work: &mut EncodeWork,
    ) -> Result<()> {
        let (mut best, mut present) = (codec, codec);
        let mut best_ns = price(self, &work.goal);
        work.habit.learn(codec, best_ns);
        for _ in 0..RETRIES {
            let Some(other) = work.habit.better(best, best_ns) else {
                break;
            };
            self.encode(&other.into(), input, work)?;
            let other_ns = price(self, &work.goal);
            work.habit.learn(other, other_ns);
            present = other;
            if other_ns < best_ns {
                (best, best_ns) = (other, other_ns);
            }
        }
        if best.id() != codec.id() {
            work.habit.take(best);
        }
        if best.id() != present.id() {
            self.encode(&best.into(), input, work)?;
        }
        Ok(())
    }
}
