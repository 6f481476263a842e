//! The manifest: a file to which every change of a store appends the whole catalogue.
//!
//! A catalogue is a few kilobytes, so that writing it whole costs no more than writing what
//! changed, and the last one is all that is needed. Each is there twice: damage to one place takes
//! none away. `CURRENT` names the manifest in use.

use tersecades_columnar::error::{Error, ErrorKind, Result};

use crate::catalog::Catalog;
use crate::frame::{self, FILE_HEADER_BYTES, FileHeader, Frame};
use crate::fs::{Directory, Output};
use crate::recovery::holds_rows;

const MAGIC: [u8; 4] = *b"TCMF";
const CATALOG: u8 = 1;
const PREFIX: &str = "MANIFEST-";

/// Names the manifest in use.
pub(crate) const CURRENT: &str = "CURRENT";
const CURRENT_NEW: &str = "CURRENT.new";

/// How often each catalogue is there; earlier releases wrote one, and 0 in the header.
const COPIES: u64 = 2;

/// Length at which a new file is begun.
const ROTATE_BYTES: usize = 1 << 20;

/// The manifest, open for writing.
pub(crate) struct Manifest {
    directory: Directory,
    output: Option<Box<dyn Output>>,
    number: u64,
    bytes: usize,
}

/// Name of manifest `number`.
pub(crate) fn file_name(number: u64) -> String {
    format!("{PREFIX}{number:010}")
}

/// Whether a file belongs to manifests.
pub(crate) fn is_manifest(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX);
    number.is_some_and(|number| number.parse::<u64>().is_ok()) || name == CURRENT_NEW
}

/// Makes manifest `number`, which is in use, last, and removes all others.
///
/// # Errors
/// What the system says.
pub(crate) fn settle(directory: &Directory, number: u64) -> Result<()> {
    let name = file_name(number);
    directory.sync_input(directory.open(&name)?.as_ref(), &name)?;
    directory.sync_names("")?;
    remove_others(directory, &name)
}

/// Removes all manifests but the one of this name.
///
/// # Errors
/// What the system says.
pub(crate) fn remove_others(directory: &Directory, in_use: &str) -> Result<()> {
    let names = directory.names("")?.into_iter();
    let mut others = names.filter(|name| is_manifest(name) && name != in_use);
    others.try_for_each(|name| directory.remove(&name))
}

/// The largest number of a manifest.
///
/// # Errors
/// What the system says.
pub(crate) fn newest(directory: &Directory) -> Result<u64> {
    let names = directory.names("")?;
    let numbers = names
        .iter()
        .filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok());
    Ok(numbers.max().unwrap_or(0))
}

/// A manifest that was read.
#[derive(Debug)]
pub(crate) struct Read {
    /// What it says last.
    pub(crate) catalog: Catalog,
    /// The first byte in front of that which is of no whole record.
    pub(crate) damaged: Option<usize>,
    /// Bytes behind it that hold no whole record.
    pub(crate) torn: usize,
}

/// The number of the manifest in use, and what it says last.
///
/// # Errors
/// `InvalidArgument` where there is no store; `Corrupt`, naming file and offset, for damage.
pub(crate) fn read(directory: &Directory) -> Result<(u64, Catalog)> {
    let (number, read) = read_whole(directory)?;
    Ok((number, read.catalog))
}

/// The number of the manifest in use, and what was found in it.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_whole(directory: &Directory) -> Result<(u64, Read)> {
    let number = read_current(directory)?;
    let name = file_name(number);
    let read = directory.read(&name).and_then(|bytes| {
        frame::read_file_header(MAGIC, number, &bytes)?;
        last_catalog(number, &bytes)
    });
    match read {
        Ok(read) => Ok((number, read)),
        Err(error) => Err(directory.name_file(error, &name)),
    }
}

/// The version of the manifest in use.
///
/// # Errors
/// As [`read`].
pub(crate) fn version(directory: &Directory) -> Result<u16> {
    let number = read_current(directory)?;
    let name = file_name(number);
    let bytes = directory.read(&name)?;
    frame::read_file_header(MAGIC, number, &bytes)
        .map(|_| frame::version_of(&bytes))
        .map_err(|error| directory.name_file(error, &name))
}

/// The last catalogue of the manifest that `bytes` are. What is damaged in front of it was
/// superseded, or is the same.
///
/// # Errors
/// `Corrupt` where there is none, or it cannot be read; `Unsupported` for one of a later release.
pub(crate) fn last_catalog(number: u64, bytes: &[u8]) -> Result<Read> {
    let (mut last, mut damaged, mut end) = (None, None, FILE_HEADER_BYTES);
    for (offset, frame) in catalogs(number, bytes) {
        if offset > end {
            damaged = damaged.or(Some(end));
        }
        end = offset + frame.length();
        last = Some((offset, frame.payload));
    }
    let (offset, payload) = last.ok_or_else(|| match bytes.len() > end {
        true => frame::damaged(end),
        false => Error::corrupt("the manifest is empty"),
    })?;
    let catalog = Catalog::from_bytes(payload).map_err(|error| match error.kind() {
        ErrorKind::Unsupported => error,
        _ => frame::damaged(offset),
    })?;
    let torn = bytes.len().saturating_sub(end);
    Ok(Read {
        catalog,
        damaged,
        torn,
    })
}

fn catalogs(number: u64, bytes: &[u8]) -> impl Iterator<Item = (usize, Frame<'_>)> {
    let frames = frame::whole(number, bytes, FILE_HEADER_BYTES);
    frames.filter(|(_, frame)| frame.kind == CATALOG)
}

/// The newest manifest that can be read, whatever `CURRENT` says: its number and its last
/// catalogue.
///
/// # Errors
/// `Corrupt` where none can be read; why others could not is added to `unread`.
pub(crate) fn read_newest(
    directory: &Directory,
    unread: &mut Vec<Error>,
) -> Result<(u64, Catalog)> {
    let current = read_current(directory).map_err(|error| unread.push(error));
    let names = directory.names("")?;
    for name in names.iter().rev().filter(|name| name.starts_with(PREFIX)) {
        let digits = name.strip_prefix(PREFIX);
        let Some(number) = digits.and_then(|digits| digits.parse().ok()) else {
            continue;
        };
        match salvage(number, &directory.read(name)?) {
            Some((catalog, is_last)) => {
                if !is_last {
                    let error = Error::corrupt("the manifest is damaged: an older state is used");
                    unread.push(directory.name_file(error, name));
                }
                return Ok((number, catalog));
            }
            // Of one that a crash left unmade nothing was in use.
            None if current.is_ok_and(|current| current < number) => {}
            None => unread.push(directory.name_file(Error::corrupt("no state is readable"), name)),
        }
    }
    let hint = "create a store with the same columns elsewhere, copy the folder `runs` into it, \
                and `log` for rows that are in no run, and repair that one";
    Err(Error::corrupt("no manifest can be read").hint(hint))
}

/// The last catalogue that can be read, and whether no other was behind it.
fn salvage(number: u64, bytes: &[u8]) -> Option<(Catalog, bool)> {
    let (mut found, mut end, mut count, mut is_gapless) = (None, FILE_HEADER_BYTES, 0, true);
    for (offset, frame) in catalogs(number, bytes) {
        let Ok(catalog) = Catalog::from_bytes(frame.payload) else {
            continue;
        };
        is_gapless &= offset == end;
        end = offset + frame.length();
        count += 1;
        found = Some((catalog, frame.length()));
    }
    let (catalog, length) = found?;
    let left = bytes.len() - end;
    let header = frame::read_file_header(MAGIC, number, bytes);
    let is_twice = header.is_ok_and(|header| header.free == COPIES);
    let is_first = is_twice && is_gapless && count % COPIES == 1;
    Some((catalog, left == 0 || (is_first && left == length)))
}

/// Whether `directory` holds a store.
///
/// # Errors
/// What the system says.
pub(crate) fn exists(directory: &Directory) -> Result<bool> {
    Ok(directory.names("")?.iter().any(|name| name == CURRENT))
}

/// Whether manifest `number` is in use.
pub(crate) fn is_in_use(directory: &Directory, number: u64) -> bool {
    read_current(directory).is_ok_and(|current| current == number)
}

/// Whether manifest `number` is known not to be in use.
pub(crate) fn is_unused(directory: &Directory, number: u64) -> bool {
    match exists(directory) {
        Ok(true) => read_current(directory).is_ok_and(|current| current != number),
        Ok(false) => true,
        Err(_) => false,
    }
}

fn read_current(directory: &Directory) -> Result<u64> {
    if !exists(directory)? {
        let error = match holds_rows(directory)? {
            true => Error::corrupt("the file that names the manifest of the store is missing")
                .hint("`tersecades store repair` finds the newest manifest"),
            false => {
                Error::invalid("there is no store here").hint("`tersecades store create` makes one")
            }
        };
        return Err(error.file(directory.path("").display().to_string()));
    }
    let bytes = directory.read(CURRENT)?;
    let damaged = || {
        let error = Error::corrupt("the name of the manifest is damaged")
            .hint("`store repair` finds the newest manifest");
        directory.name_file(error, CURRENT)
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| damaged())?;
    let number = text
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.get(..10))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(damaged)?;
    match text == current_text(number) {
        true => Ok(number),
        false => Err(damaged()),
    }
}

fn current_text(number: u64) -> String {
    let name = file_name(number);
    let sum = crc32c::crc32c(name.as_bytes());
    format!("{name} {sum:08x}\n")
}

impl Manifest {
    /// Begins a manifest after number `last`, with `catalog`.
    ///
    /// # Errors
    /// What writing says; the one before is in use then.
    pub(crate) fn begin(directory: &Directory, last: u64, catalog: &Catalog) -> Result<Self> {
        let mut manifest = Manifest {
            directory: directory.clone(),
            output: None,
            number: last,
            bytes: 0,
        };
        manifest.rotate(catalog)?;
        Ok(manifest)
    }

    /// Whether it may say what [`Manifest::append`] has failed to write last.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.output.is_none()
    }

    /// Makes `catalog` the state of the store; it is when this returns, and lasts.
    ///
    /// # Errors
    /// What writing says; the state may then be the old or the new one until the store is opened
    /// again, or until the next success.
    pub(crate) fn append(&mut self, catalog: &Catalog) -> Result<()> {
        match self.output.take() {
            Some(output) if self.bytes < ROTATE_BYTES => self.extend(output, catalog),
            // A file that a write failed in may end anyhow, so that none is appended to.
            _ => self.rotate(catalog),
        }
    }

    fn extend(&mut self, mut output: Box<dyn Output>, catalog: &Catalog) -> Result<()> {
        let name = file_name(self.number);
        let mut bytes = Vec::new();
        self.write(catalog, self.bytes, &mut bytes)?;
        self.directory.write(output.as_mut(), &name, &bytes)?;
        self.directory.sync(output.as_mut(), &name)?;
        self.bytes += bytes.len();
        self.output = Some(output);
        Ok(())
    }

    /// Appends the records of `catalog` to `out`, of a file with `durable` bytes on the device.
    fn write(&self, catalog: &Catalog, durable: usize, out: &mut Vec<u8>) -> Result<()> {
        let payload = catalog.to_bytes()?;
        let mut copies = 0..COPIES;
        copies.try_for_each(|_| frame::write(self.number, durable as u64, CATALOG, &payload, out))
    }

    fn rotate(&mut self, catalog: &Catalog) -> Result<()> {
        self.number += 1;
        let name = self.name();
        let made = self.make(&name, catalog);
        let (output, bytes) = made.inspect_err(|_| {
            // What is left over is removed when the store is opened again.
            let _ = self.directory.remove(CURRENT_NEW);
            let _ = self.directory.remove(&name);
        })?;
        self.directory.sync_names("")?;
        (self.output, self.bytes) = (Some(output), bytes);
        let _ = remove_others(&self.directory, &name);
        Ok(())
    }

    /// Makes the file `name`, to which `CURRENT` points when this returns, though that may not
    /// last; gives it and its length.
    fn make(&self, name: &str, catalog: &Catalog) -> Result<(Box<dyn Output>, usize)> {
        let number = self.number;
        let mut bytes = Vec::new();
        let header = FileHeader {
            free: COPIES,
            store: catalog.identity,
        };
        frame::write_file_header(MAGIC, number, header, &mut bytes);
        self.write(catalog, 0, &mut bytes)?;
        let mut output = self.directory.create(name)?;
        self.directory.write(output.as_mut(), name, &bytes)?;
        self.directory.sync(output.as_mut(), name)?;
        self.point_to(number)?;
        Ok((output, bytes.len()))
    }

    fn point_to(&self, number: u64) -> Result<()> {
        let directory = &self.directory;
        directory.remove(CURRENT_NEW)?;
        let mut output = directory.create(CURRENT_NEW)?;
        let text = current_text(number);
        directory.write(output.as_mut(), CURRENT_NEW, text.as_bytes())?;
        directory.sync(output.as_mut(), CURRENT_NEW)?;
        directory.sync_names("")?;
        directory.rename(CURRENT_NEW, CURRENT)
    }

    /// Name of the file in use.
    pub(crate) fn name(&self) -> String {
        file_name(self.number)
    }
}
