//! Where a follower stands, so that a later process goes on there.
//!
//! A lock keeps the log only as long as its process lives. A bookmark keeps it beyond: a file
//! without content, `bookmarks/<segment>-<holder>`, whose name says from which segment on the log
//! is kept.
//!
//! ```text
//! writer:     segment 7 │ segment 8 │ segment 9 ─▶ grows
//!               ▲ bookmarks/0000000007-00c0ffee00c0ffee: as good as a lock, up to the same limit
//! ```
//! The two last bookmarks of a follower stay: whoever took the last one may not have kept it yet.
//! Who comes back is a follower of its own, which begins with a bookmark at the same segment, so
//! that of several who come back to one place none lets go what another needs.

use std::collections::VecDeque;
use std::time::SystemTime;

use tersecades_columnar::error::{Error, ErrorKind, Result};

use crate::bytes::{Put as _, Take};
use crate::catalog::{Catalog, unlike_others};
use crate::fs::{BOOKMARK_FOLDER, Directory};
use crate::log;
use crate::store::Store;

/// Bookmarks of one follower that stay.
const KEPT: usize = 2;

/// Where a follower of a store stands: [`crate::Store::follow_from`] goes on there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bookmark {
    /// Whose bookmark it is.
    pub(crate) holder: u64,
    /// The segment of the log from which on it keeps them.
    pub(crate) segment: u64,
    /// Number of the next row.
    pub(crate) next: u64,
    /// The identity of the store.
    pub(crate) store: u32,
}

impl Bookmark {
    /// The bytes of the bookmark, for [`Bookmark::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u64(self.holder);
        out.put_u64(self.segment);
        out.put_u64(self.next);
        out.put_u32(self.store);
        out
    }

    /// The bookmark that `bytes` are.
    ///
    /// # Errors
    /// `Corrupt` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut take = Take::new(bytes);
        let bookmark = Bookmark {
            holder: take.u64()?,
            segment: take.u64()?,
            next: take.u64()?,
            store: take.u32()?,
        };
        take.end()?;
        Ok(bookmark)
    }

    /// Rows of the store that were read: the number of the next one.
    pub fn rows(&self) -> u64 {
        self.next
    }

    /// Refuses a store with `catalog` and `end` rows in which the next row cannot be it.
    ///
    /// # Errors
    /// `Corrupt` for another store, and one that has lost rows which were read.
    pub(crate) fn check(&self, catalog: &Catalog, end: u64) -> Result<()> {
        if self.store != catalog.identity && self.store != 0 {
            return Err(Error::corrupt("the snapshot follows another store")
                .hint("restore over the store that was followed"));
        }
        match self.next <= end {
            true => Ok(()),
            false => Err(Error::corrupt(format!(
                "{} rows of the store were read, and it has {end}",
                self.next
            ))
            .hint("rows that were read are lost, or this is an older copy: run the query anew")),
        }
    }
}

/// A bookmark that is there, whoever left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookmarkStats {
    /// Its file, in the folder of the store: whoever removes it lets go what it keeps.
    pub file: String,
    /// When it was left, where that is known.
    pub left: Option<SystemTime>,
    /// Bytes of the log from there on that are in runs too: they would be gone without bookmarks.
    pub kept_bytes: u64,
}

impl Store {
    /// The bookmarks there are, those that keep most first.
    ///
    /// # Errors
    /// What the system says.
    pub fn bookmarks(&self) -> Result<Vec<BookmarkStats>> {
        let (directory, log_start) = (&self.directory, self.snapshot().version.catalog.log_start);
        let mut lengths = Vec::new();
        for number in log::segments(directory)? {
            let name = log::file_name(number);
            // Another process may have removed it since.
            if number < log_start && directory.exists(&name)? {
                let file = directory.open(&name)?;
                lengths.push((number, directory.length(file.as_ref(), &name)?));
            }
        }
        let mut found = Vec::new();
        for (segment, holder) in all(directory)? {
            let name = file_name(segment, holder);
            let kept = lengths.iter().filter(|(number, _)| *number >= segment);
            if directory.exists(&name)? {
                found.push(BookmarkStats {
                    left: directory.written(&name)?,
                    kept_bytes: kept.map(|(_, length)| length).sum(),
                    file: name,
                });
            }
        }
        Ok(found)
    }
}

/// Keeps segments of the log for one follower, beyond its process.
#[derive(Debug)]
pub(crate) struct Keeper {
    holder: u64,
    /// The segments of its last bookmarks.
    segments: VecDeque<u64>,
}

impl Keeper {
    /// Of a follower that begins.
    pub(crate) fn new() -> Self {
        Keeper {
            holder: unlike_others(),
            segments: VecDeque::new(),
        }
    }

    /// Of a follower that comes back to `bookmark`, which is there: it gets one at that segment,
    /// and those of the follower that has left it go up to there.
    ///
    /// Where it cannot be written, as reading is all that is allowed, the old ones stay.
    pub(crate) fn taking_over(directory: &Directory, bookmark: &Bookmark) -> Self {
        let mut keeper = Self::new();
        if keeper.leave(directory, bookmark.segment).is_ok() {
            // Those that are left over go with their segments.
            let _ = remove_where(directory, |segment, holder| {
                holder == bookmark.holder && segment <= bookmark.segment
            });
        }
        keeper
    }

    /// Leaves a bookmark at row `next` of `segment`, which the follower holds.
    ///
    /// # Errors
    /// What the system says: bookmarks need the right to write to the folder.
    pub(crate) fn keep(&mut self, at: &Directory, segment: u64, next: u64) -> Result<Bookmark> {
        self.leave(at, segment)
            .map_err(|error| match error.kind() {
                ErrorKind::Io => {
                    error.hint("a snapshot of a query that follows a store writes there")
                }
                _ => error,
            })?;
        Ok(Bookmark {
            holder: self.holder,
            segment,
            next,
            store: at.identity(),
        })
    }

    fn leave(&mut self, directory: &Directory, segment: u64) -> Result<()> {
        let name = file_name(segment, self.holder);
        directory.make_folder(BOOKMARK_FOLDER)?;
        if !directory.exists(&name)? {
            let mut output = directory.create(&name)?;
            directory.sync(output.as_mut(), &name)?;
            directory.sync_names(BOOKMARK_FOLDER)?;
            directory.sync_names("")?;
        }
        self.segments.push_back(segment);
        if self.segments.len() > KEPT {
            self.segments.pop_front();
        }
        remove_where(directory, |segment, holder| {
            holder == self.holder && !self.segments.contains(&segment)
        })
    }
}

/// The first segment of the log that a bookmark keeps.
///
/// # Errors
/// What the system says.
pub(crate) fn first_kept(directory: &Directory) -> Result<Option<u64>> {
    Ok(all(directory)?.iter().map(|(segment, _)| *segment).min())
}

/// The last segment of the log that a bookmark names.
///
/// # Errors
/// What the system says.
pub(crate) fn newest(directory: &Directory) -> Result<Option<u64>> {
    Ok(all(directory)?.iter().map(|(segment, _)| *segment).max())
}

/// Checks that a bookmark is there, or that of another who has come back to it: one that is gone
/// may count rows that a repair has given others' numbers.
///
/// # Errors
/// `InvalidArgument` where it is not; what the system says.
pub(crate) fn require(directory: &Directory, bookmark: &Bookmark) -> Result<()> {
    let mut segments = all(directory)?.into_iter().map(|(segment, _)| segment);
    if segments.any(|segment| segment == bookmark.segment) {
        return Ok(());
    }
    let name = file_name(bookmark.segment, bookmark.holder);
    let error = Error::invalid("the bookmark of the snapshot is gone")
        .hint("two later ones were taken, or a repair wrote the log anew: run the query anew");
    Err(directory.name_file(error, &name))
}

/// Removes the bookmarks of segments before number `first`, which are gone.
///
/// # Errors
/// What the system says.
pub(crate) fn remove_before(directory: &Directory, first: u64) -> Result<()> {
    remove_where(directory, |segment, _| segment < first)
}

/// Removes the bookmarks of whose segment and holder `is_gone` says so.
fn remove_where(directory: &Directory, is_gone: impl Fn(u64, u64) -> bool) -> Result<()> {
    let bookmarks = all(directory)?.into_iter();
    let mut gone = bookmarks.filter(|(segment, holder)| is_gone(*segment, *holder));
    gone.try_for_each(|(segment, holder)| directory.remove(&file_name(segment, holder)))
}

fn file_name(segment: u64, holder: u64) -> String {
    format!("{BOOKMARK_FOLDER}/{segment:010}-{holder:016x}")
}

/// Segment and holder of every bookmark there is.
fn all(directory: &Directory) -> Result<Vec<(u64, u64)>> {
    let parse = |name: &String| {
        let (segment, holder) = name.split_once('-')?;
        let holder = u64::from_str_radix(holder, 16).ok()?;
        let segment = segment.parse().ok()?;
        let written = file_name(segment, holder);
        let written = written.strip_prefix(BOOKMARK_FOLDER)?.strip_prefix('/')?;
        (written == name).then_some((segment, holder))
    };
    let names = directory.names(BOOKMARK_FOLDER)?;
    Ok(names.iter().filter_map(parse).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fs::RealFileSystem;

    #[test]
    fn only_names_as_they_are_written_are_bookmarks() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::new(Arc::new(RealFileSystem), folder.path());
        let mut keeper = Keeper::new();
        keeper.keep(&directory, 7, 0).unwrap();
        for name in [
            "3-1",
            "+000000004-00c0ffee00c0ffee",
            "0000000005-00C0FFEE00C0FFEE",
        ] {
            std::fs::write(folder.path().join(BOOKMARK_FOLDER).join(name), "").unwrap();
        }
        assert_eq!(all(&directory).unwrap(), [(7, keeper.holder)]);
    }
}
