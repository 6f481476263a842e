//! One batch of the source after the other, until the run ends or is stopped.

use arrow_array::RecordBatch;
use tersecades_columnar::error::Result;

use super::Running;
use crate::runtime::Interrupt;
use crate::runtime::part::Part;
use crate::runtime::worker::Workers;

impl Running {
    /// Takes in one batch of the source; false at the end, when everything has come out.
    ///
    /// # Errors
    /// What reading, evaluating and finishing say, once the results before it were taken, and
    /// again at every step behind that; `LimitExceeded` above the memory limit; what an interrupt
    /// says before anything is read, after which the run may go on.
    pub fn step(&mut self) -> Result<bool> {
        let was_whole = self.failed.is_none();
        match self.take_step() {
            Err(_) if was_whole && self.failed.is_some() && !self.ready.is_empty() => Ok(true),
            stepped => stepped,
        }
    }

    /// [`Running::step`], whose errors do not wait for results to be taken.
    pub(crate) fn take_step(&mut self) -> Result<bool> {
        self.check_failed()?;
        if self.finished && !self.is_finishing() {
            return Ok(false);
        }
        self.check_interrupt()?;
        self.or_fail(|run| {
            match run.is_finishing() {
                true => run.finish_some()?,
                false => run.read_on()?,
            }
            run.check_memory()?;
            Ok(!run.finished || run.is_finishing())
        })
    }

    /// Does `work` on rows: where it fails some of them are lost, which all that follows says.
    pub(super) fn or_fail<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check_failed()?;
        let done = work(self);
        self.failed = done.as_ref().err().cloned();
        done
    }

    fn check_failed(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Takes in the next batch of the source; at its end, all that windows hold and some of what
    /// follows them does.
    fn read_on(&mut self) -> Result<()> {
        let satisfied = self.options.keep.is_none() && self.tails.iter().any(Part::is_done);
        if let Some(batch) = self.ingest.next_batch(satisfied)? {
            let rows = batch.rows();
            self.is_silent = rows == 0;
            self.observe_source(rows)?;
            self.take_in(batch)?;
            // Nothing more is at hand: rows that workers have done with need not wait for it.
            let hands_over = rows == 0 && !self.workers.is_empty();
            return match hands_over && self.plan.aggregate().is_none() {
                true => self.flush(),
                false => Ok(()),
            };
        }
        self.is_silent = false;
        self.finished = true;
        if !satisfied {
            self.close(i64::MAX)?;
        }
        self.finishing = Some(0);
        self.finish_some()
    }

    /// Whether the end of the stream was read and not all has come out.
    pub(super) fn is_finishing(&self) -> bool {
        self.finishing.is_some()
    }

    /// Whether whoever runs the query lets it go on; for work between two batches that is long.
    pub(crate) fn check_interrupt(&self) -> Result<()> {
        self.options.interrupt.check()
    }

    /// What [`Self::check_interrupt`] asks, for work that counts its rows.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.options.interrupt
    }

    /// Takes a result, if one is ready.
    pub fn take_result(&mut self) -> Option<RecordBatch> {
        self.ready.pop_front()
    }

    /// Gives the run up: waits for its threads and those of its inputs. Nothing more comes out.
    pub fn stop(&mut self) {
        self.finished = true;
        self.finishing = None;
        self.failed = None;
        self.ready.clear();
        self.workers = Workers::default();
        self.tails.clear();
        self.ingest.stop();
    }
}

impl Running {
    /// The next result; one without rows where the source has nothing to go on with, so that
    /// whoever asks need not wait for it.
    ///
    /// # Errors
    /// As [`Running::step`], once.
    pub(crate) fn next_at_hand(&mut self) -> Result<Option<RecordBatch>> {
        self.next_result(false)
    }

    fn next_result(&mut self, waits: bool) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.take_result() {
                return Ok(Some(batch));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.step() {
                Ok(true) if self.is_silent && self.ready.is_empty() && !waits => {
                    return Ok(Some(RecordBatch::new_empty(self.schema())));
                }
                Ok(true) => {}
                Ok(false) => return Ok(self.take_result()),
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
    }
}

impl Iterator for Running {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_result(true).transpose()
    }
}
