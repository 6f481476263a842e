//! Writes what a repair has found: the rows of the log, and the manifest.

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::Result;
use tersecades_columnar::wire;

use crate::adopt::with_columns;
use crate::bookmark;
use crate::catalog::Catalog;
use crate::feed::FeedMark;
use crate::fs::Directory;
use crate::log::{self, Segment};
use crate::manifest::{self, Manifest};
use crate::recovery::aside;

use super::Repair;

impl Repair {
    /// Writes the rows of the log anew, where any are lost, and manifest `number`.
    pub(super) fn write(&mut self, in_log: &[(u64, Batch)], number: u64) -> Result<()> {
        let catalog = &mut self.catalog;
        for (_, batch) in in_log {
            catalog.schema = with_columns(batch.schema(), &catalog.schema)?;
        }
        if !self.repaired.given_up.is_empty() {
            catalog.feeds.iter_mut().for_each(FeedMark::doubt);
        }
        if !self.is_newest {
            catalog.feeds.push(FeedMark::of_unknown());
        }
        let rows: u64 = in_log.iter().map(|(_, batch)| batch.rows() as u64).sum();
        let end = catalog.flushed + rows;
        let segment = match self.log_is_whole(end) {
            // A process that was killed has not synced its last rows.
            true => log::sync(&self.directory, self.catalog.log_start).map(|()| None)?,
            false => Some(self.write_log(in_log)?),
        };
        self.repaired.rows += rows;
        self.catalog.closed = Some(end);
        let (directory, mut copies) = (&self.directory, Vec::new());
        let kept = match self.is_newest {
            true => Ok(()),
            false => keep_manifests(directory, &mut copies),
        };
        let begun = kept.and_then(|()| Manifest::begin(directory, number - 1, &self.catalog));
        begun.map(drop).inspect_err(|_| {
            if !manifest::is_in_use(directory, number) {
                // What is left over takes space, and nothing reads it.
                copies.iter().for_each(|copy| drop(directory.remove(copy)));
                segment.into_iter().for_each(Segment::abandon);
            }
        })
    }

    /// Whether nothing was given up and the log holds the rows up to `end` as it is, so that who
    /// follows the store goes on in it.
    fn log_is_whole(&self, end: u64) -> bool {
        let Catalog {
            log_start, flushed, ..
        } = self.catalog;
        self.repaired.given_up.is_empty()
            && log::replay(&self.directory, log_start, flushed, Some(end)).is_ok()
    }

    /// Writes the rows of the log anew, as a segment behind all others.
    fn write_log(&mut self, in_log: &[(u64, Batch)]) -> Result<Segment> {
        let (directory, catalog) = (&self.directory, &mut self.catalog);
        // Who was there goes on neither in the segments nor by the numbers of rows that they knew:
        // no segment has the number again of one that is gone, which a bookmark names.
        let segments = log::segments(directory)?;
        let newest = segments.last().copied().max(bookmark::newest(directory)?);
        let number = newest.unwrap_or(0) + 1;
        let mut segment = Segment::create(directory, number, catalog.flushed)?;
        if let Err(error) = append(&mut segment, catalog.flushed, in_log) {
            segment.abandon();
            return Err(error);
        }
        bookmark::remove_before(directory, u64::MAX)?;
        catalog.log_start = number;
        Ok(segment)
    }
}

/// Appends batches, whose rows are numbered from `row` on.
fn append(segment: &mut Segment, mut row: u64, batches: &[(u64, Batch)]) -> Result<()> {
    for (_, batch) in batches {
        let (mut bytes, mut payload) = (Vec::new(), Vec::new());
        wire::write_batch(batch, &mut bytes)?;
        log::write_entry(row, batch.rows(), &bytes, &mut payload)?;
        segment.append(&payload, true)?;
        row += batch.rows() as u64;
    }
    Ok(())
}

/// Copies manifests to names under which nothing reads or removes them, and adds those to `copies`:
/// the new one takes the place of the damaged.
fn keep_manifests(directory: &Directory, copies: &mut Vec<String>) -> Result<()> {
    for name in directory.names("")? {
        if manifest::is_manifest(&name) {
            let bytes = directory.read(&name)?;
            let copy = aside(directory, &name)?;
            let mut output = directory.create(&copy)?;
            copies.push(copy.clone());
            directory.write(output.as_mut(), &copy, &bytes)?;
            directory.sync(output.as_mut(), &copy)?;
        }
    }
    Ok(())
}
