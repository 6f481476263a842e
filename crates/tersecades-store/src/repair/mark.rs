//! The file `REPAIR`, which is there while a repair is under way.
//!
//! Opening a store for writing removes what its manifest does not name, and so could take from a
//! repair that was cut short what the next one needs: it is refused as long as the file is there.
//! Before the new manifest, which knows nothing of them any more, the names of damaged files are
//! written to it, and how much is lost.

use tersecades_columnar::error::{Error, Result};

use crate::catalog::Catalog;
use crate::fs::{Directory, LOG_FOLDER, RUN_FOLDER};
use crate::log;
use crate::recovery::put_aside;
use crate::run;

const MARK: &str = "REPAIR";
const MARK_NEW: &str = "REPAIR.new";

/// Begins a line with the number of a manifest and what is lost with it.
const LOST: &str = "lost";

/// Rows of runs, rows of the log, bytes of the log and rows out of date.
pub(super) type LostCounts = [u64; 4];

/// A repair that is under way.
pub(super) struct Mark {
    directory: Directory,
    /// What a repair has noted that was cut short, if one was.
    earlier: Option<Note>,
}

/// What a repair notes before it writes a manifest.
#[derive(Default)]
struct Note {
    /// Files that are given up.
    names: Vec<String>,
    /// Numbers of manifests, and what is lost with each of them and those before it.
    lost: Vec<(u64, LostCounts)>,
}

impl Note {
    fn read(text: &str) -> Self {
        let mut note = Note::default();
        for line in text.lines() {
            match line.strip_prefix(LOST) {
                Some(numbers) => note.lost.extend(read_numbers(numbers)),
                None => note.names.push(line.to_owned()),
            }
        }
        note
    }
}

/// Five numbers behind blanks.
fn read_numbers(text: &str) -> Option<(u64, LostCounts)> {
    let numbers: Option<Vec<u64>> = text.split(' ').skip(1).map(|it| it.parse().ok()).collect();
    let [manifest, counts @ ..] = &numbers?[..] else {
        return None;
    };
    Some((*manifest, counts.try_into().ok()?))
}

impl Mark {
    /// Says that a repair begins.
    ///
    /// # Errors
    /// What the system says, as all calls here.
    pub(super) fn begin(directory: &Directory) -> Result<Self> {
        let mark = |earlier| Mark {
            directory: directory.clone(),
            earlier,
        };
        if !directory.exists(MARK)? {
            let begun = mark(None);
            begun.write("").inspect_err(|_| begun.forget())?;
            return Ok(begun);
        }
        let bytes = directory.read(MARK)?;
        Ok(mark(Some(Note::read(&String::from_utf8_lossy(&bytes)))))
    }

    /// The files that an earlier repair has given up, and that `catalog` does not name.
    pub(super) fn given_up(&self, catalog: &Catalog) -> Vec<String> {
        let names = self.earlier.iter().flat_map(|note| &note.names);
        names
            .filter(|name| is_unnamed(name, catalog))
            .cloned()
            .collect()
    }

    /// Whether an earlier repair has given up the file `name`.
    pub(super) fn names(&self, name: &str) -> bool {
        let mut names = self.earlier.iter().flat_map(|note| &note.names);
        names.any(|given_up| given_up == name)
    }

    /// What is lost since a repair that was cut short, where it wrote manifest `number` or one
    /// before it.
    pub(super) fn lost_before(&self, number: u64) -> Option<LostCounts> {
        let lost = self.earlier.iter().flat_map(|note| &note.lost).rev();
        let mut before = lost.filter(|(manifest, _)| *manifest <= number);
        before.next().map(|(_, lost)| *lost)
    }

    /// Notes files that are to be put aside, beside those of an earlier repair, and what is lost
    /// when manifest `number` is written.
    pub(super) fn note(&self, names: &[String], lost: LostCounts, number: u64) -> Result<()> {
        let earlier = || self.earlier.iter();
        let names = earlier().flat_map(|note| &note.names).chain(names);
        let mut text: String = names.map(|name| format!("{name}\n")).collect();
        let written = [(number, lost)];
        for (number, counts) in earlier().flat_map(|note| &note.lost).chain(&written) {
            let counts: String = counts.iter().map(|count| format!(" {count}")).collect();
            text.push_str(&format!("{LOST} {number}{counts}\n"));
        }
        self.write(&text)
    }

    /// Puts the files of these names aside, and says that the repair is at its end.
    pub(super) fn end(self, names: &[String]) -> Result<()> {
        let directory = &self.directory;
        names
            .iter()
            .try_for_each(|name| put_aside(directory, name))?;
        directory.sync_names(RUN_FOLDER)?;
        directory.sync_names(LOG_FOLDER)?;
        directory.remove(MARK)?;
        directory.sync_names("")
    }

    /// Says that nothing has become of a repair; one that was cut short is still to be done.
    pub(super) fn forget(&self) {
        if self.earlier.is_none() {
            // Where it stays, the next repair goes on.
            let _ = self.directory.remove(MARK_NEW);
            let _ = self.directory.remove(MARK);
        }
    }

    fn write(&self, text: &str) -> Result<()> {
        let directory = &self.directory;
        directory.remove(MARK_NEW)?;
        let mut output = directory.create(MARK_NEW)?;
        directory.write(output.as_mut(), MARK_NEW, text.as_bytes())?;
        directory.sync(output.as_mut(), MARK_NEW)?;
        directory.rename(MARK_NEW, MARK)?;
        directory.sync_names("")
    }
}

/// Whether `name` is one of a run or of a segment of the log, and `catalog` does not name it.
fn is_unnamed(name: &str, catalog: &Catalog) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    match (run::number_of(file), log::number_of(file)) {
        (Some(number), _) => {
            name == run::file_name(number) && catalog.runs.iter().all(|run| run.number != number)
        }
        (_, Some(number)) => name == log::file_name(number) && number < catalog.log_start,
        _ => false,
    }
}

/// Refuses a store whose repair was cut short.
///
/// # Errors
/// `Corrupt` for such a store; what the system says.
pub(crate) fn require_done(directory: &Directory) -> Result<()> {
    if !directory.exists(MARK)? {
        return Ok(());
    }
    let error = Error::corrupt("a repair of the store was cut short")
        .hint("`tersecades store repair` does it again; reading goes on");
    Err(directory.name_file(error, MARK))
}
