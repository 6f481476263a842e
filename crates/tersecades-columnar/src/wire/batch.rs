//! The batch unit: names and types checked first, then one chunk unit per column.

use std::sync::Arc;

use arrow_schema::{Field, Schema};

use crate::batch::Batch;
use crate::chunk::Chunk;
use crate::error::{Error, Result};

use super::header::{CONTENT_BYTES_AT, FIXED_BYTES};
use super::{VERSION, checksum, field, length, padded, read_chunk, truncated, write_chunk};

/// First bytes of a batch unit.
pub(super) const MAGIC: [u8; 4] = *b"TCDB";
const COLUMNS_AT: usize = 8;
const ROWS_AT: usize = 12;

/// Directory entry: length of the chunk unit u64, of the name u32, nullable u8, three zeros.
const ENTRY_BYTES: usize = 16;

/// Appends `batch`.
pub(super) fn write(batch: &Batch, out: &mut Vec<u8>) -> Result<()> {
    let limit = |_| Error::limit("a batch has too many columns, rows or a name that is too long");
    let mut units = Vec::new();
    let mut directory = Vec::new();
    let mut names = Vec::new();
    for (field, chunk) in batch.schema().fields().iter().zip(batch.columns()) {
        let from = units.len();
        write_chunk(chunk, &mut units).map_err(|error| error.column(field.name().as_str()))?;
        let name_bytes = u32::try_from(field.name().len()).map_err(limit)?;
        directory.extend_from_slice(&((units.len() - from) as u64).to_le_bytes());
        directory.extend_from_slice(&name_bytes.to_le_bytes());
        directory.extend_from_slice(&[u8::from(field.is_nullable()), 0, 0, 0]);
        names.extend_from_slice(field.name().as_bytes());
    }
    let columns = u32::try_from(batch.columns().len()).map_err(limit)?;
    let rows = u32::try_from(batch.rows()).map_err(limit)?;
    let content = padded(FIXED_BYTES + directory.len() + names.len());
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&columns.to_le_bytes());
    out.extend_from_slice(&rows.to_le_bytes());
    out.resize(start + CONTENT_BYTES_AT, 0);
    out.extend_from_slice(&(content as u64).to_le_bytes());
    out.resize(start + FIXED_BYTES, 0);
    out.append(&mut directory);
    out.append(&mut names);
    out.resize(start + content, 0);
    checksum::seal(out, start);
    out.append(&mut units);
    Ok(())
}

/// The batch that `bytes` are.
pub(super) fn read(bytes: &[u8]) -> Result<Batch> {
    let (content, start) = checksum::open(bytes, MAGIC)?;
    let count = length(u64::from(u32::from_le_bytes(field(content, COLUMNS_AT)?)))?;
    let rows = length(u64::from(u32::from_le_bytes(field(content, ROWS_AT)?)))?;
    let zeros = [
        6..COLUMNS_AT,
        ROWS_AT + 4..CONTENT_BYTES_AT,
        CONTENT_BYTES_AT + 8..FIXED_BYTES,
    ];
    if zeros
        .into_iter()
        .flatten()
        .any(|at| content.get(at) != Some(&0))
    {
        return Err(Error::corrupt("a batch uses fields that mean nothing"));
    }
    let directory_bytes = count.checked_mul(ENTRY_BYTES).ok_or_else(truncated)?;
    let rest = content.get(FIXED_BYTES..).ok_or_else(truncated)?;
    let (directory, mut names) = rest
        .split_at_checked(directory_bytes)
        .ok_or_else(truncated)?;
    let mut rest = bytes.get(start..).ok_or_else(truncated)?;
    let mut fields = Vec::with_capacity(count);
    let mut columns = Vec::with_capacity(count);
    for entry in directory.chunks_exact(ENTRY_BYTES) {
        let (field, chunk) = read_column(entry, &mut names, &mut rest)?;
        fields.push(field);
        columns.push(chunk);
    }
    if !rest.is_empty() || names.iter().any(|byte| *byte != 0) || names.len() >= 64 {
        return Err(Error::corrupt("bytes follow the last column of a batch"));
    }
    let batch = Batch::new(Arc::new(Schema::new(fields)), columns)
        .map_err(|error| Error::corrupt(error.message()))?;
    match batch.rows() == rows {
        true => Ok(batch),
        false => Err(Error::corrupt(
            "a batch has another number of rows than its columns",
        )),
    }
}

/// One column, taken off the front of `names` and `units`.
fn read_column(entry: &[u8], names: &mut &[u8], units: &mut &[u8]) -> Result<(Field, Chunk)> {
    let unit_bytes = length(u64::from_le_bytes(field(entry, 0)?))?;
    let name_bytes = length(u64::from(u32::from_le_bytes(field(entry, 8)?)))?;
    let nullable = match field(entry, 12)? {
        [0, 0, 0, 0] => false,
        [1, 0, 0, 0] => true,
        _ => return Err(Error::corrupt("a column uses fields that mean nothing")),
    };
    let name = take(names, name_bytes)?;
    let name = std::str::from_utf8(name).map_err(|_| Error::corrupt("a name is not UTF-8"))?;
    let (chunk, used) = take(units, unit_bytes)
        .and_then(|unit| read_chunk(unit, None))
        .map_err(|error| error.column(name))?;
    match used == unit_bytes {
        true => Ok((Field::new(name, chunk.data_type().clone(), nullable), chunk)),
        false => Err(Error::corrupt("bytes follow a column's chunk").column(name)),
    }
}

/// Splits `length` bytes off the front of `bytes`.
fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(length).ok_or_else(truncated)?;
    *bytes = rest;
    Ok(front)
}
