//! A column's values as they arrive: borrowed lanes, ready to be encoded.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use crate::bitmap::Bitmap;
use crate::dictionary::Dictionary;
use crate::types::Physical;

/// Borrowed values of one column, by width. Signed values and floats lie as their bits.
#[derive(Debug, Clone, Copy)]
pub enum Lanes<'a> {
    /// One byte each.
    U8(&'a [u8]),
    /// Two bytes each.
    U16(&'a [u16]),
    /// Four bytes each.
    U32(&'a [u32]),
    /// Eight bytes each.
    U64(&'a [u64]),
    /// Sixteen bytes each.
    Wide(&'a [i128]),
    /// Text, value `i` at `offsets[i]..offsets[i + 1]` of `bytes`.
    Text {
        /// Start of each value, and the end of the last.
        offsets: &'a [i32],
        /// All text.
        bytes: &'a [u8],
    },
    /// Text as codes of a dictionary.
    Codes {
        /// One code per row.
        codes: CodeLanes<'a>,
        /// What they stand for.
        dictionary: &'a Arc<Dictionary>,
    },
}

/// Borrowed codes of a dictionary, one a row.
#[derive(Debug, Clone, Copy)]
pub enum CodeLanes<'a> {
    /// Codes of which none takes more than a byte.
    U8(&'a [u8]),
    /// Codes of any size.
    U32(&'a [u32]),
}

impl CodeLanes<'_> {
    fn len(&self) -> usize {
        match self {
            CodeLanes::U8(codes) => codes.len(),
            CodeLanes::U32(codes) => codes.len(),
        }
    }

    fn slice(&self, start: usize, end: usize) -> Self {
        match *self {
            CodeLanes::U8(codes) => CodeLanes::U8(&codes[start..end]),
            CodeLanes::U32(codes) => CodeLanes::U32(&codes[start..end]),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> u32 {
        match self {
            CodeLanes::U8(codes) => u32::from(codes[index]),
            CodeLanes::U32(codes) => codes[index],
        }
    }
}

impl Lanes<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Lanes::U8(lanes) => lanes.len(),
            Lanes::U16(lanes) => lanes.len(),
            Lanes::U32(lanes) => lanes.len(),
            Lanes::U64(lanes) => lanes.len(),
            Lanes::Wide(lanes) => lanes.len(),
            Lanes::Text { offsets, .. } => offsets.len().saturating_sub(1),
            Lanes::Codes { codes, .. } => codes.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows `start..end` alone.
    pub fn slice(&self, start: usize, end: usize) -> Self {
        match *self {
            Lanes::U8(lanes) => Lanes::U8(&lanes[start..end]),
            Lanes::U16(lanes) => Lanes::U16(&lanes[start..end]),
            Lanes::U32(lanes) => Lanes::U32(&lanes[start..end]),
            Lanes::U64(lanes) => Lanes::U64(&lanes[start..end]),
            Lanes::Wide(lanes) => Lanes::Wide(&lanes[start..end]),
            Lanes::Text { offsets, bytes } => Lanes::Text {
                offsets: &offsets[start..=end],
                bytes,
            },
            Lanes::Codes { codes, dictionary } => Lanes::Codes {
                codes: codes.slice(start, end),
                dictionary,
            },
        }
    }

    /// The bits of row `index` of a lane of at most eight bytes.
    #[inline]
    pub fn bits(&self, index: usize) -> u64 {
        match self {
            Lanes::U8(lanes) => u64::from(lanes[index]),
            Lanes::U16(lanes) => u64::from(lanes[index]),
            Lanes::U32(lanes) => u64::from(lanes[index]),
            Lanes::U64(lanes) => lanes[index],
            Lanes::Codes { codes, .. } => u64::from(codes.get(index)),
            Lanes::Wide(_) | Lanes::Text { .. } => 0,
        }
    }
}

/// Everything an encoder needs of one column of one batch.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The column's logical type.
    pub data_type: &'a DataType,
    /// Its physical shape.
    pub physical: Physical,
    /// The values; holes of nulls hold anything.
    pub lanes: Lanes<'a>,
    /// Which rows are not null; `None` when all are.
    pub validity: Option<&'a Bitmap>,
    /// The Arrow array the lanes belong to, when a codec may keep it instead of copying.
    pub array: Option<&'a ArrayRef>,
}

impl Input<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.lanes.len()
    }

    /// Whether the values are floats, in lanes.
    pub fn is_float(&self) -> bool {
        matches!(self.physical, Physical::Float { .. })
            && matches!(self.lanes, Lanes::U32(_) | Lanes::U64(_))
    }

    /// Whether row `index` is not null.
    #[inline]
    pub fn is_valid(&self, index: usize) -> bool {
        self.validity.is_none_or(|validity| validity.get(index))
    }

    /// The ordered key of row `index`: floats by raw bits, everything else in value order.
    #[inline]
    pub fn key(&self, index: usize) -> u64 {
        self.lanes.bits(index) ^ self.physical.flip()
    }
}
