//! Refuses Parquet files whose schema is nested so deeply that a decoder would fill the stack, and
//! those that are encrypted.
//!
//! The Parquet reader builds the schema by recursion, and a stack that overflows ends the process,
//! which no fence can catch. This pass walks the footer (Thrift, compact protocol) and follows
//! nothing but the child counts of the schema elements:
//! ```text
//! FileMetaData { 2: [SchemaElement { 5: number of children, … }, …], …   depth first
//!                8: EncryptionAlgorithm where columns are encrypted, … }
//! ```

use parquet::file::reader::ChunkReader;
use tersecades_columnar::error::{Error, Result};

/// Deepest column in groups; real schemas stay below ten.
const GROUPS_LIMIT: usize = 64;

/// Deepest Thrift value that is passed over; the Parquet format needs about eight.
const SKIP_DEPTH_LIMIT: u32 = 32;

const TAIL_BYTES: usize = 8;
const SCHEMA_FIELD: i64 = 2;
const CHILDREN_FIELD: i64 = 5;
const ENCRYPTION_FIELD: i64 = 8;

/// Checks the schema of the Parquet file `input`, and says whether columns of it are encrypted;
/// files without a footer are left to the decoder.
///
/// # Errors
/// `LimitExceeded` for deeper nesting than 64 groups, `Corrupt` if the footer is damaged,
/// `Unsupported` if it is encrypted.
pub(super) fn check_footer<T: ChunkReader>(input: &T) -> Result<bool> {
    let Some(tail) = input.len().checked_sub(TAIL_BYTES as u64) else {
        return Ok(false);
    };
    let read = |start, length| {
        input
            .get_bytes(start, length)
            .map_err(|error| Error::corrupt(error.to_string()))
    };
    let end = read(tail, TAIL_BYTES)?;
    let length = match end.split_first_chunk::<4>() {
        Some((length, b"PAR1")) => length,
        Some((_, b"PARE")) => return Err(encrypted()),
        _ => return Ok(false),
    };
    let length = u32::from_le_bytes(*length);
    let start = tail.checked_sub(length.into()).ok_or_else(damaged)?;
    let footer = read(start, usize::try_from(length).map_err(|_| damaged())?)?;
    let mut thrift = Thrift { rest: &footer };
    let (mut field, mut is_encrypted) = (0, false);
    while let Some(kind) = thrift.next_field(&mut field)? {
        is_encrypted |= field == ENCRYPTION_FIELD;
        match (field, kind) {
            (SCHEMA_FIELD, Kind::LIST) => check_schema(&mut thrift)?,
            _ => thrift.skip(kind, 0)?,
        }
    }
    Ok(is_encrypted)
}

/// The error of a file that cannot be read without its key.
pub(super) fn encrypted() -> Error {
    Error::unsupported("the Parquet file, or a column of it, is encrypted")
        .hint("rewrite it without encryption; columns that are not encrypted are read by name")
}

/// Reads the list of schema elements and follows its depth.
fn check_schema(thrift: &mut Thrift<'_>) -> Result<()> {
    let (kind, count) = thrift.list()?;
    let mut open_groups: Vec<i64> = Vec::new();
    for _ in 0..count {
        if kind != Kind::STRUCT {
            return Err(damaged());
        }
        let (mut field, mut children) = (0, 0);
        while let Some(kind) = thrift.next_field(&mut field)? {
            match (field, kind) {
                (CHILDREN_FIELD, Kind::I32) => children = thrift.zigzag()?,
                _ => thrift.skip(kind, 0)?,
            }
        }
        if let Some(left) = open_groups.last_mut() {
            *left -= 1;
        }
        if children > 0 {
            open_groups.push(children);
        }
        while open_groups.last() == Some(&0) {
            open_groups.pop();
        }
        if open_groups.len() > GROUPS_LIMIT {
            return Err(
                Error::limit(format!("a column lies over {GROUPS_LIMIT} groups deep"))
                    .hint("flatten the schema before writing the file"),
            );
        }
    }
    Ok(())
}

/// Type codes of the compact protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind(u8);

impl Kind {
    const TRUE: Kind = Kind(1);
    const FALSE: Kind = Kind(2);
    const I8: Kind = Kind(3);
    const I16: Kind = Kind(4);
    const I32: Kind = Kind(5);
    const I64: Kind = Kind(6);
    const DOUBLE: Kind = Kind(7);
    const BINARY: Kind = Kind(8);
    const LIST: Kind = Kind(9);
    const SET: Kind = Kind(10);
    const MAP: Kind = Kind(11);
    const STRUCT: Kind = Kind(12);
    const UUID: Kind = Kind(13);
}

struct Thrift<'a> {
    rest: &'a [u8],
}

impl Thrift<'_> {
    fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.rest.split_first().ok_or_else(damaged)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn skip_bytes(&mut self, count: u64) -> Result<()> {
        let count = usize::try_from(count).map_err(|_| damaged())?;
        self.rest = self.rest.get(count..).ok_or_else(damaged)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged())
    }

    fn zigzag(&mut self) -> Result<i64> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// The type of the next field of a struct, whose number goes to `field`; `None` at its end.
    fn next_field(&mut self, field: &mut i64) -> Result<Option<Kind>> {
        let header = self.byte()?;
        if header == 0 {
            return Ok(None);
        }
        *field = match header >> 4 {
            0 => self.zigzag()?,
            step => field.checked_add(step.into()).ok_or_else(damaged)?,
        };
        Ok(Some(Kind(header & 0x0f)))
    }

    /// Type and number of the elements of a list or set.
    fn list(&mut self) -> Result<(Kind, u64)> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        Ok((Kind(header & 0x0f), count))
    }

    /// Passes over the value of a field.
    fn skip(&mut self, kind: Kind, depth: u32) -> Result<()> {
        if depth > SKIP_DEPTH_LIMIT {
            return Err(damaged());
        }
        match kind {
            Kind::TRUE | Kind::FALSE => Ok(()),
            Kind::I8 => self.skip_bytes(1),
            Kind::I16 | Kind::I32 | Kind::I64 => self.varint().map(|_| ()),
            Kind::DOUBLE => self.skip_bytes(8),
            Kind::UUID => self.skip_bytes(16),
            Kind::BINARY => {
                let length = self.varint()?;
                self.skip_bytes(length)
            }
            Kind::LIST | Kind::SET => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth + 1))
            }
            Kind::MAP => self.skip_map(depth + 1),
            Kind::STRUCT => {
                let mut field = 0;
                while let Some(kind) = self.next_field(&mut field)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(damaged()),
        }
    }

    /// Passes over an element of a list or map, where a truth value takes a byte.
    fn skip_element(&mut self, kind: Kind, depth: u32) -> Result<()> {
        match kind {
            Kind::TRUE | Kind::FALSE => self.skip_bytes(1),
            other => self.skip(other, depth),
        }
    }

    fn skip_map(&mut self, depth: u32) -> Result<()> {
        let count = self.varint()?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        for _ in 0..count {
            self.skip_element(Kind(kinds >> 4), depth)?;
            self.skip_element(Kind(kinds & 0x0f), depth)?;
        }
        Ok(())
    }
}

fn damaged() -> Error {
    Error::corrupt("the Parquet footer is damaged").hint("the file is cut short or was overwritten")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tersecades_columnar::error::ErrorKind;

    use super::*;

    /// A file that is nothing but `footer`.
    fn file(footer: &[u8], mark: &[u8; 4]) -> Bytes {
        let length = (footer.len() as u32).to_le_bytes();
        [mark, footer, &length, mark].concat().into()
    }

    #[test]
    fn encrypted_footers_are_refused_and_encrypted_columns_noted() {
        // Field 3, a number; then field 8, a structure without fields; the end.
        let (rows, algorithm) = (&[0x36, 0x08][..], &[0x5c, 0][..]);
        let plain = file(&[rows, &[0]].concat(), b"PAR1");
        assert!(!check_footer(&plain).unwrap());
        let columns = file(&[rows, algorithm, &[0]].concat(), b"PAR1");
        assert!(check_footer(&columns).unwrap());
        let error = check_footer(&file(rows, b"PARE")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
