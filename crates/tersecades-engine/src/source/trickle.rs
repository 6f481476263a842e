//! Bytes of a pipe as they come, with word of pauses.
//!
//! ```text
//! pipe ──a thread reads──▶ pieces ──▶ read: bytes, or `WouldBlock` where none came for a while
//! ```
//! Whoever reads may then hand on the rows that are whole, instead of waiting until a batch is
//! full, and ask again. A regular file needs none of this.

use std::io::{self, BufRead, ErrorKind, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use tersecades_columnar::error::Result;

/// Time after which rows that are whole should not wait for others.
const PAUSE: Duration = Duration::from_millis(50);

/// Bytes that are read at once, and pieces that wait at most.
const PIECE_BYTES: usize = 64 << 10;
const PIECES: usize = 8;

/// Time between two looks at an input that is set not to wait.
const LOOK: Duration = Duration::from_millis(5);

/// A reader of what a thread of its own reads, so that it can say when nothing comes.
///
/// # Errors
/// Reading gives `WouldBlock` where nothing is there and 50 ms have passed since it last did.
pub struct Trickle {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    read: usize,
    /// When the next pause is told, if nothing is there then.
    told_from: Instant,
    /// Whether the end has come, or an error.
    has_ended: bool,
}

impl Trickle {
    /// Starts to read `input`.
    ///
    /// The thread ends with the input, or with the first bytes that nobody waits for any more.
    ///
    /// # Errors
    /// `Io` when the system starts no more threads.
    pub fn start(mut input: impl Read + Send + 'static) -> Result<Self> {
        let (sender, pieces) = sync_channel(PIECES);
        let read = move || {
            loop {
                let mut piece = vec![0; PIECE_BYTES];
                let got = match input.read(&mut piece) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) if is_pause(&error) => {
                        // Another process has set the pipe so; only we tell pauses.
                        std::thread::sleep(LOOK);
                        continue;
                    }
                    got => got,
                };
                let is_last = !matches!(got, Ok(count) if count > 0);
                let got = got.map(|count| {
                    piece.truncate(count);
                    piece
                });
                if sender.send(got).is_err() || is_last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("tersecades-pipe".into());
        thread.spawn(read)?;
        Ok(Trickle {
            pieces,
            piece: Vec::new(),
            read: 0,
            told_from: Instant::now() + PAUSE,
            has_ended: false,
        })
    }

    /// The next piece; an empty one at the end.
    fn next_piece(&mut self) -> io::Result<Vec<u8>> {
        if self.has_ended {
            return Ok(Vec::new());
        }
        let left = self.told_from.saturating_duration_since(Instant::now());
        let piece = match self.pieces.try_recv() {
            Ok(piece) => piece,
            Err(_) => match self.pieces.recv_timeout(left) {
                Ok(piece) => piece,
                Err(RecvTimeoutError::Disconnected) => Err(io::Error::other(
                    "the thread that reads the pipe has stopped",
                )),
                Err(RecvTimeoutError::Timeout) => {
                    self.told_from = Instant::now() + PAUSE;
                    return Err(ErrorKind::WouldBlock.into());
                }
            },
        };
        self.has_ended = !matches!(&piece, Ok(bytes) if !bytes.is_empty());
        piece
    }
}

impl Read for Trickle {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.piece.len() {
            self.piece = self.next_piece()?;
            self.read = 0;
        }
        let mut rest = self.piece.get(self.read..).unwrap_or_default();
        let count = rest.read(out)?;
        self.read += count;
        Ok(count)
    }
}

/// Whether `error` says no more than that nothing has come for a while.
pub fn is_pause(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// Calls `read`, again after each pause.
///
/// # Errors
/// What `read` says besides.
pub fn through_pauses<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match read() {
            Err(error) if is_pause(&error) => {}
            other => return other,
        }
    }
}

/// An input that waits through all pauses.
pub struct Patient<R>(pub R);

impl<R: BufRead> Read for Patient<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        through_pauses(|| self.0.read(out))
    }
}

impl<R: BufRead> BufRead for Patient<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        // A closure cannot hand out the borrow of its own call, so the buffer is asked for twice.
        through_pauses(|| self.0.fill_buf().map(|_| ()))?;
        self.0.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.0.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bytes_come_as_they_are_written_and_pauses_are_told() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut trickle = Trickle::start(reader).unwrap();
        let mut out = [0; 3];
        assert!(is_pause(&trickle.read(&mut out).unwrap_err()));
        writer.write_all(b"abcde").unwrap();
        let mut found = Vec::new();
        while found.len() < 5 {
            let count = through_pauses(|| trickle.read(&mut out)).unwrap();
            found.extend_from_slice(&out[..count]);
        }
        assert_eq!(found, b"abcde");
        assert!(is_pause(&trickle.read(&mut out).unwrap_err()));
        drop(writer);
        assert_eq!(through_pauses(|| trickle.read(&mut out)).unwrap(), 0);
        assert_eq!(trickle.read(&mut out).unwrap(), 0);
    }

    #[test]
    fn inputs_that_do_not_wait_are_read_to_their_end() {
        struct Hasty(u8);
        impl Read for Hasty {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                match self.0 {
                    5.. => Ok(0),
                    odd if odd % 2 == 1 => Err(ErrorKind::WouldBlock.into()),
                    _ => {
                        out[0] = b'x';
                        Ok(1)
                    }
                }
            }
        }
        let mut trickle = Trickle::start(Hasty(0)).unwrap();
        let (mut found, mut out) = (0, [0; 4]);
        loop {
            match through_pauses(|| trickle.read(&mut out)).unwrap() {
                0 => break,
                count => found += count,
            }
        }
        assert_eq!(found, 2);
    }

    #[test]
    fn errors_arrive_and_nobody_waits_for_a_writer_that_stays() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("torn"))
            }
        }
        let mut trickle = Trickle::start(Broken).unwrap();
        let error = through_pauses(|| trickle.read(&mut [0; 8])).unwrap_err();
        assert_eq!(error.to_string(), "torn");
        let (reader, writer) = io::pipe().unwrap();
        drop(Trickle::start(reader).unwrap());
        drop(writer);
    }
}
