//! Text of which whole lines can be taken out, unread, for others to read.

use std::io::{self, BufRead, Cursor, ErrorKind, Read};

use super::packed::READ_BUFFER_BYTES;
use super::trickle::is_pause;

/// Bytes beyond which no more lines are taken at once: what caches hold between two threads.
const TAKEN_BYTES: usize = 2 << 20;

/// Text, and in front of it what was taken and put back.
pub(super) struct LineInput {
    front: Cursor<Vec<u8>>,
    input: Box<dyn BufRead + Send>,
    /// What reading said behind the lines that were taken.
    failure: Option<io::Error>,
    /// Whether there may be lines to be taken.
    has_lines: bool,
}

/// Lines with their ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// Their bytes.
    pub(super) bytes: Vec<u8>,
    /// The ends of lines among them, those in quotes, too.
    pub(super) ends: usize,
}

/// Fields in quotes, in which a line end ends no line; `csv-core` reads them so.
pub(super) struct Quotes {
    delimiter: u8,
    is_open: bool,
    /// Where a quote closed a field, which a quote right behind it opens again: it is doubled.
    closed_at: Option<usize>,
}

impl Quotes {
    /// Those of fields between `delimiter`s.
    pub(super) fn new(delimiter: u8) -> Self {
        Quotes {
            delimiter,
            is_open: false,
            closed_at: None,
        }
    }

    /// Passes over the quote at `at` of `bytes`, which start with a line: it opens a field where it
    /// is the first byte of it, and means itself elsewhere.
    fn pass(&mut self, bytes: &[u8], at: usize) {
        if self.is_open {
            self.is_open = false;
            self.closed_at = Some(at);
            return;
        }
        self.is_open = match at.checked_sub(1) {
            Some(before) if self.closed_at == Some(before) => true,
            Some(before) => [self.delimiter, b'\n', b'\r'].contains(&bytes[before]),
            None => true,
        };
    }
}

impl LineInput {
    /// The text of `input`.
    pub(super) fn new(input: Box<dyn BufRead + Send>) -> Self {
        LineInput {
            front: Cursor::default(),
            input,
            failure: None,
            has_lines: true,
        }
    }

    /// Takes the lines that come next, at most `most` of them; where fields may stand in `quotes`,
    /// none ends in one of those. `None` where there are none.
    ///
    /// What reading says comes up when what is in front of it is read.
    pub(super) fn take_lines(&mut self, most: usize, mut quotes: Option<Quotes>) -> Option<Lines> {
        let mut bytes = Vec::with_capacity(TAKEN_BYTES + READ_BUFFER_BYTES);
        let special = if quotes.is_some() { b'"' } else { b'\n' };
        let (mut count, mut end, mut ends) = (0, 0, 0);
        let mut passed_ends = 0;
        while self.has_lines && count < most && bytes.len() < TAKEN_BYTES {
            let input = match self.fill_buf() {
                Ok(input) => input,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if is_pause(&error) => break,
                Err(error) => {
                    self.failure = Some(error);
                    break;
                }
            };
            let (start, length) = (bytes.len(), input.len());
            if length == 0 {
                break;
            }
            bytes.extend_from_slice(input);
            self.consume(length);
            for at in memchr::memchr2_iter(b'\n', special, &bytes[start..]) {
                let at = start + at;
                match &mut quotes {
                    Some(quotes) if bytes[at] == b'"' => quotes.pass(&bytes, at),
                    Some(quotes) if quotes.is_open => passed_ends += 1,
                    _ => {
                        passed_ends += 1;
                        (count, end, ends) = (count + 1, at + 1, passed_ends);
                    }
                }
                if count == most {
                    break;
                }
            }
        }
        // Lines that are longer than all that may be taken are for those who read them one by one.
        self.has_lines &= count > 0 || bytes.len() < TAKEN_BYTES;
        self.put_back(bytes.split_off(end));
        (count > 0).then_some(Lines { bytes, ends })
    }

    fn put_back(&mut self, mut bytes: Vec<u8>) {
        let read = self.front.position() as usize;
        bytes.extend_from_slice(&self.front.get_ref()[read..]);
        self.front = Cursor::new(bytes);
    }

    fn is_behind_front(&self) -> bool {
        self.front.position() as usize == self.front.get_ref().len()
    }
}

impl Read for LineInput {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(to)?;
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for LineInput {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.is_behind_front() {
            return self.front.fill_buf();
        }
        match self.failure.take() {
            Some(error) => Err(error),
            None => self.input.fill_buf(),
        }
    }

    fn consume(&mut self, bytes: usize) {
        match self.is_behind_front() {
            true => self.input.consume(bytes),
            false => self.front.consume(bytes),
        }
    }
}
