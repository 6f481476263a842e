//! What the manifest says of a stream that has fed the store.

use tersecades_columnar::error::{Error, Result};

use super::time::{Arrived, Times};
use crate::bytes::{Put as _, Take};

/// What a mark says of its stream, as a byte.
const ENDED: u8 = 0;
const OPEN: u8 = 1;
const FAILED: u8 = 2;

/// Rows of a stream of which nobody knows how many are there.
const UNKNOWN_ROWS: u64 = u64::MAX;

/// How far a stream has fed the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedMark {
    /// The stream.
    pub(super) name: String,
    /// Its rows that were there when the store had `sequence` rows.
    pub(super) rows: u64,
    /// Rows that the store had.
    sequence: u64,
    /// What the stream does.
    course: Course,
    /// What tells its rows from others, where that is known.
    pub(crate) times: Option<Times>,
}

/// What a stream that feeds the store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// It goes on: all rows behind are of this stream.
    Open,
    /// It has ended.
    Ended,
    /// It has ended with an error.
    Failed,
}

impl FeedMark {
    /// A stream that begins to feed the store.
    pub(super) fn new(name: &str) -> Self {
        FeedMark {
            name: name.to_owned(),
            rows: 0,
            sequence: 0,
            course: Course::Ended,
            times: Some(Times::default()),
        }
    }

    /// The mark of streams that an older state does not name, and that may have begun since.
    pub(crate) fn of_unknown() -> Self {
        FeedMark {
            name: String::new(),
            rows: UNKNOWN_ROWS,
            sequence: u64::MAX,
            course: Course::Ended,
            times: None,
        }
    }

    /// Appends the mark, but for what tells its rows.
    ///
    /// # Errors
    /// `LimitExceeded` for names of 4 GiB and more.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.put_blob(self.name.as_bytes())?;
        out.put_u64(self.rows);
        out.put_u64(self.sequence);
        out.put_u8(match self.course {
            Course::Open => OPEN,
            Course::Ended => ENDED,
            Course::Failed => FAILED,
        });
        Ok(())
    }

    /// Takes a mark off the front of `bytes`.
    ///
    /// # Errors
    /// `Corrupt` for what [`FeedMark::write`] cannot have written.
    pub(crate) fn read(bytes: &mut Take<'_>) -> Result<Self> {
        Ok(FeedMark {
            name: bytes.text()?.to_owned(),
            rows: bytes.u64()?,
            sequence: bytes.u64()?,
            course: match bytes.u8()? {
                ENDED => Course::Ended,
                OPEN => Course::Open,
                FAILED => Course::Failed,
                _ => return Err(Error::corrupt("the mark of a stream makes no sense")),
            },
            times: None,
        })
    }

    /// Forgets how many rows are there, as some of them may be lost.
    pub(crate) fn doubt(&mut self) {
        self.rows = UNKNOWN_ROWS;
        self.course = Course::Ended;
    }

    /// Whether nobody knows how many rows are there.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.rows == UNKNOWN_ROWS
    }

    /// Whether others may have written since.
    pub(crate) fn has_ended(&self) -> bool {
        self.course != Course::Open
    }

    /// The error of who follows, where the stream has ended with one.
    pub(crate) fn failure(&self) -> Option<Error> {
        let name = &self.name;
        (self.course == Course::Failed).then(|| {
            Error::invalid(format!(
                "the stream `{name}` that feeds the store has failed"
            ))
            .hint("its program says why; follow the store again when the stream goes on")
        })
    }

    /// Whether the stream wrote the last of `rows` rows.
    pub(crate) fn ends_at(&self, rows: u64) -> bool {
        self.sequence == rows
    }

    /// The stream goes on behind the `end` rows that the store has.
    pub(super) fn open(&mut self, end: u64) {
        (self.sequence, self.course) = (end, Course::Open);
    }

    /// Takes note of the rows that have `arrived`, and that others may write from here on.
    ///
    /// # Errors
    /// As [`FeedMark::count`].
    pub(super) fn settle(&mut self, arrived: &Arrived) -> Result<()> {
        self.count(arrived)?;
        self.course = Course::Ended;
        Ok(())
    }

    /// Takes note of the rows that have `arrived`, and that the stream has failed if it went on.
    ///
    /// # Errors
    /// As [`FeedMark::count`].
    pub(super) fn fail(&mut self, arrived: &Arrived) -> Result<()> {
        self.count(arrived)?;
        if self.course == Course::Open {
            self.course = Course::Failed;
        }
        Ok(())
    }

    /// Takes note of rows that leave memory, and can be told there no more.
    ///
    /// # Errors
    /// As [`FeedMark::count`].
    pub(crate) fn let_go(&mut self, arrived: &Arrived) -> Result<()> {
        match self.sequence < arrived.end() {
            true => self.count(arrived),
            false => Ok(()),
        }
    }

    /// Takes note of the rows that have `arrived`, which are all there are.
    ///
    /// Rows that an unsafe store has lost were the last ones, and so the stream's.
    ///
    /// # Errors
    /// What decoding their times says.
    pub(crate) fn count(&mut self, arrived: &Arrived) -> Result<()> {
        let end = arrived.end();
        if self.is_in_doubt() || (self.has_ended() && end >= self.sequence) {
            return Ok(());
        }
        let lost = self.sequence.saturating_sub(end);
        let gained = end.saturating_sub(self.sequence);
        self.times = match self.times.filter(|_| lost == 0) {
            Some(times) => arrived.times_behind(times, self.sequence)?,
            None => None,
        };
        self.rows = self.rows.saturating_sub(lost) + gained;
        self.sequence = end;
        Ok(())
    }
}
