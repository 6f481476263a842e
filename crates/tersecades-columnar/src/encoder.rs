//! From arriving arrays to encoded chunks: one encoder per column of a stream.
//!
//! The encoder keeps what outlives a batch: the column's dictionary, the translation of the
//! source's own dictionaries, and all scratch memory, so that a steady stream allocates nothing.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, UInt32Type, UInt64Type};
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, make_array};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use crate::arrow::is_row_by_row;
use crate::bitmap::Bitmap;
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork};
use crate::dictionary::Dictionary;
use crate::error::{Error, ErrorKind, Result};
use crate::goal::Goal;
use crate::input::{CodeLanes, Input, Lanes};
use crate::registry::CODECS;
use crate::scheme::Scheme;
use crate::types::{Physical, logical_type};

mod few;
mod outgrown;

use few::SpreadBuffer;
pub use outgrown::CARDINALITY_LIMIT;

/// Keys that a byte holds.
const BYTE_KEYS: usize = 1 << u8::BITS;

/// The source dictionary met last and what its entries are called here.
#[derive(Default)]
struct Translation {
    values: Option<ArrayRef>,
    codes: Vec<u32>,
    /// The codes by key, where keys and codes are bytes; the rest is the code of the first key.
    bytes: Option<Box<[u8; BYTE_KEYS]>>,
}

impl Translation {
    /// Takes over the codes of another source dictionary.
    fn fill_bytes(&mut self) {
        let narrow = |code: &u32| u8::try_from(*code).ok();
        let codes: Option<Vec<u8>> = self.codes.iter().map(narrow).collect();
        self.bytes = codes.filter(|codes| codes.len() <= BYTE_KEYS).map(|codes| {
            let mut bytes = Box::new([codes.first().copied().unwrap_or(0); BYTE_KEYS]);
            bytes[..codes.len()].copy_from_slice(&codes);
            bytes
        });
    }
}

/// The codes of a batch, in the memory of the batch before.
#[derive(Default)]
struct CodeBuffer {
    words: Vec<u32>,
    bytes: Vec<u8>,
    /// Whether `bytes` has them.
    are_bytes: bool,
}

impl CodeBuffer {
    fn lanes(&self) -> CodeLanes<'_> {
        match self.are_bytes {
            true => CodeLanes::U8(&self.bytes),
            false => CodeLanes::U32(&self.words),
        }
    }
}

/// Encodes the arrays of one column.
pub struct ColumnEncoder {
    data_type: DataType,
    physical: Physical,
    pinned: Scheme,
    dictionary: Option<Arc<Dictionary>>,
    translation: Translation,
    codes: CodeBuffer,
    /// Rows of text that were made into codes.
    coded_rows: usize,
    /// Texts that were sought in the dictionary for one array each.
    sought: usize,
    /// Rows of text after which codes were compared with text the last time.
    compared_rows: usize,
    booleans: Vec<u8>,
    spread: SpreadBuffer,
    validity: Bitmap,
    work: EncodeWork,
}

impl ColumnEncoder {
    /// An encoder for arrays of `data_type` (dictionary arrays count as their values' type).
    ///
    /// # Errors
    /// `Unsupported` for types without a physical shape.
    pub fn new(data_type: &DataType) -> Result<Self> {
        let data_type = logical_type(data_type);
        let physical = Physical::of(&data_type)?;
        Ok(ColumnEncoder {
            dictionary: (physical == Physical::Text).then(Dictionary::new),
            data_type,
            physical,
            pinned: Scheme::default(),
            translation: Translation::default(),
            codes: CodeBuffer::default(),
            coded_rows: 0,
            sought: 0,
            compared_rows: 0,
            booleans: Vec::new(),
            spread: SpreadBuffer::default(),
            validity: Bitmap::default(),
            work: EncodeWork::default(),
        })
    }

    /// Uses `scheme` wherever its first codec accepts the column, instead of choosing.
    pub fn pin(&mut self, scheme: impl Into<Scheme>) {
        self.pinned = scheme.into();
    }

    /// Uses `scheme` as [`ColumnEncoder::pin`] does, and refuses one that the column's type rules
    /// out. Text under a codec that takes no codes is not made into codes.
    ///
    /// # Errors
    /// `InvalidArgument`, listing the codecs that take the type.
    pub fn require(&mut self, scheme: impl Into<Scheme>) -> Result<()> {
        let scheme = scheme.into();
        if let Some(stage) = scheme.first() {
            let (arrives, taken) = (
                self.takes(stage.codec, false),
                self.takes(stage.codec, true),
            );
            if !arrives && !taken {
                return Err(self.refusal(stage.codec));
            }
            if self.physical == Physical::Text && !arrives {
                self.keep_text();
            }
        }
        self.pin(scheme);
        Ok(())
    }

    fn refusal(&self, codec: &dyn Codec) -> Error {
        let takes = |codec: &&&dyn Codec| self.takes(**codec, false) || self.takes(**codec, true);
        let names: Vec<&str> = CODECS
            .iter()
            .filter(takes)
            .map(|codec| codec.name())
            .collect();
        let (name, data_type) = (codec.name(), &self.data_type);
        Error::invalid(format!("`{name}` takes no values of {data_type}"))
            .hint(format!("the codecs that do are {}", names.join(", ")))
    }

    /// Whether `codec` takes the column as it arrives, or its text as it is when `as_text`.
    fn takes(&self, codec: &dyn Codec, as_text: bool) -> bool {
        let lanes = match (self.physical.lane_bytes(), &self.dictionary) {
            _ if self.physical == Physical::Wide => Lanes::Wide(&[]),
            (1, _) => Lanes::U8(&[]),
            (2, _) => Lanes::U16(&[]),
            (4, _) => Lanes::U32(&[]),
            (8, _) => Lanes::U64(&[]),
            (_, Some(dictionary)) if !as_text => Lanes::Codes {
                codes: CodeLanes::U32(&[]),
                dictionary,
            },
            _ => Lanes::Text {
                offsets: &[0],
                bytes: &[],
            },
        };
        codec.accepts(&Input {
            data_type: &self.data_type,
            physical: self.physical,
            lanes,
            validity: None,
            array: None,
        })
    }

    /// Leaves text as it is instead of making it into codes.
    pub fn keep_text(&mut self) {
        self.dictionary = None;
        self.translation = Translation::default();
    }

    /// Begins texts anew, so that what comes is encoded with no text of what came; choices stay.
    pub fn renew(&mut self) {
        self.dictionary = (self.physical == Physical::Text).then(Dictionary::new);
        self.translation = Translation::default();
        (self.coded_rows, self.sought, self.compared_rows) = (0, 0, 0);
    }

    /// Chooses for `goal`.
    pub fn aim(&mut self, goal: Goal) {
        self.work.aim(goal);
    }

    /// The column's logical type.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The column's dictionary; `None` for types other than text, and past the cardinality limit.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// Encodes `array` into a new chunk.
    ///
    /// # Errors
    /// As [`ColumnEncoder::encode`].
    pub fn encode_new(&mut self, array: &ArrayRef) -> Result<Chunk> {
        let mut chunk = Chunk::default();
        self.encode(array, &mut chunk)?;
        Ok(chunk)
    }

    /// Encodes `array` into `out`, whose memory is reused.
    ///
    /// # Errors
    /// `SchemaMismatch` when the array is of another type.
    ///
    /// # Cost
    /// One pass or two over the values; text that does not come as a dictionary is hashed.
    pub fn encode(&mut self, array: &ArrayRef, out: &mut Chunk) -> Result<()> {
        self.check_type(array)?;
        if self.is_cast(array.data_type()) {
            let values = arrow_cast::cast(array, &self.data_type)?;
            return self.encode(&values, out);
        }
        if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            self.validity.copy_nulls(&nulls);
        } else {
            self.validity.clear();
        }
        if self.physical == Physical::Text {
            return self.encode_text(array, out);
        }
        if let DataType::Boolean = self.data_type {
            let values = array.as_boolean().values();
            self.booleans.clear();
            self.booleans.extend(values.iter().map(u8::from));
            let booleans = std::mem::take(&mut self.booleans);
            let encoded = self.encode_lanes(Lanes::U8(&booleans), None, out);
            self.booleans = booleans;
            return encoded;
        }
        let array_lanes = crate::arrow::lanes(array.as_ref());
        let lanes = array_lanes.ok_or_else(|| {
            Error::unsupported(format!("arrays of {} cannot be encoded", array.data_type()))
        })?;
        self.encode_lanes(lanes, Some(array), out)
    }

    fn check_type(&self, array: &ArrayRef) -> Result<()> {
        let (got, expected) = (array.data_type(), &self.data_type);
        match logical_type(got) == *expected {
            true => Ok(()),
            false => Err(Error::schema(format!(
                "expected values of {expected}, got {got}"
            ))),
        }
    }

    /// Whether arrays of this type are made the type of the column before anything else: all others
    /// but text, which comes in many forms.
    fn is_cast(&self, data_type: &DataType) -> bool {
        match self.physical {
            Physical::Text => matches!(data_type, DataType::FixedSizeBinary(_) | DataType::Null),
            _ => *data_type != self.data_type,
        }
    }

    /// Encodes values that do not come from Arrow; every row is valid.
    ///
    /// # Errors
    /// As [`ColumnEncoder::encode`].
    pub fn encode_values(&mut self, lanes: Lanes<'_>, out: &mut Chunk) -> Result<()> {
        self.validity.clear();
        self.encode_lanes(lanes, None, out)
    }

    fn encode_lanes(
        &mut self,
        lanes: Lanes<'_>,
        array: Option<&ArrayRef>,
        out: &mut Chunk,
    ) -> Result<()> {
        let input = Input {
            data_type: &self.data_type,
            physical: self.physical,
            lanes,
            validity: (!self.validity.is_empty()).then_some(&self.validity),
            array,
        };
        let pinned = self.pinned.first().map(|stage| stage.codec);
        if pinned.is_some_and(|codec| codec.accepts(&input)) {
            return out.encode(&self.pinned, &input, &mut self.work);
        }
        out.encode_chosen(&input, &mut self.work)
    }

    fn encode_text(&mut self, array: &ArrayRef, out: &mut Chunk) -> Result<()> {
        let Some(dictionary) = self.dictionary.clone() else {
            return self.encode_plain_text(array, out);
        };
        let mut codes = std::mem::take(&mut self.codes);
        let encoded = match self.collect_codes(array, &dictionary, &mut codes) {
            Ok(true) => {
                let lanes = Lanes::Codes {
                    codes: codes.lanes(),
                    dictionary: &dictionary,
                };
                self.encode_lanes(lanes, None, out)
            }
            Ok(false) => self.encode_plain_text(array, out),
            Err(error) => Err(error),
        };
        self.codes = codes;
        encoded
    }

    /// Fills `codes` with those of the texts of `array`; false where text is kept as it is from
    /// here on.
    fn collect_codes(
        &mut self,
        array: &ArrayRef,
        dictionary: &Dictionary,
        codes: &mut CodeBuffer,
    ) -> Result<bool> {
        codes.are_bytes = false;
        codes.words.clear();
        let known = dictionary.len();
        let collected = match array.data_type() {
            DataType::Dictionary(..) => self.translate(array, dictionary, codes),
            _ => intern_all(array, dictionary, &mut codes.words),
        };
        let outgrown = match collected {
            Ok(()) => self.outgrows(dictionary, array, (known, codes)),
            Err(error) if error.kind() == ErrorKind::LimitExceeded => true,
            Err(error) => return Err(error),
        };
        if outgrown {
            self.keep_text();
        }
        Ok(!outgrown)
    }

    fn encode_plain_text(&mut self, array: &ArrayRef, out: &mut Chunk) -> Result<()> {
        let strings = plain_text(array, &self.data_type)?;
        let lanes = crate::arrow::lanes(strings.as_ref());
        let lanes = lanes.ok_or_else(|| Error::internal("plain text has lanes"))?;
        self.encode_lanes(lanes, Some(&strings), out)
    }

    /// Source codes to stream codes, by a table rebuilt only when the source's dictionary changes.
    fn translate(
        &mut self,
        array: &ArrayRef,
        dictionary: &Dictionary,
        codes: &mut CodeBuffer,
    ) -> Result<()> {
        let source = array.as_any_dictionary();
        let same = |known: &ArrayRef| {
            known.len() == source.values().len() && {
                Arc::ptr_eq(known, source.values()) || same_text(known, source.values())
            }
        };
        if !self.translation.values.as_ref().is_some_and(same) {
            // Should a text not fit, the codes are those of neither dictionary.
            self.translation.values = None;
            self.translation.codes.clear();
            intern_all(source.values(), dictionary, &mut self.translation.codes)?;
            self.translation.fill_bytes();
        }
        self.translation.values = Some(Arc::clone(source.values()));
        let table = &self.translation;
        let DataType::Dictionary(key_type, _) = array.data_type() else {
            return Ok(());
        };
        match **key_type {
            DataType::Int8 => map_keys::<Int8Type>(array, table, codes),
            DataType::Int16 => map_keys::<Int16Type>(array, table, codes),
            DataType::Int32 => map_keys::<Int32Type>(array, table, codes),
            DataType::Int64 => map_keys::<Int64Type>(array, table, codes),
            DataType::UInt8 => map_keys::<UInt8Type>(array, table, codes),
            DataType::UInt16 => map_keys::<UInt16Type>(array, table, codes),
            DataType::UInt32 => map_keys::<UInt32Type>(array, table, codes),
            _ => map_keys::<UInt64Type>(array, table, codes),
        }
        Ok(())
    }
}

/// Null keys hold anything: a key outside the table counts as one inside.
fn map_keys<K>(array: &ArrayRef, table: &Translation, codes: &mut CodeBuffer)
where
    K: ArrowDictionaryKeyType + ArrowPrimitiveType,
{
    let keys = array.as_dictionary::<K>().keys().values();
    if let Some(bytes) = &table.bytes {
        codes.are_bytes = true;
        codes.bytes.clear();
        let code = |key: &K::Native| bytes[key.as_usize() % BYTE_KEYS];
        return codes.bytes.extend(keys.iter().map(code));
    }
    let first = table.codes.first().copied().unwrap_or(0);
    let code = |key: &K::Native| table.codes.get(key.as_usize()).copied().unwrap_or(first);
    codes.words.extend(keys.iter().map(code));
}

/// Whether two text arrays share their buffers and have their nulls, whose holes hold anything, in
/// the same places.
fn same_text(a: &ArrayRef, b: &ArrayRef) -> bool {
    let shared = match (
        crate::arrow::lanes(a.as_ref()),
        crate::arrow::lanes(b.as_ref()),
    ) {
        (
            Some(Lanes::Text {
                offsets: x,
                bytes: p,
            }),
            Some(Lanes::Text {
                offsets: y,
                bytes: q,
            }),
        ) => std::ptr::eq(x, y) && std::ptr::eq(p, q),
        _ => false,
    };
    shared && a.nulls() == b.nulls()
}

/// Appends the code of every text of `array`; nulls get the code of the text before.
fn intern_all(array: &ArrayRef, dictionary: &Dictionary, codes: &mut Vec<u32>) -> Result<()> {
    let array = plain_text(array, &logical_type(array.data_type()))?;
    let Some(Lanes::Text { offsets, bytes }) = crate::arrow::lanes(array.as_ref()) else {
        return Err(Error::internal("text arrays have text lanes"));
    };
    let mut interner = dictionary.interner();
    let mut last: Option<(&[u8], u32)> = None;
    for row in 0..array.len() {
        let text = &bytes[offsets[row] as usize..offsets[row + 1] as usize];
        let known = match last {
            Some(known) if known.0 == text || array.is_null(row) => known,
            None if array.is_null(row) => (&bytes[..0], interner.code(b"")?),
            _ => (text, interner.code(text)?),
        };
        // A null stands for the text before it; what lies in its hole may be another.
        last = Some(known);
        codes.push(known.1);
    }
    Ok(())
}

/// Text with 32-bit offsets, whatever way it came.
fn plain_text(array: &ArrayRef, logical: &DataType) -> Result<ArrayRef> {
    if array.data_type() == logical {
        return Ok(Arc::clone(array));
    }
    if let Some(coded) = array.as_dictionary_opt::<Int32Type>()
        && coded.values().data_type() == logical
        && coded.values().null_count() == 0
        && is_row_by_row(coded)
    {
        let texts = coded.values().to_data().into_builder();
        let texts = texts.nulls(coded.nulls().cloned()).build()?;
        return Ok(make_array(texts));
    }
    Ok(arrow_cast::cast(array, logical)?)
}
