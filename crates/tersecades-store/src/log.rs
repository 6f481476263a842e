//! The log: segments of frames, each with the batches that one sync made durable.
//!
//! ```text
//! segment: header (its first row's number) │ frame │ frame │ …
//! frame:   { first row u64, rows u32, bytes u32, batch unit } one for each append of the group
//! ```
//! A segment says with which row it begins, so that rows missing from the one before it are missed.

use std::ops::Range;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, ErrorKind, Result};
use tersecades_columnar::wire;

use crate::bytes::{Put as _, Take};
use crate::frame::{self, End, FILE_HEADER_BYTES, FileHeader, Frame};
use crate::fs::{Directory, LOG_FOLDER, Output};

const MAGIC: [u8; 4] = *b"TCWL";
const ROWS: u8 = 1;

/// Name of the file of segment `number`, below the store's folder.
pub(crate) fn file_name(number: u64) -> String {
    format!("{LOG_FOLDER}/{number:010}.log")
}

/// Numbers of the segments there are, ascending.
///
/// # Errors
/// What the system says.
pub(crate) fn segments(directory: &Directory) -> Result<Vec<u64>> {
    let names = directory.names(LOG_FOLDER)?;
    Ok(names.iter().filter_map(|name| number_of(name)).collect())
}

/// The number of the segment in the file `name` of the log's folder.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
    (file_name(number)
        .strip_prefix(LOG_FOLDER)?
        .strip_prefix('/')?
        == name)
        .then_some(number)
}

/// A segment that is written.
pub(crate) struct Segment {
    directory: Directory,
    output: Box<dyn Output>,
    number: u64,
    length: u64,
    durable: u64,
}

impl Segment {
    /// Begins segment `number` with row `first`; it lasts when this returns.
    ///
    /// # Errors
    /// What writing says; nothing is left of the file then.
    pub(crate) fn create(directory: &Directory, number: u64, first: u64) -> Result<Self> {
        let mut segment = Segment {
            output: directory.create(&file_name(number))?,
            directory: directory.clone(),
            number,
            length: FILE_HEADER_BYTES as u64,
            durable: FILE_HEADER_BYTES as u64,
        };
        match segment.begin(first) {
            Ok(()) => Ok(segment),
            Err(error) => {
                segment.abandon();
                Err(error)
            }
        }
    }

    fn begin(&mut self, first: u64) -> Result<()> {
        let (name, store) = (file_name(self.number), self.directory.identity());
        let header = FileHeader { free: first, store };
        let mut bytes = Vec::new();
        frame::write_file_header(MAGIC, self.number, header, &mut bytes);
        self.directory.write(self.output.as_mut(), &name, &bytes)?;
        self.directory.sync(self.output.as_mut(), &name)?;
        self.directory.sync_names(LOG_FOLDER)
    }

    /// Removes a segment that has no rows, unless somebody follows it already.
    pub(crate) fn abandon(self) {
        // One that is left over is passed over, and goes with those before it.
        let _ = self.directory.remove_unread(&file_name(self.number));
    }

    /// The segment's number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Appends a frame with the entries that `payload` holds, and waits until it lasts if `sync`.
    ///
    /// # Errors
    /// What writing says; the segment is not to be used again then. A full disk is `LimitExceeded`
    /// only where the frame is not whole: of one that is, nobody knows whether it will last.
    pub(crate) fn append(&mut self, payload: &[u8], sync: bool) -> Result<()> {
        let mut bytes = Vec::with_capacity(payload.len() + FILE_HEADER_BYTES);
        frame::write(self.number, self.durable, ROWS, payload, &mut bytes)?;
        let name = file_name(self.number);
        self.directory.write(self.output.as_mut(), &name, &bytes)?;
        self.length += bytes.len() as u64;
        if sync {
            let synced = self.directory.sync(self.output.as_mut(), &name);
            synced.map_err(|error| does_not_pass(&self.directory, error, &name))?;
            self.durable = self.length;
        }
        Ok(())
    }
}

/// `error` of a sync, none of which is tried again, also where it was the disk that was full.
fn does_not_pass(directory: &Directory, error: Error, name: &str) -> Error {
    match error.kind() {
        ErrorKind::LimitExceeded => Error::io(error.message())
            .file(directory.path(name).display().to_string())
            .hint("open the store again when there is space"),
        _ => error,
    }
}

/// Makes what was written to the segments from number `start` on last, whoever wrote it.
///
/// # Errors
/// What syncing says.
pub(crate) fn sync(directory: &Directory, start: u64) -> Result<()> {
    segments_from(directory, start)?.try_for_each(|name| {
        let synced = directory.sync_input(directory.open(&name)?.as_ref(), &name);
        synced.map_err(|error| does_not_pass(directory, error, &name))
    })
}

/// As [`sync`], also of what a sync has failed to write: it can be read, and no later sync writes
/// it or tells.
///
/// # Errors
/// What writing and syncing say.
pub(crate) fn renew(directory: &Directory, start: u64) -> Result<()> {
    segments_from(directory, start)?.try_for_each(|name| directory.renew(&name))
}

/// File names of the segments from number `start` on.
fn segments_from(directory: &Directory, start: u64) -> Result<impl Iterator<Item = String>> {
    let numbers = segments(directory)?.into_iter();
    Ok(numbers
        .filter(move |number| *number >= start)
        .map(file_name))
}

/// Appends an entry: a batch whose first row is number `first`.
///
/// # Errors
/// `LimitExceeded` for batches of 4 GiB.
pub(crate) fn write_entry(first: u64, rows: usize, batch: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.put_u64(first);
    out.put_u32(rows as u32);
    out.put_blob(batch)
}

/// Rows that were found in the log.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// Batches, in order.
    pub(crate) batches: Vec<Batch>,
    /// Number of the row after the last.
    pub(crate) end: u64,
    /// Where that row is to come: the number of the segment, and its bytes that were read.
    pub(crate) place: (u64, usize),
}

/// Reads the rows of all segments from number `start` on, the first of which is row `first`.
///
/// # Errors
/// `Corrupt`, naming file and offset, where rows are missing that were durable.
pub(crate) fn replay(
    directory: &Directory,
    start: u64,
    first: u64,
    closed: Option<u64>,
) -> Result<Replay> {
    let numbers = segments(directory)?;
    let numbers: Vec<u64> = numbers
        .into_iter()
        .filter(|number| *number >= start)
        .collect();
    if numbers.first() != Some(&start) {
        let name = file_name(start);
        let error = Error::corrupt("a segment of the log is missing");
        return Err(directory.name_file(error, &name));
    }
    let mut replay = Replay {
        end: first,
        ..Replay::default()
    };
    for (index, number) in numbers.iter().enumerate() {
        let name = file_name(*number);
        let bytes = directory.read(&name)?;
        read_segment(directory, *number, (&bytes, index == 0), &mut replay)
            .map_err(|error| directory.name_file(error, &name))?;
    }
    if let Some(rows) = closed.filter(|rows| *rows != replay.end) {
        let last = file_name(numbers.last().copied().unwrap_or(start));
        return Err(directory.name_file(rows_missing(replay.end, rows), &last));
    }
    Ok(replay)
}

/// The error of a log that ends too early.
pub(crate) fn rows_missing(found: u64, expected: u64) -> Error {
    Error::corrupt(format!(
        "the log ends at row {found}, and there were {expected} rows"
    ))
    .hint("`store repair` keeps what is readable and says what it gives up")
}

/// Adds the rows of one segment.
///
/// # Errors
/// `Corrupt` for damage, and where the segment does not go on where the one before ended.
pub(crate) fn read_segment(
    directory: &Directory,
    number: u64,
    (bytes, is_first): (&[u8], bool),
    replay: &mut Replay,
) -> Result<()> {
    let begins = match read_header(directory, number, bytes) {
        Ok(begins) => begins,
        Err(error) => {
            // A crash or a full disk while a segment was made leaves no more than its header; the
            // one after it tells whether rows are missing.
            let unmade = !is_first && bytes.len() <= FILE_HEADER_BYTES;
            return if unmade { Ok(()) } else { Err(error) };
        }
    };
    if begins != replay.end {
        return Err(rows_missing(replay.end, begins));
    }
    // Bytes that a crash left behind the last record are none of ours.
    let mut records = Vec::new();
    let end = frame::read_all(number, bytes, FILE_HEADER_BYTES, |offset, frame| {
        records.push((offset, frame));
        Ok(())
    })?;
    let end = match end {
        End::Whole => bytes.len(),
        End::Torn(offset) => offset,
    };
    read_records(&records, replay)?;
    replay.place = (number, end);
    Ok(())
}

/// The number of the first row of segment `number`, which starts with `bytes`.
///
/// # Errors
/// `Corrupt` for a segment of another store; as [`frame::read_file_header`].
pub(crate) fn read_header(directory: &Directory, number: u64, bytes: &[u8]) -> Result<u64> {
    let header = frame::read_file_header(MAGIC, number, bytes)?;
    match directory.owns(header.store) {
        true => Ok(header.free),
        false => Err(of_another_store("the segment of the log")),
    }
}

/// Whether `bytes` are segment `number` of another store.
pub(crate) fn is_foreign(directory: &Directory, number: u64, bytes: &[u8]) -> bool {
    let header = frame::read_file_header(MAGIC, number, bytes);
    header.is_ok_and(|header| !directory.owns(header.store))
}

/// The store that segment `number`, which `bytes` are, belongs to, where anything follows its
/// header.
pub(crate) fn owner_of_rows(number: u64, bytes: &[u8]) -> Option<u32> {
    let header = frame::read_file_header(MAGIC, number, bytes).ok()?;
    (bytes.len() > FILE_HEADER_BYTES).then_some(header.store)
}

/// The error of `what`, a file that belongs to another store.
pub(crate) fn of_another_store(what: &str) -> Error {
    Error::corrupt(format!("{what} belongs to another store"))
        .hint("put the file of this store back; `store repair` goes on without it")
}

/// Adds the rows of records, each with its offset.
///
/// # Errors
/// `Corrupt` for damage, and where the rows do not go on where those before ended.
pub(crate) fn read_records(records: &[(usize, Frame<'_>)], replay: &mut Replay) -> Result<()> {
    let damaged = |offset: usize, error: &Error| {
        let message = format!(
            "the record at byte {offset} is damaged: {}",
            error.message()
        );
        Error::corrupt(message).hint("`store repair` keeps what is readable")
    };
    let mut entries = Vec::new();
    for (offset, frame) in records {
        let read = match frame.kind {
            ROWS => read_entries(*offset, frame.payload, replay, &mut entries),
            _ => Err(Error::corrupt("a record of an unknown kind")),
        };
        read.map_err(|error| damaged(*offset, &error))?;
    }
    for (entry, batch) in entries.iter().zip(read_batches(&entries)?) {
        let batch = batch.map_err(|error| damaged(entry.offset, &error))?;
        if batch.rows() as u64 != entry.rows {
            let error = Error::corrupt("its rows are not as many as it says");
            return Err(damaged(entry.offset, &error));
        }
        replay.batches.push(batch);
    }
    Ok(())
}

/// A batch of a record, not decoded.
struct Entry<'a> {
    /// Where the record begins.
    offset: usize,
    rows: u64,
    unit: &'a [u8],
}

fn read_entries<'a>(
    offset: usize,
    payload: &'a [u8],
    replay: &mut Replay,
    entries: &mut Vec<Entry<'a>>,
) -> Result<()> {
    let mut take = Take::new(payload);
    while !take.rest().is_empty() {
        let first = take.u64()?;
        let rows: Range<u64> = first..first.saturating_add(u64::from(take.u32()?));
        let unit = take.blob()?;
        if rows.start != replay.end {
            return Err(Error::corrupt("its rows do not follow those before it"));
        }
        replay.end = rows.end;
        entries.push(Entry {
            offset,
            rows: rows.end - rows.start,
            unit,
        });
    }
    Ok(())
}

/// Least entries that are worth a thread.
const THREAD_ENTRIES: usize = 64;

/// The batches of `entries`, in their order, read by as many threads as there are cores.
///
/// # Errors
/// `Internal` where a thread panicked.
fn read_batches(entries: &[Entry<'_>]) -> Result<Vec<Result<Batch>>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = entries.len().div_ceil(cores).max(THREAD_ENTRIES);
    let read = |part: &[Entry<'_>]| -> Vec<Result<Batch>> {
        let units = part.iter().map(|entry| wire::read_batch(entry.unit));
        units.collect()
    };
    if entries.len() <= share {
        return Ok(read(entries));
    }
    std::thread::scope(|scope| {
        let threads = entries
            .chunks(share)
            .map(|part| scope.spawn(move || read(part)));
        let threads: Vec<_> = threads.collect();
        let mut batches = Vec::with_capacity(entries.len());
        for thread in threads {
            let part = thread.join();
            batches
                .extend(part.map_err(|_| Error::internal("a thread that reads the log panicked"))?);
        }
        Ok(batches)
    })
}

/// Adds the batches of every whole record of a segment, wherever it lies, each with the number of
/// its first row; bytes that hold none.
pub(crate) fn salvage(number: u64, bytes: &[u8], batches: &mut Vec<(u64, Batch)>) -> u64 {
    let start = FILE_HEADER_BYTES.min(bytes.len());
    let mut lost = bytes.len() - start;
    for (_, frame) in frame::whole(number, bytes, start) {
        let mut take = Take::new(frame.payload);
        while let Ok(batch) = take_batch(&mut take) {
            batches.push(batch);
        }
        lost -= frame.length() - take.rest().len();
    }
    lost as u64
}

fn take_batch(take: &mut Take<'_>) -> Result<(u64, Batch)> {
    let (first, _rows) = (take.u64()?, take.u32()?);
    Ok((first, wire::read_batch(take.blob()?)?))
}
