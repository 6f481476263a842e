//! What a store consists of: columns, options, runs, and where the log begins.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::SystemTime;

use tersecades_columnar::error::{Error, Result};

use crate::bytes::{Put as _, Take};
use crate::feed::{FeedMark, Times};
use crate::log;
use crate::option::StoreOptions;
use crate::run::RunId;
use crate::schema::StoreSchema;

const NOTHING: u8 = 0;
const SOMETHING: u8 = 1;

/// The state of a store that every change of it writes anew.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Catalog {
    /// Columns.
    pub(crate) schema: StoreSchema,
    /// Options.
    pub(crate) options: StoreOptions,
    /// Runs, oldest rows first.
    pub(crate) runs: Vec<RunId>,
    /// First log segment with rows that are in no run.
    pub(crate) log_start: u64,
    /// Number of rows that are in runs, or have been.
    pub(crate) flushed: u64,
    /// Rows there were when the store was closed; `None` while it is open.
    pub(crate) closed: Option<u64>,
    /// Rows with an earlier time are gone.
    pub(crate) floor: Option<i64>,
    /// Streams that have fed the store.
    pub(crate) feeds: Vec<FeedMark>,
    /// What tells its files from those of other stores; 0 where earlier releases made it.
    pub(crate) identity: u32,
}

/// An identity for a store.
pub(crate) fn new_identity() -> u32 {
    (unlike_others() as u32).max(1)
}

/// A number that comes neither twice nor in two processes, one forked from the other, say.
pub(crate) fn unlike_others() -> u64 {
    // No two of a process have the same keys.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    hasher.write_u128(time.map_or(0, |time| time.as_nanos()));
    hasher.finish()
}

impl Catalog {
    /// A store without rows.
    pub(crate) fn new(schema: StoreSchema, options: StoreOptions) -> Self {
        Catalog {
            schema,
            options,
            runs: Vec::new(),
            log_start: 1,
            flushed: 0,
            closed: None,
            floor: None,
            feeds: Vec::new(),
            identity: new_identity(),
        }
    }

    /// Whether nothing is to come behind `rows` rows: the store was closed, and not just made, or
    /// the stream whose rows are the last has ended.
    ///
    /// # Errors
    /// `Corrupt` where it was closed with more rows.
    pub(crate) fn rests_at(&self, rows: u64) -> Result<bool> {
        if let Some(all) = self.closed {
            return match all > rows {
                true => Err(log::rows_missing(rows, all)),
                false => Ok(all == rows && rows > 0),
            };
        }
        let feeds = &self.feeds;
        Ok(feeds.iter().all(FeedMark::has_ended) && feeds.iter().any(|mark| mark.ends_at(rows)))
    }

    /// Lets rows go that are older than `keep` against one of the time `newest`, or against the
    /// clock where it is behind: no row makes time pass.
    pub(crate) fn raise_floor(&mut self, newest: Option<i64>, keep: i64) {
        let now = self.schema.now().unwrap_or(i64::MAX);
        let floor = newest.map(|newest| newest.min(now).saturating_sub(keep));
        self.floor = self.floor.max(floor);
    }

    /// The error of who follows, where the stream whose rows are the last of `rows` has failed.
    pub(crate) fn failure_at(&self, rows: u64) -> Option<Error> {
        let mut last = self.feeds.iter().filter(|mark| mark.ends_at(rows));
        last.find_map(FeedMark::failure)
    }

    /// The bytes of the catalogue.
    ///
    /// # Errors
    /// What encoding the schema says.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.schema.write(&mut out)?;
        out.put_blob(self.options.to_text().as_bytes())?;
        out.put_u64(self.log_start);
        out.put_u64(self.flushed);
        put_optional(&mut out, self.closed);
        put_optional(&mut out, self.floor.map(i64::cast_unsigned));
        out.put_u32(self.runs.len() as u32);
        self.runs.iter().for_each(|run| run.write(&mut out));
        out.put_u32(self.feeds.len() as u32);
        self.feeds
            .iter()
            .try_for_each(|mark| mark.write(&mut out))?;
        out.put_u32(self.identity);
        self.runs
            .iter()
            .try_for_each(|run| run.write_fences(&mut out))?;
        let times = self.feeds.iter().map(|mark| mark.times);
        times.for_each(|times| put_optional(&mut out, times.map(|times| times.0)));
        Ok(out)
    }

    /// What [`Catalog::to_bytes`] wrote.
    ///
    /// # Errors
    /// `Corrupt` for what it cannot have written.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut take = Take::new(bytes);
        let schema = StoreSchema::read(&mut take)?;
        let options = StoreOptions::from_text(take.text()?)?;
        let (log_start, flushed) = (take.u64()?, take.u64()?);
        let closed = take_optional(&mut take)?;
        let floor = take_optional(&mut take)?.map(u64::cast_signed);
        let count = take.count(1)?;
        let runs = (0..count).map(|_| RunId::read(&mut take));
        let mut runs = runs.collect::<Result<Vec<_>>>()?;
        // Version 0 ends here.
        let count = match take.rest().is_empty() {
            true => 0,
            false => take.count(1)?,
        };
        let feeds = (0..count).map(|_| FeedMark::read(&mut take));
        let mut feeds = feeds.collect::<Result<Vec<_>>>()?;
        // Version 1 ends here.
        let identity = match take.rest().is_empty() {
            true => 0,
            false => take.u32()?,
        };
        // Version 2 ends here.
        if !take.rest().is_empty() {
            runs.iter_mut()
                .try_for_each(|run| run.read_fences(&mut take))?;
        }
        // Version 3 ends here.
        if !take.rest().is_empty() {
            for mark in &mut feeds {
                mark.times = take_optional(&mut take)?.map(Times);
            }
        }
        let catalog = Catalog {
            schema,
            options,
            runs,
            feeds,
            identity,
            log_start,
            flushed,
            closed,
            floor,
        };
        take.end()?;
        Ok(catalog)
    }
}

fn put_optional(out: &mut Vec<u8>, value: Option<u64>) {
    out.put_u8(if value.is_some() { SOMETHING } else { NOTHING });
    out.put_u64(value.unwrap_or(0));
}

fn take_optional(take: &mut Take<'_>) -> Result<Option<u64>> {
    match (take.u8()?, take.u64()?) {
        (NOTHING, 0) => Ok(None),
        (SOMETHING, value) => Ok(Some(value)),
        _ => Err(Error::corrupt("a field of the catalogue makes no sense")),
    }
}
