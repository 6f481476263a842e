//! `--dead-letters FILE`: rows that could not be read, with what is wrong with each.
//!
//! Parquet and Arrow hold the bytes of a row, formats of text hold them as text, in which what is
//! no UTF-8 stands as U+FFFD.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use tersecades::engine::sink::{self, SINKS, Sink, SinkOptions};
use tersecades::engine::source::DeadLetters;
use tersecades::engine::source::rejected::{RejectedRow, rejected_batch, rejected_text};
use tersecades::{Error, Result};

/// Rows that are written at once.
const ROWS: usize = 1_024;

/// How long a program that is told to end waits for rows that are being written.
const WAIT: Duration = Duration::from_secs(2);

/// Files that were begun by this process and are not done.
static BEGUN: Mutex<Vec<DeadLetterFile>> = Mutex::new(Vec::new());

/// A file of rows that could not be read; it is there, whole, once it is finished.
#[derive(Clone, Default)]
pub(crate) struct DeadLetterFile(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    path: PathBuf,
    sink: Option<Box<dyn Sink>>,
    waiting: Vec<RejectedRow>,
    /// Whether the file is done, so that no more rows come to it.
    is_done: bool,
}

impl DeadLetterFile {
    /// What takes rows for the file `path`, which is begun.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is there, which may be one that is read, and for suffixes
    /// of no format; what creating it says.
    pub(crate) fn letters(&self, path: &Path) -> Result<DeadLetters> {
        if path.exists() {
            let error = Error::invalid("the file for rows that do not fit is there already");
            let error = error.file(path.display().to_string());
            return Err(error.hint("name one that is not, or remove it"));
        }
        let mut state = self.state();
        state.path = path.to_path_buf();
        state.write()?;
        drop(state);
        let file = self.clone();
        let mut begun = BEGUN.lock().unwrap_or_else(|held| held.into_inner());
        begun.push(self.clone());
        Ok(DeadLetters::new(move |row| {
            let mut state = file.state();
            state.waiting.push(row.clone());
            match state.waiting.len() < ROWS {
                true => Ok(()),
                false => state.write(),
            }
        }))
    }

    /// Writes what is left, and gives the file its name; a file without rows where there were none.
    ///
    /// # Errors
    /// What writing says.
    pub(crate) fn finish(&self) -> Result<()> {
        let finished = self.state().finish();
        let mut begun = BEGUN.lock().unwrap_or_else(|held| held.into_inner());
        begun.retain(|file| !Arc::ptr_eq(&file.0, &self.0));
        finished
    }

    /// The state, unless rows are being written for long.
    fn state_soon(&self) -> Option<MutexGuard<'_, State>> {
        let until = Instant::now() + WAIT;
        loop {
            match self.0.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(held)) => return Some(held.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() > until => return None,
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|held| held.into_inner())
    }
}

impl fmt::Debug for DeadLetterFile {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "DeadLetterFile({})", self.state().path.display())
    }
}

/// Finishes all files of a process that is about to end: rows that could not be read so far are
/// there.
pub(crate) fn finish_all() {
    let mut begun = BEGUN.lock().unwrap_or_else(|held| held.into_inner());
    for file in begun.drain(..) {
        if let Some(mut state) = file.state_soon() {
            // The process ends either way.
            let _ = state.finish();
        }
    }
}

impl State {
    fn finish(&mut self) -> Result<()> {
        if self.path.as_os_str().is_empty() || self.is_done {
            return Ok(());
        }
        self.write()?;
        self.is_done = true;
        self.sink.take().map_or(Ok(()), |mut sink| sink.finish())
    }

    fn write(&mut self) -> Result<()> {
        if self.is_done {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let rows = match holds_bytes(&self.path) {
            true => rejected_batch(&waiting)?,
            false => rejected_text(&waiting)?,
        };
        let sink = match &mut self.sink {
            Some(sink) => sink,
            None => {
                let sink = sink::create(&self.path, &rows.schema(), &SinkOptions::default())?;
                self.sink.insert(sink)
            }
        };
        sink.write(&rows)
    }
}

fn holds_bytes(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    let of_bytes = SINKS
        .iter()
        .filter(|kind| matches!(kind.name, "parquet" | "arrow"));
    let mut suffixes = of_bytes.flat_map(|kind| kind.suffixes);
    suffixes.any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_done_is_kept_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let file = DeadLetterFile::default();
        let letters = file.letters(&folder.path().join("letters.csv")).unwrap();
        file.finish().unwrap();
        drop(letters);
        assert_eq!(Arc::strong_count(&file.0), 1);
    }
}
