//! Text of which whole lines can be taken out, unread, for others to read.

use std::io::{self, BufRead, Cursor, ErrorKind, Read};

use super::csv::quote::Quotes;
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

/// Search for the ends of lines.
struct LineSearch {
    quotes: Option<Quotes>,
    /// Where it goes on.
    at: usize,
    /// What is to be among the lines with a bad quote, for their reader to see that it is one.
    shown: usize,
    /// Lines that were found.
    count: usize,
    /// Where the last of them ends.
    end: usize,
}

impl LineSearch {
    /// Goes on in `bytes`, which have grown, until `most` lines are found.
    fn go_on(&mut self, bytes: &[u8], most: usize) {
        let special = if self.quotes.is_some() { b'"' } else { b'\n' };
        while self.count < most
            && let Some(found) = memchr::memchr2(b'\n', special, &bytes[self.at..])
        {
            let at = self.at + found;
            self.at = at + 1;
            let is_end = match &mut self.quotes {
                Some(quotes) => quotes.pass(bytes, at),
                None => Ok(true),
            };
            match is_end {
                Ok(true) if at >= self.shown => (self.count, self.end) = (self.count + 1, at + 1),
                Ok(_) => {}
                // Its record ends with its line.
                Err(bad) => match memchr::memchr2(b'\n', b'\r', &bytes[bad..]) {
                    Some(length) => (self.at, self.shown) = (bad + length, at),
                    None => {
                        self.at = bad;
                        return;
                    }
                },
            }
        }
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
    pub(super) fn take_lines(&mut self, most: usize, quotes: Option<Quotes>) -> Option<Lines> {
        let mut bytes = Vec::with_capacity(TAKEN_BYTES + READ_BUFFER_BYTES);
        let mut search = LineSearch {
            quotes,
            at: 0,
            shown: 0,
            count: 0,
            end: 0,
        };
        while self.has_lines && search.count < most && bytes.len() < TAKEN_BYTES {
            let input = match self.fill_buf() {
                Ok(input) => input,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if is_pause(&error) => break,
                Err(error) => {
                    self.failure = Some(error);
                    break;
                }
            };
            let length = input.len();
            if length == 0 {
                break;
            }
            bytes.extend_from_slice(input);
            self.consume(length);
            search.go_on(&bytes, most);
        }
        let LineSearch { count, end, .. } = search;
        // Lines that are longer than all that may be taken are for those who read them one by one.
        self.has_lines &= count > 0 || bytes.len() < TAKEN_BYTES;
        self.put_back(bytes.split_off(end));
        let ends = memchr::memchr_iter(b'\n', &bytes).count();
        (count > 0).then_some(Lines { bytes, ends })
    }

    /// Has `bytes`, which were read last and start with a line end, read again.
    pub(super) fn reread(&mut self, bytes: Vec<u8>) {
        let read = self.front.position() as usize;
        match self.front.get_ref()[..read].ends_with(&bytes) {
            // All that is in front would be moved for each of many short lines.
            true => self.front.set_position((read - bytes.len()) as u64),
            false => self.put_back(bytes),
        }
        self.has_lines = true;
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
