//! A file system that is as slow as a memory that is not there: *modelled*, not measured.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{FileSystem, Input, Lock, Output};

/// Waits shorter than this are spent looking at the clock: sleeping takes longer.
const SPIN: Duration = Duration::from_micros(100);

/// How many bytes a second a modelled memory moves, for all who use it together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    /// Bytes a second read.
    pub read: f64,
    /// Bytes a second written.
    pub write: f64,
}

impl Bandwidth {
    /// DRAM of so many bytes a second.
    pub fn dram(read: f64, write: f64) -> Self {
        Bandwidth { read, write }
    }

    /// NVRAM beside such DRAM, used by one thread: reads 2.25 times slower, writes as fast.
    ///
    /// # Source
    /// Integer Compression in NVRAM-centric Data Stores (`integer-compression-nvram-damon19`),
    /// section 2, figure 3.
    pub fn nvram_of_one_thread(self) -> Self {
        Bandwidth {
            read: self.read / 2.25,
            write: self.write,
        }
    }

    /// The same, used by many: reads 2.75 times slower, writes 7 times.
    pub fn nvram_of_many_threads(self) -> Self {
        Bandwidth {
            read: self.read / 2.75,
            write: self.write / 7.0,
        }
    }
}

/// A file system on which reads and writes take at least as long as a bandwidth allows.
#[derive(Debug)]
pub struct Throttled {
    files: Arc<dyn FileSystem>,
    medium: Arc<Medium>,
}

/// What all files share.
#[derive(Debug)]
struct Medium {
    bandwidth: Bandwidth,
    /// Until when reads and writes keep it busy.
    busy: [Mutex<Option<Instant>>; 2],
}

const READS: usize = 0;
const WRITES: usize = 1;

impl Throttled {
    /// `files`, as slow as `bandwidth`.
    pub fn new(files: Arc<dyn FileSystem>, bandwidth: Bandwidth) -> Self {
        Throttled {
            files,
            medium: Arc::new(Medium {
                bandwidth,
                busy: Default::default(),
            }),
        }
    }
}

impl Medium {
    /// Waits until `bytes` more have been moved, those of others before them.
    fn moves(&self, way: usize, bytes: usize) {
        let rate = match way {
            READS => self.bandwidth.read,
            _ => self.bandwidth.write,
        };
        let until = {
            let held = self.busy[way].lock();
            let mut busy = held.unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let start = busy.map_or(now, |busy| busy.max(now));
            let until = start + Duration::from_secs_f64(bytes as f64 / rate);
            *busy = Some(until);
            until
        };
        let left = until.saturating_duration_since(Instant::now());
        if left > SPIN {
            std::thread::sleep(left - SPIN);
        }
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

struct SlowOutput(Box<dyn Output>, Arc<Medium>);

impl Output for SlowOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write(bytes)?;
        self.1.moves(WRITES, bytes.len());
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}

struct SlowInput(Box<dyn Input>, Arc<Medium>);

impl Input for SlowInput {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(bytes, offset)?;
        self.1.moves(READS, bytes.len());
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

impl FileSystem for Throttled {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let output = self.files.create(path)?;
        Ok(Box::new(SlowOutput(output, Arc::clone(&self.medium))))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Input>> {
        let input = self.files.open(path)?;
        Ok(Box::new(SlowInput(input, Arc::clone(&self.medium))))
    }

    fn open_shared(&self, path: &Path) -> io::Result<Box<dyn Input>> {
        let input = self.files.open_shared(path)?;
        Ok(Box::new(SlowInput(input, Arc::clone(&self.medium))))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.files.names(folder)
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.files.make_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn renew(&self, path: &Path) -> io::Result<()> {
        self.files.renew(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.files.sync_folder(folder)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.files.lock(path)
    }
}
