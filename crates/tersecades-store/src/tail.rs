//! The log that another process writes, read as it grows.
//!
//! ```text
//! writer:  segment 7 (in runs, kept) │ segment 8 (in runs, kept) │ segment 9 ─▶ grows
//!             ▲ held open, with a shared lock
//! tail:   ────┘ the rest of 7, then 8, then 9
//! ```
//! The writer removes segments from the oldest on, and none from the first on that it cannot lock.
//! A lock goes with its process, so that one that has died keeps nothing.
//!
//! Bytes of a frame can be seen before they are on the device. A frame is handed out when a later
//! one says that it was durable; where none follows by the next look, the tail syncs the file.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};

use crate::bookmark::{self, Bookmark};
use crate::commit::State;
use crate::encode::conform;
use crate::follow::{Arrival, too_slow};
use crate::frame::{self, FILE_HEADER_BYTES, Frame};
use crate::fs::{Directory, Input};
use crate::log::{self, Replay};
use crate::manifest;
use crate::option::Durability;
use crate::recovery::{Recovered, recover};
use crate::schema::StoreSchema;
use crate::store::READ_TRIES;
use crate::version::Snapshot;

/// How long nothing happens between two looks at the log.
const PAUSE: Duration = Duration::from_millis(5);
/// How long nothing has come before the manifest is asked whether anything will.
const QUIET: Duration = Duration::from_millis(50);

/// A segment that the writer keeps, and all behind it, while this is there.
pub(crate) struct Held {
    pub(crate) number: u64,
    input: Box<dyn Input>,
}

/// What follows a snapshot, by the log.
pub(crate) struct Tail {
    directory: Directory,
    /// Columns of the snapshot, which batches get that were written before one was added.
    fields: SchemaRef,
    /// Whether rows last as soon as the operating system has them, as far as they ever do.
    is_unsafe: bool,
    segment: Held,
    /// Bytes of the segment that were handed out, and that there were at the last look.
    offset: u64,
    length: u64,
    /// Number of the next row of the log.
    next: u64,
    /// Number of the next row that is handed out.
    handed: u64,
    /// Where rows end that are handed out.
    until: u64,
    ready: VecDeque<Arc<Batch>>,
    /// When rows came last, or the manifest was read.
    active: Instant,
    /// Looks at the manifest that have failed, one after the other.
    failures: usize,
    /// Rows that were all there was and were read when this began, if the stream that fed the store
    /// had failed by then.
    failed_at: Option<u64>,
}

impl Tail {
    /// The store in `directory` as it is, and what follows.
    ///
    /// # Errors
    /// As [`crate::Store::open_read_only`].
    pub(crate) fn begin(directory: &Directory) -> Result<(Snapshot, Self)> {
        let mut tries = READ_TRIES;
        loop {
            // The writer may remove files between our looks at the manifest and at them.
            match Self::try_begin(directory) {
                Err(_) if tries > 0 => tries -= 1,
                begun => return begun,
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn try_begin(directory: &Directory) -> Result<(Snapshot, Self)> {
        let (_, catalog) = manifest::read(directory)?;
        let directory = &directory.of_store(catalog.identity);
        // From here on no row leaves the log unread.
        let first = hold(directory, catalog.log_start)?;
        let recovered = recover(directory)?;
        let Recovered { version, place, .. } = recovered;
        let is_unsafe = version.catalog.options.durability == Durability::Os;
        if !is_unsafe {
            log::sync(directory, version.catalog.log_start)?;
        }
        let segment = hold(directory, place.0)?;
        drop(first);
        let state = State::new(None, recovered.memory, Arc::new(version));
        let snapshot = Snapshot::of(&state);
        let next = snapshot.sequence();
        let failure = snapshot.version.catalog.failure_at(next);
        let tail = Tail {
            is_unsafe,
            offset: place.1 as u64,
            length: place.1 as u64,
            failed_at: failure.map(|_| next),
            ..Tail::of(directory, snapshot.schema(), segment, next)
        };
        Ok((snapshot, tail))
    }

    /// What begins with row `next`, the first of `segment`.
    fn of(directory: &Directory, schema: &StoreSchema, segment: Held, next: u64) -> Self {
        Tail {
            directory: directory.clone(),
            fields: schema.stored(),
            is_unsafe: false,
            segment,
            offset: FILE_HEADER_BYTES as u64,
            length: FILE_HEADER_BYTES as u64,
            next,
            handed: next,
            until: u64::MAX,
            ready: VecDeque::new(),
            active: Instant::now()
                .checked_sub(QUIET)
                .unwrap_or_else(Instant::now),
            failures: 0,
            failed_at: None,
        }
    }

    /// What follows `bookmark` in the store in `directory`, which another process may write.
    ///
    /// # Errors
    /// `LimitExceeded` where the rows that come next have left the log, saying how many; `Corrupt`
    /// for another store, and one that has lost rows; as [`crate::Store::open_read_only`].
    pub(crate) fn resume(directory: &Directory, bookmark: &Bookmark) -> Result<Self> {
        let mut tries = READ_TRIES;
        let recovered = loop {
            match recover(directory) {
                Err(_) if tries > 0 => tries -= 1,
                recovered => break recovered?,
            }
            std::thread::sleep(PAUSE);
        };
        let (catalog, end) = (&recovered.version.catalog, recovered.memory.sequences().end);
        let directory = &directory.of_store(catalog.identity);
        bookmark.check(catalog, end)?;
        // Who has rows to read yet has not been told.
        let failure = catalog.failure_at(end).filter(|_| bookmark.next == end);
        Ok(Tail {
            is_unsafe: catalog.options.durability == Durability::Os,
            failed_at: failure.map(|_| end),
            ..Tail::behind(directory, &catalog.schema, bookmark)?
        })
    }

    /// What follows `bookmark` in the store in `directory`, which this process writes, up to row
    /// `until`: all of them last.
    ///
    /// # Errors
    /// `LimitExceeded` where the rows that come next have left the log, saying how many.
    pub(crate) fn resume_within(
        directory: &Directory,
        schema: &StoreSchema,
        bookmark: &Bookmark,
        until: u64,
    ) -> Result<Self> {
        Ok(Tail {
            is_unsafe: true,
            until,
            ..Tail::behind(directory, schema, bookmark)?
        })
    }

    /// The rows of the log behind `bookmark`.
    fn behind(directory: &Directory, schema: &StoreSchema, bookmark: &Bookmark) -> Result<Self> {
        let next = bookmark.next;
        let mut first_left = next;
        for number in log::segments(directory)?.into_iter().rev() {
            let Some((segment, begins)) = open_segment(directory, number)? else {
                continue;
            };
            if begins <= next {
                bookmark::require(directory, bookmark)?;
                return Ok(Tail {
                    handed: next,
                    ..Tail::of(directory, schema, segment, begins)
                });
            }
            first_left = begins;
        }
        let error = Error::limit(format!(
            "{} rows from number {next} on have left the log since the snapshot",
            first_left - next
        ))
        .hint(
            "run the query anew over the store, where their order is lost and retention may have \
             let some go; take snapshots before 256 MiB of log come behind them",
        );
        Err(directory.name_file(error, ""))
    }

    /// The segment that is read, and the number of the next row that is handed out.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.segment.number, self.handed)
    }

    /// What comes next, waiting for it no longer than `wait`.
    ///
    /// # Errors
    /// Where the stream that feeds the store has failed; `LimitExceeded` where rows left the log
    /// before they were read; what reading says.
    pub(crate) fn next(&mut self, wait: Duration) -> Result<Arrival> {
        let until = Instant::now() + wait;
        loop {
            if let Some(batch) = self.ready.pop_front() {
                let batch = Arc::unwrap_or_clone(batch);
                self.handed += batch.rows() as u64;
                return Ok(Arrival::Rows(Arc::new(conform(batch, &self.fields)?)));
            }
            if self.look()? {
                self.active = Instant::now();
                continue;
            }
            if self.active.elapsed() >= QUIET && self.rests()? {
                return Ok(Arrival::End);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Arrival::Nothing);
            }
            std::thread::sleep(left.min(PAUSE));
        }
    }

    /// Whether all rows that there will be were read.
    fn rests(&mut self) -> Result<bool> {
        self.active = Instant::now();
        let catalog = match manifest::read(&self.directory) {
            Ok((_, catalog)) => catalog,
            // The writer may just be taking another.
            Err(_) if self.failures < READ_TRIES => {
                self.failures += 1;
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        self.failures = 0;
        // What the manifest counts was in the log before.
        let unread = self.look()? || self.length > self.offset;
        if unread {
            return Ok(false);
        }
        match catalog.failure_at(self.next) {
            Some(failure) if self.failed_at != Some(self.next) => Err(failure),
            _ => catalog.rests_at(self.next),
        }
    }

    /// Reads on where rows have come that last; whether there is something to do at once.
    fn look(&mut self) -> Result<bool> {
        // A segment behind which there is another does not grow any more.
        let successor = self.successor()?;
        let length = self.length_of(&self.segment)?;
        let waited = length == self.length || successor.is_some();
        self.length = length;
        if length > self.offset {
            self.read(waited)?;
        }
        if !self.ready.is_empty() {
            return Ok(true);
        }
        let Some((segment, begins)) = successor else {
            return Ok(false);
        };
        self.check_begin(begins)?;
        self.segment = segment;
        self.offset = FILE_HEADER_BYTES as u64;
        self.length = self.offset;
        Ok(true)
    }

    /// Reads the whole frames that are new, those of which no later one says that they last only
    /// if there was time for a later one.
    fn read(&mut self, waited: bool) -> Result<()> {
        let number = self.segment.number;
        let name = log::file_name(number);
        let mut bytes = vec![0; (self.length - self.offset) as usize];
        let input = self.segment.input.as_ref();
        self.directory
            .read_at(input, &name, &mut bytes, self.offset)?;
        let (mut frames, mut end, mut durable) = (Vec::<(usize, Frame<'_>)>::new(), 0, 0);
        while let Some(frame) = bytes.get(end..).and_then(|rest| frame::read(number, rest)) {
            durable = durable.max(frame.durable);
            frames.push((end, frame));
            end += frame.length();
        }
        if end == 0 && frame::was_durable(number, &bytes, self.offset) {
            let error = frame::damaged(self.offset as usize);
            return Err(self.directory.name_file(error, &name));
        }
        if !self.is_unsafe {
            let lasts = (durable.saturating_sub(self.offset) as usize).min(end);
            if waited && lasts < end {
                self.directory.sync_input(input, &name)?;
            } else {
                frames.retain(|(start, frame)| start + frame.length() <= lasts);
                end = frames
                    .last()
                    .map_or(0, |(start, frame)| start + frame.length());
            }
        }
        let base = self.offset as usize;
        frames.iter_mut().for_each(|(start, _)| *start += base);
        let mut replay = Replay {
            end: self.next,
            ..Replay::default()
        };
        log::read_records(&frames, &mut replay)
            .map_err(|error| self.directory.name_file(error, &name))?;
        for batch in replay.batches {
            let rows = self.next..self.next + batch.rows() as u64;
            self.next = rows.end;
            if rows.end > self.handed && rows.start < self.until {
                if rows.start < self.handed {
                    return Err(split(self.handed, &rows));
                }
                self.ready.push_back(Arc::new(batch));
            }
        }
        self.offset += end as u64;
        Ok(())
    }

    /// The next segment there is, and its first row.
    fn successor(&self) -> Result<Option<(Held, u64)>> {
        for number in log::segments(&self.directory)? {
            if number <= self.segment.number {
                continue;
            }
            if let Some(opened) = open_segment(&self.directory, number)? {
                return Ok(Some(opened));
            }
        }
        Ok(None)
    }

    /// Whether a segment that begins with row `begins` goes on where this one ends.
    fn check_begin(&self, begins: u64) -> Result<()> {
        let next = self.next;
        let error = match begins.cmp(&next) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Greater => {
                too_slow(&format!("rows {next} to {begins} left the log before"))
            }
            std::cmp::Ordering::Less => Error::corrupt(format!(
                "rows {begins} to {next} were read, and the log has others of these numbers"
            ))
            .hint("a power cut has lost rows, or a repair has written them anew: follow anew"),
        };
        Err(self.directory.name_file(error, ""))
    }

    fn length_of(&self, segment: &Held) -> Result<u64> {
        let name = log::file_name(segment.number);
        self.directory.length(segment.input.as_ref(), &name)
    }
}

/// Opens segment `number` so that the writer keeps it.
pub(crate) fn hold(directory: &Directory, number: u64) -> Result<Held> {
    let name = log::file_name(number);
    match directory.open_shared(&name)? {
        Some(input) => Ok(Held { number, input }),
        None => Err(directory.name_file(too_slow("the log is gone"), &name)),
    }
}

/// Opens segment `number` so that the writer keeps it, with the number of its first row; `None` for
/// one that is being made, or that a crash left unmade, and one that the writer has given up: what
/// is missing shows at the one behind it.
fn open_segment(directory: &Directory, number: u64) -> Result<Option<(Held, u64)>> {
    let name = log::file_name(number);
    let Some(input) = directory.open_shared(&name)? else {
        return Ok(None);
    };
    let length = directory.length(input.as_ref(), &name)?;
    let mut header = vec![0; (length as usize).min(FILE_HEADER_BYTES)];
    directory.read_at(input.as_ref(), &name, &mut header, 0)?;
    match log::read_header(directory, number, &header) {
        Ok(begins) => Ok(Some((Held { number, input }, begins))),
        Err(_) if length <= FILE_HEADER_BYTES as u64 => Ok(None),
        Err(error) => Err(directory.name_file(error, &name)),
    }
}

fn split(next: u64, rows: &Range<u64>) -> Error {
    Error::corrupt(format!(
        "row {next} is not the first of an append: that has rows {} to {}",
        rows.start, rows.end
    ))
    .hint("the log is not the one that was read before: run the query anew")
}
