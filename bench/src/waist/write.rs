//! Primitives that make a chunk.

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::EncodeWork;
use tersecades_columnar::primitive::arithmetic::{Change, add_decoded, map_decoded};
use tersecades_columnar::primitive::slice::slice_decoded;
use tersecades_columnar::{Error, Result};

use super::Case;
use crate::report::Report;

impl Case<'_> {
    /// All of them.
    pub(super) fn writes(&mut self, report: &mut Report) -> Result<()> {
        let (chunk, codec, rows) = (self.chunk, self.chunk.codec(), self.chunk.rows());
        let (mut out, mut other) = (Chunk::default(), Chunk::default());
        let (mut encode, mut other_encode) = (EncodeWork::default(), EncodeWork::default());
        let mut failed: Option<Error> = None;
        let mut note = |result: Result<()>| {
            if let Err(error) = result {
                failed = Some(error);
            }
        };
        let part = 1_024..rows - 1_024;
        let (start, end) = (part.start, part.end);
        self.line(
            "slice",
            rows,
            &mut |work| note(chunk.slice(start..end, &mut out, work, &mut encode)),
            &mut |work| {
                let encode = &mut other_encode;
                drop(slice_decoded(
                    codec,
                    chunk,
                    start..end,
                    &mut other,
                    work,
                    encode,
                ));
            },
            report,
        );
        if matches!(chunk.data_type(), arrow_schema::DataType::Int64) {
            for (name, change) in [
                ("map (+)", Change::Add(7)),
                ("map (x)", Change::Multiply(3)),
            ] {
                self.line(
                    name,
                    rows,
                    &mut |work| note(chunk.map(change, &mut out, work, &mut encode)),
                    &mut |work| {
                        let encode = &mut other_encode;
                        drop(map_decoded(codec, chunk, change, &mut other, work, encode));
                    },
                    report,
                );
            }
            self.line(
                "add",
                rows,
                &mut |work| note(chunk.add(chunk, &mut out, work, &mut encode)),
                &mut |work| {
                    let encode = &mut other_encode;
                    drop(add_decoded(chunk, chunk, &mut other, work, encode));
                },
                report,
            );
        }
        failed.map_or(Ok(()), Err)
    }
}
