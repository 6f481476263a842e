//! `row`: values in rows, beside those of the other columns.
//!
//! ```text
//! a view of the rows that a batch's columns share ([`crate::rows`]), or alone:
//! section 0: lanes (bits of the values)
//! ```
//! For queries that touch whole rows: one cache line holds several columns of a row. Everything
//! that reads one column pays for its neighbours. Example: `[7, 9, 9]` as u8, alone, is the three
//! bytes `07 09 09`.
//!
//! # Source
//! TerseCades (USENIX ATC'18) §3.2, the layout it compares with.

use std::ops::Range;

use crate::choose::{Estimate, Sample};
use crate::chunk::{Chunk, LANES};
use crate::codec::{Codec, EncodeWork, LANE_ITEM, Work};
use crate::error::{Error, Result};
use crate::input::{Input, Lanes};
use crate::lane::with_lanes;
use crate::rows::Strided;
use crate::types::Physical;
use crate::values::Values;

/// Values in rows.
#[derive(Debug)]
pub struct Row;

fn push(
    values: Strided<'_>,
    physical: Physical,
    rows: impl Iterator<Item = usize>,
    out: &mut Values,
) {
    let flip = physical.flip();
    match physical {
        Physical::Wide => out.wide.extend(rows.map(|row| values.wide(row))),
        _ => out.keys.extend(rows.map(|row| values.bits(row) ^ flip)),
    }
}

impl Codec for Row {
    fn id(&self) -> u8 {
        21
    }

    fn name(&self) -> &'static str {
        "row"
    }

    fn summary(&self) -> &'static str {
        "values in rows, beside those of the other columns; by request (`layout = row`)"
    }

    fn source(&self) -> &'static str {
        "TerseCades (ATC 2018) §3.2, what it compares with"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        !matches!(input.lanes, Lanes::Codes { .. } | Lanes::Text { .. })
    }

    /// Chosen by request alone.
    fn estimate(&self, _sample: &Sample<'_>) -> Estimate {
        f64::INFINITY.into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, _work: &mut EncodeWork) -> Result<()> {
        let bytes: &[u8] = match input.lanes {
            Lanes::Wide(lanes) => bytemuck::cast_slice(lanes),
            lanes => with_lanes!(lanes, lanes => bytemuck::cast_slice(lanes), else {
                return Err(Error::internal("rows hold values of one width"))
            }),
        };
        out.body
            .add_section(LANES, bytes.len())
            .copy_from_slice(bytes);
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[LANE_ITEM]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        let bytes = chunk.body.section::<u8>(LANES).len();
        let width = chunk.physical.lane_bytes();
        match width > 0 && bytes == chunk.rows * width {
            true => Ok(()),
            false => Err(Error::corrupt("values do not match the number of rows")),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        push(Strided::of(chunk), chunk.physical, rows, out);
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, _work: &mut Work) {
        let rows = rows.iter().map(|row| *row as usize);
        push(Strided::of(chunk), chunk.physical, rows, out);
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}
