//! Rows as they came or go out, in a snapshot: Arrow streams, which hold every type.

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use tersecades_columnar::error::{Error, Result};

use super::{StateReader, StateWriter};

/// Writes rows, each batch as an Arrow stream of its own.
///
/// # Errors
/// What Arrow says.
pub fn write_arrow<'a>(
    batches: impl ExactSizeIterator<Item = &'a RecordBatch>,
    out: &mut StateWriter,
) -> Result<()> {
    out.u64(batches.len() as u64);
    for batch in batches {
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema())?;
        writer.write(batch)?;
        writer.finish()?;
        drop(writer);
        out.blob(&bytes);
    }
    Ok(())
}

/// Reads what [`write_arrow`] wrote.
///
/// # Errors
/// `Corrupt` when the bytes are no such rows.
pub fn read_arrow<C: FromIterator<RecordBatch>>(from: &mut StateReader<'_>) -> Result<C> {
    let batches = (0..from.count()?).map(|_| {
        let batch = StreamReader::try_new(from.blob()?, None)?.next();
        Ok(batch.ok_or_else(|| Error::corrupt("a snapshot lacks the rows it claims"))??)
    });
    batches.collect()
}
