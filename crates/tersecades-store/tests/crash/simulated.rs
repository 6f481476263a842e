//! A file system in memory that counts calls, fails on request, and loses what was not synced.
//!
//! ```text
//! write ──▶ pending of the file ──sync──▶ durable bytes
//! create, rename, remove ──▶ pending of the folder ──sync_folder──▶ durable names
//! ```
//! What was pending when a sync failed is read on, and no later sync makes it durable, as on Linux.
//! After a crash only what is durable is there, and of what was pending as much as [`Loss`] says.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tersecades_store::fs::{FileSystem, Input, Lock, Output};

use crate::device::{File, Random, lose};

/// What a power cut does with what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of it is gone.
    Drop,
    /// The first part of it, in the order of the calls, is there.
    KeepPrefix,
    /// Some of it is there, in pieces of a sector, whatever the order.
    Reorder,
    /// All of it is there, but the last write of each file is cut in a sector.
    Tear,
    /// Files that were removed are gone, and nothing else of it is there.
    KeepRemovals,
    /// All names are there, and no byte.
    KeepNames,
}

pub(crate) const LOSSES: [Loss; 4] = [Loss::Drop, Loss::KeepPrefix, Loss::Reorder, Loss::Tear];

#[derive(Debug, Clone)]
enum NameChange {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

#[derive(Debug, Default)]
struct Disk {
    files: Vec<File>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// Changes of names since the last sync of their folder.
    changes: Vec<(u64, NameChange)>,
    calls: u64,
    /// The call that fails, with what, and whether all that follow do.
    fault: Option<(u64, ErrorKind, bool)>,
    capacity: Option<usize>,
    /// Files that are locked, and whether others may share that.
    locks: Vec<(PathBuf, bool)>,
}

/// The file system; clones share the disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimulatedFileSystem {
    disk: Arc<Mutex<Disk>>,
}

impl SimulatedFileSystem {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }

    /// Calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.disk().calls
    }

    /// Lets call number `call` and all that follow fail, as if the power had gone.
    pub(crate) fn crash_at(&self, call: u64) {
        self.disk().fault = Some((call, ErrorKind::Other, true));
    }

    /// Lets call number `call` alone fail with `kind`.
    pub(crate) fn fail_at(&self, call: u64, kind: ErrorKind) {
        self.disk().fault = Some((call, kind, false));
    }

    /// Bytes that fit, or no limit.
    pub(crate) fn set_capacity(&self, capacity: Option<usize>) {
        self.disk().capacity = capacity;
    }

    /// Bytes in all files.
    pub(crate) fn used(&self) -> usize {
        let disk = self.disk();
        disk.names
            .values()
            .map(|file| disk.files[*file].length())
            .sum()
    }

    /// The disk after the power has come back.
    pub(crate) fn after_crash(&self, loss: Loss, seed: u64) -> SimulatedFileSystem {
        let disk = self.disk();
        let mut random = Random(seed);
        let last = disk.calls;
        let until = match loss {
            Loss::Drop | Loss::KeepRemovals | Loss::KeepNames => 0,
            Loss::KeepPrefix => random.next() % (last + 1),
            Loss::Reorder | Loss::Tear => last,
        };
        let mut names = disk.durable_names.clone();
        for (call, change) in &disk.changes {
            let kept = match loss {
                Loss::KeepRemovals => matches!(change, NameChange::Remove(_)),
                Loss::KeepNames => true,
                Loss::Reorder => random.below(2) == 0,
                Loss::Drop | Loss::KeepPrefix | Loss::Tear => *call <= until,
            };
            if kept {
                apply(&mut names, change);
            }
        }
        let files = disk
            .files
            .iter()
            .map(|file| lose(file, loss, until, &mut random));
        let files = files.collect();
        SimulatedFileSystem {
            disk: Arc::new(Mutex::new(Disk {
                files,
                durable_names: names.clone(),
                names,
                ..Disk::default()
            })),
        }
    }

    /// The disk when the process is gone and the power is not: what was not synced may still be
    /// lost.
    pub(crate) fn after_kill(&self) -> SimulatedFileSystem {
        let disk = self.disk();
        SimulatedFileSystem {
            disk: Arc::new(Mutex::new(Disk {
                files: disk.files.clone(),
                names: disk.names.clone(),
                durable_names: disk.durable_names.clone(),
                changes: disk.changes.clone(),
                ..Disk::default()
            })),
        }
    }

    /// A copy of the disk as it is.
    pub(crate) fn copied(&self) -> SimulatedFileSystem {
        let disk = self.disk();
        let mut files = vec![File::default(); disk.files.len()];
        // What has no name any more cannot be opened.
        for index in disk.names.values() {
            files[*index] = File::of(disk.files[*index].bytes());
        }
        SimulatedFileSystem {
            disk: Arc::new(Mutex::new(Disk {
                files,
                names: disk.names.clone(),
                durable_names: disk.names.clone(),
                ..Disk::default()
            })),
        }
    }

    /// Names and bytes of all files.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let disk = self.disk();
        let named = disk.names.iter();
        named
            .map(|(name, file)| (name.clone(), disk.files[*file].bytes()))
            .collect()
    }

    /// Makes the bytes of a file others.
    pub(crate) fn overwrite(&self, path: &Path, bytes: &[u8]) {
        let mut disk = self.disk();
        let file = disk.names[path];
        disk.files[file] = File::of(bytes.to_vec());
    }

    /// Takes a file away.
    pub(crate) fn take_away(&self, path: &Path) {
        let mut disk = self.disk();
        disk.names.remove(path);
        disk.durable_names.remove(path);
    }

    /// Syncs a file that was opened when so many syncs of it had failed.
    fn sync(&self, file: usize, failures: &AtomicUsize) -> io::Result<()> {
        let called = self.call().map(drop);
        let mut disk = self.disk();
        let has_power = !matches!(disk.fault, Some((_, _, true)));
        let file = &mut disk.files[file];
        match called {
            Err(_) if has_power => {
                file.fail_sync();
                failures.store(file.failures, Ordering::Relaxed);
            }
            Ok(()) if failures.swap(file.failures, Ordering::Relaxed) < file.failures => {
                return Err(io::Error::other(
                    "a sync has failed since the file was opened",
                ));
            }
            Ok(()) => file.sync(),
            Err(_) => {}
        }
        called
    }

    /// Begins a call.
    fn call(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.disk();
        disk.calls += 1;
        match disk.fault {
            Some((call, kind, false)) if disk.calls == call => Err(kind.into()),
            Some((call, _, true)) if disk.calls >= call => Err(io::Error::other("no power")),
            _ => Ok(disk),
        }
    }
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, change: &NameChange) {
    match change {
        NameChange::Create(path, file) => {
            names.insert(path.clone(), *file);
        }
        NameChange::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        NameChange::Remove(path) => {
            names.remove(path);
        }
    }
}

struct Handle {
    system: SimulatedFileSystem,
    file: usize,
    /// Syncs of the file that had failed when it was opened, or were told since.
    failures: AtomicUsize,
    /// Of files that are read and locked.
    _held: Option<Held>,
}

impl Handle {
    fn new(system: &SimulatedFileSystem, file: usize, held: Option<Held>) -> Self {
        let failures = system.disk().files[file].failures.into();
        Handle {
            system: system.clone(),
            file,
            failures,
            _held: held,
        }
    }
}

impl Output for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let used = self.system.used();
        let mut disk = self.system.call()?;
        let call = disk.calls;
        let space = disk
            .capacity
            .map_or(usize::MAX, |capacity| capacity.saturating_sub(used));
        let fits = bytes.len().min(space);
        disk.files[self.file]
            .pending
            .push((call, bytes[..fits].to_vec()));
        match fits == bytes.len() {
            true => Ok(()),
            false => Err(ErrorKind::StorageFull.into()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.system.sync(self.file, &self.failures)
    }
}

impl Input for Handle {
    fn length(&self) -> io::Result<u64> {
        Ok(self.system.call()?.files[self.file].length() as u64)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let all = self.system.call()?.files[self.file].bytes();
        let start = offset as usize;
        let found = all.get(start..start + bytes.len());
        bytes.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.system.sync(self.file, &self.failures)
    }
}

struct Held {
    system: SimulatedFileSystem,
    lock: (PathBuf, bool),
}

impl Held {
    /// Locks a file unless it is; who only shares it does so with others.
    fn new(system: &SimulatedFileSystem, path: &Path, shares: bool) -> io::Result<Self> {
        let mut disk = system.disk();
        let mut others = disk.locks.iter().filter(|(locked, _)| locked == path);
        if others.any(|(_, shared)| !(*shared && shares)) {
            return Err(ErrorKind::WouldBlock.into());
        }
        let lock = (path.to_owned(), shares);
        disk.locks.push(lock.clone());
        Ok(Held {
            system: system.clone(),
            lock,
        })
    }
}

impl Lock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        let mut disk = self.system.disk();
        let place = disk.locks.iter().position(|lock| *lock == self.lock);
        disk.locks.swap_remove(place.unwrap());
    }
}

impl FileSystem for SimulatedFileSystem {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let mut disk = self.call()?;
        if disk.names.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let file = disk.files.len();
        disk.files.push(File::default());
        disk.names.insert(path.to_owned(), file);
        let call = disk.calls;
        disk.changes
            .push((call, NameChange::Create(path.to_owned(), file)));
        drop(disk);
        Ok(Box::new(Handle::new(self, file, None)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Input>> {
        let file = self.call()?.names.get(path).copied();
        let file = file.ok_or(ErrorKind::NotFound)?;
        Ok(Box::new(Handle::new(self, file, None)))
    }

    fn open_shared(&self, path: &Path) -> io::Result<Box<dyn Input>> {
        let file = self.call()?.names.get(path).copied();
        let file = file.ok_or(ErrorKind::NotFound)?;
        let held = Held::new(self, path, true)?;
        Ok(Box::new(Handle::new(self, file, Some(held))))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let disk = self.call()?;
        let inside = disk
            .names
            .keys()
            .filter(|path| path.parent() == Some(folder));
        let names = inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        Ok(names.collect())
    }

    fn make_folder(&self, _folder: &Path) -> io::Result<()> {
        self.call().map(drop)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.call()?;
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        apply(&mut disk.names, &change);
        let call = disk.calls;
        disk.changes.push((call, change));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.call()?;
        let change = NameChange::Remove(path.to_owned());
        if !disk.names.contains_key(path) {
            return Err(ErrorKind::NotFound.into());
        }
        apply(&mut disk.names, &change);
        let call = disk.calls;
        disk.changes.push((call, change));
        Ok(())
    }

    fn renew(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.call()?;
        let file = disk.names[path];
        disk.files[file].renew();
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut disk = self.call()?;
        let changes = std::mem::take(&mut disk.changes);
        for (call, change) in changes {
            let path = match &change {
                NameChange::Create(path, _)
                | NameChange::Rename(_, path)
                | NameChange::Remove(path) => path,
            };
            match path.parent() == Some(folder) {
                true => apply(&mut disk.durable_names, &change),
                false => disk.changes.push((call, change)),
            }
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        drop(self.call()?);
        Ok(Box::new(Held::new(self, path, false)?))
    }
}
