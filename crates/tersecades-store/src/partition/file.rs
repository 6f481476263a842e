//! Files into containers.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tersecades_columnar::error::{Error, Result};

use super::dictionary;
use super::packer::{PackOptions, Packer, Summary};

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Packs a file into another, which appears when it is whole, and says after each piece how many
/// bytes are done.
///
/// Where the layout takes a dictionary and `options` has none, one is trained on pieces from all
/// over the file.
///
/// # Errors
/// Files that cannot be read or written, and options that make no sense.
pub fn pack_file(
    from: &Path,
    to: &Path,
    mut options: PackOptions,
    done: impl FnMut(u64),
) -> Result<Summary> {
    let named = |error: Error| error.file(from.display().to_string());
    let mut input = File::open(from).map_err(|error| named(error.into()))?;
    let length = input.metadata().map_or(0, |found| found.len());
    options.choose_dictionary(length, || {
        sample(&mut input).map_err(|error| named(error.into()))
    })?;
    pack_reader(&mut input, to, options, done)
}

/// Packs what a reader gives into a file, which appears when it is whole.
///
/// # Errors
/// As [`pack_file`].
pub fn pack_reader(
    input: &mut dyn Read,
    to: &Path,
    options: PackOptions,
    mut done: impl FnMut(u64),
) -> Result<Summary> {
    let named = |error: Error| error.file(to.display().to_string());
    let partial = Partial::create(to)?;
    let out = File::create(&partial.path).map_err(|error| named(error.into()))?;
    let mut packer = Packer::new(BufWriter::new(out), options)?;
    let mut piece = vec![0; PIECE];
    let mut total = 0;
    loop {
        let count = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        packer.push(&piece[..count]).map_err(named)?;
        total += count as u64;
        done(total);
    }
    let (mut out, summary) = packer.finish().map_err(named)?;
    let written = out.flush().and_then(|()| out.get_ref().sync_all());
    written
        .and_then(|()| partial.keep(to))
        .map_err(|error| named(error.into()))?;
    Ok(summary)
}

fn sample(input: &mut File) -> std::io::Result<Vec<u8>> {
    let mut samples = Vec::new();
    for (at, length) in dictionary::sample_places(input.metadata()?.len()) {
        input.seek(SeekFrom::Start(at))?;
        Read::by_ref(input)
            .take(length as u64)
            .read_to_end(&mut samples)?;
    }
    input.seek(SeekFrom::Start(0))?;
    Ok(samples)
}

/// A file under its temporary name; removed unless it is kept.
pub(super) struct Partial {
    path: PathBuf,
    kept: bool,
}

impl Partial {
    /// A file that is to become `target`.
    ///
    /// # Errors
    /// `InvalidArgument` for a path without a file name.
    pub(super) fn create(target: &Path) -> Result<Self> {
        let name = target.file_name().ok_or_else(|| {
            Error::invalid("the output has no file name").file(target.display().to_string())
        })?;
        let name = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
        Ok(Partial {
            path: target.with_file_name(name),
            kept: false,
        })
    }

    /// Where it is written.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn keep(mut self, target: &Path) -> std::io::Result<()> {
        fs::rename(&self.path, target)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.kept {
            // The error that is on its way matters more than one from here.
            let _ = fs::remove_file(&self.path);
        }
    }
}
