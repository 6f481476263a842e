//! The 34 units of 256,000 bytes that the paper's experiments run on.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tersecades_columnar::error::{Error, Result};

use crate::Options;

/// Bytes of a record of tar.
const RECORD: usize = 512;

/// One file of the set.
pub(super) struct Unit {
    /// Its name, which starts with its place from most to least compressible.
    pub(super) name: String,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

/// The archive of units, if there is one.
pub(super) fn archive(options: &Options) -> Option<PathBuf> {
    let data = options.data.clone();
    let data = data.or_else(|| std::env::var_os("TERSECADES_DATA").map(PathBuf::from))?;
    Some(data.join("storage34/slices.tar.gz")).filter(|path| path.is_file())
}

/// The units of an archive, by name.
///
/// # Errors
/// Archives that cannot be read.
pub(super) fn units(archive: &Path) -> Result<Vec<Unit>> {
    let mut tar = Vec::new();
    let file = std::fs::File::open(archive)?;
    GzDecoder::new(file).read_to_end(&mut tar)?;
    let mut rest = tar.as_slice();
    let mut units = Vec::new();
    while let Some((head, behind)) = rest.split_at_checked(RECORD) {
        let text = |from: usize, to: usize| {
            let text = head[from..to].split(|byte| *byte == 0).next();
            String::from_utf8_lossy(text.unwrap_or(&[]))
                .trim()
                .to_owned()
        };
        let name = text(0, 100);
        if name.is_empty() {
            break;
        }
        let length = usize::from_str_radix(&text(124, 136), 8);
        let length = length.map_err(|_| Error::corrupt("a length in the archive is no number"))?;
        let cut_short = || Error::corrupt("the archive ends inside a file");
        let (bytes, _) = behind.split_at_checked(length).ok_or_else(cut_short)?;
        if let Some(name) = Path::new(&name).file_stem().filter(|_| length > 0) {
            let name = name.to_string_lossy().into_owned();
            units.push(Unit {
                name,
                bytes: bytes.to_vec(),
            });
        }
        let padded = length.next_multiple_of(RECORD);
        rest = behind.get(padded..).ok_or_else(cut_short)?;
    }
    units.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(units)
}
