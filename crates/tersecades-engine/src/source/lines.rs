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
    /// Their number.
    pub(super) count: usize,
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

    /// Takes the lines that come next, at most `most` of them and none with the byte `stop` or
    /// behind it; `None` where there are none.
    ///
    /// What reading says comes up when what is in front of it is read.
    pub(super) fn take_lines(&mut self, most: usize, stop: Option<u8>) -> Option<Lines> {
        let mut taken = Lines {
            bytes: Vec::with_capacity(TAKEN_BYTES + READ_BUFFER_BYTES),
            count: 0,
        };
        let mut end = 0;
        while self.has_lines && taken.count < most && taken.bytes.len() < TAKEN_BYTES {
            let input = match self.fill_buf() {
                Ok(input) => input,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if is_pause(&error) => break,
                Err(error) => {
                    self.failure = Some(error);
                    break;
                }
            };
            let (start, length) = (taken.bytes.len(), input.len());
            taken.bytes.extend_from_slice(input);
            self.consume(length);
            let added = &taken.bytes[start..];
            let stopped = stop.and_then(|stop| memchr::memchr(stop, added));
            let ends = memchr::memchr_iter(b'\n', &added[..stopped.unwrap_or(length)]);
            for at in ends.take(most - taken.count) {
                end = start + at + 1;
                taken.count += 1;
            }
            if length == 0 || stopped.is_some() {
                break;
            }
        }
        // Lines that are longer than all that may be taken are for those who read them one by one.
        self.has_lines &= taken.count > 0 || taken.bytes.len() < TAKEN_BYTES;
        self.put_back(taken.bytes.split_off(end));
        (taken.count > 0).then_some(taken)
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
