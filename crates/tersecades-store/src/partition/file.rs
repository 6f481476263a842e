//! Files into containers.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom};
use std::path::Path;

use tersecades_columnar::error::{Error, Result};

use super::dictionary;
use super::packer::{PackOptions, Packer, Summary};
use crate::whole_file::{self, WholeFile};

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Packs a file into another, which appears when it is whole, and says after each piece how many
/// bytes are done.
///
/// Where the layout takes a dictionary and `options` has none, one is trained on pieces from all
/// over the file.
///
/// # Errors
/// Files that cannot be read or written, options that make no sense, and a file that is to be
/// packed into itself.
pub fn pack_file(
    from: &Path,
    to: &Path,
    mut options: PackOptions,
    done: impl FnMut(u64),
) -> Result<Summary> {
    let named = |error: Error| error.file(from.display().to_string());
    if whole_file::is_same(from, to) {
        let error = Error::invalid("the packed file would replace the file that is packed");
        return Err(named(error.hint("give the packed file another name")));
    }
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
    let out = WholeFile::create(to).map_err(named)?;
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
    let (out, summary) = packer.finish().map_err(named)?;
    let out = out.into_inner();
    out.map_err(|error| Error::from(error.into_error()))
        .and_then(WholeFile::commit)
        .map_err(named)?;
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
