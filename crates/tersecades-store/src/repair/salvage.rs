//! Takes what is left of the log, and tells what of it is lost.
//!
//! Bytes that hold no whole record are what a crash or a full disk has cut off, and no loss, where
//! whatever comes next, a segment or the end of a store that was closed, goes on with the very next
//! row.

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};

use crate::frame::FILE_HEADER_BYTES;
use crate::fs::Directory;
use crate::log::{self, Replay};
use crate::lost::Lost;

use super::Repair;
use super::mark::Mark;

/// Where reading the log has come to.
struct Reached {
    /// The file.
    name: String,
    /// Number of the next row.
    next: u64,
    /// What of the files so far holds no whole record, until it is known whether rows are lost.
    torn: Vec<Torn>,
}

/// Bytes of a file that hold no whole record.
struct Torn {
    name: String,
    bytes: u64,
    /// Number of the row behind the last of the file.
    end: u64,
    /// Whether they lie where a crash leaves such, behind all that was ever whole.
    is_cut_off: bool,
}

impl Repair {
    /// Every batch of the log that can be read, with the number of its first row; notes what is
    /// missing between them, and damaged files.
    pub(super) fn salvage_log(&mut self, mark: &Mark) -> Result<Vec<(u64, Batch)>> {
        let mut batches = Vec::new();
        let mut reached = Reached {
            name: log::file_name(self.catalog.log_start),
            next: self.catalog.flushed,
            torn: Vec::new(),
        };
        for number in log::segments(&self.directory)? {
            if number < self.catalog.log_start {
                continue;
            }
            let name = log::file_name(number);
            let bytes = self.directory.read(&name)?;
            reached.name.clone_from(&name);
            match log::read_header(&self.directory, number, &bytes) {
                Ok(begins) => self.reach(&mut reached, begins),
                Err(error) if log::is_foreign(&self.directory, number, &bytes) => {
                    // What a store without rows had before it became another has none.
                    if !self.is_taken || bytes.len() > FILE_HEADER_BYTES {
                        self.give_up(error, &name);
                    }
                    self.damaged.push(name);
                    continue;
                }
                Err(_) => {}
            }
            let begun = reached.next;
            let mut found = Vec::new();
            let torn = log::salvage(number, &bytes, &mut found);
            for (first, batch) in found {
                self.reach(&mut reached, first);
                // A repair that was cut short has written rows anew.
                let end = first.saturating_add(batch.rows() as u64);
                if end > reached.next {
                    reached.next = end;
                    batches.push((first, batch));
                }
            }
            if torn > 0 {
                reached.torn.push(Torn {
                    // What was given up once has been lost, whatever was written behind it since.
                    is_cut_off: !mark.names(&name)
                        && opens(&self.directory, number, &bytes, begun) == Some(reached.next),
                    name,
                    bytes: torn,
                    end: reached.next,
                });
            }
        }
        if !self.is_newest || self.catalog.closed.is_none() {
            // Rows may have come behind those that are known.
            reached.torn.drain(..).for_each(|torn| self.tear(torn));
        }
        if let Some(end) = self.catalog.closed {
            self.reach(&mut reached, end);
        }
        Ok(batches)
    }

    /// Goes on with row `found`: those between are missing.
    fn reach(&mut self, reached: &mut Reached, found: u64) {
        for torn in reached.torn.drain(..) {
            if !(torn.is_cut_off && torn.end == found) {
                self.tear(torn);
            }
        }
        let next = reached.next;
        if found <= next {
            return;
        }
        let message = format!("rows {next} to {} of the log are missing", found - 1);
        self.give_up(Error::corrupt(message), &reached.name);
        self.repaired.lost_log_rows += found - next;
        self.lost.push(Lost::from(next));
        reached.next = found;
    }

    /// Gives up bytes that may have held rows.
    fn tear(&mut self, torn: Torn) {
        let Torn {
            name, bytes, end, ..
        } = torn;
        self.repaired.lost_log_bytes += bytes;
        let message = format!("{bytes} bytes of the log hold no whole record");
        self.give_up(Error::corrupt(message), &name);
        self.damaged.push(name);
        if self.catalog.closed != Some(end) {
            self.lost.push(Lost::from(end));
        }
    }
}

/// Number of the row behind the last of segment `number`, which `bytes` are, as whoever opens the
/// store finds it whose rows before it end at row `begun`.
fn opens(directory: &Directory, number: u64, bytes: &[u8], begun: u64) -> Option<u64> {
    let mut replay = Replay {
        end: begun,
        ..Replay::default()
    };
    let read = log::read_segment(directory, number, (bytes, false), &mut replay);
    read.is_ok().then_some(replay.end)
}
