//! The encoded values of one column of one batch: the unit of codec choice and statistics.
//!
//! The methods here are the waist as operators see it. Each does what no codec should repeat:
//! answers from statistics where they suffice, keeps nulls out, then hands the rest to the codec.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use bytemuck::Pod;

use crate::aligned::AlignedBytes;
use crate::bitmap::Bitmap;
use crate::choose::Candidate;
use crate::codec::{Codec, Codes, EncodeWork, Work, compare_decoded, fold_decoded, gather_decoded};
use crate::dictionary::Dictionary;
use crate::error::Result;
use crate::fold::{Asked, Fold};
use crate::input::Input;
use crate::predicate::{Coverage, KeyRange, Predicate};
use crate::registry;
use crate::rows::RowView;
use crate::scheme::Scheme;
use crate::selection::{Selection, Shape};
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;
use crate::zone::Zones;

/// Most sections of any codec.
pub const SECTIONS_MAX: usize = 8;

/// Most chunks inside a chunk.
pub const INNER_MAX: usize = 2;

/// The section in which a codec that keeps the values as they are has them.
pub(crate) const LANES: usize = 0;

/// Most rows of one chunk.
pub const CHUNK_ROWS_MAX: usize = 1 << 24;

/// Where a codec keeps what it encoded.
#[derive(Clone, Default)]
#[repr(C)]
pub struct Body {
    /// Where the values of blocks lie, if that is known.
    pub(crate) zones: Zones,
    /// All sections, each starting on a cache line.
    pub(crate) bytes: AlignedBytes,
    /// Start and length in bytes of each section.
    pub(crate) sections: [(usize, usize); SECTIONS_MAX],
    /// An Arrow array kept as it came.
    pub(crate) array: Option<ArrayRef>,
    /// A column of rows that other columns share.
    pub(crate) rows: Option<RowView>,
    /// Chunks inside, for codecs that compose.
    pub(crate) inner: [Option<Box<Chunk>>; INNER_MAX],
    /// Chunks whose memory waits to be reused.
    spare: [Option<Box<Chunk>>; INNER_MAX],
    /// The table behind the codes.
    pub(crate) dictionary: Option<Arc<Dictionary>>,
}

impl Body {
    /// Forgets the content, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.retire();
    }

    /// Forgets the content, keeps the memory and the stale bytes in it.
    pub(crate) fn retire(&mut self) {
        self.sections = Default::default();
        self.zones = Zones::default();
        self.array = None;
        self.rows = None;
        self.dictionary = None;
        for (inner, spare) in self.inner.iter_mut().zip(&mut self.spare) {
            if inner.is_some() {
                *spare = inner.take();
            }
        }
    }

    /// The chunk that lies or lay at `index` inside, for its memory.
    pub(crate) fn take_inner(&mut self, index: usize) -> Option<Box<Chunk>> {
        self.inner[index]
            .take()
            .or_else(|| self.spare[index].take())
    }

    /// Encodes `input` as the chunk at `index` inside.
    ///
    /// # Errors
    /// What [`Codec::encode`] says.
    pub(crate) fn encode_inner(
        &mut self,
        index: usize,
        input: &Input<'_>,
        work: &mut EncodeWork,
    ) -> Result<()> {
        let spare = self.take_inner(index);
        self.inner[index] = Some(work.encode_inner(index, input, spare)?);
        Ok(())
    }

    /// Adds section `index` of `count` zeroed items and hands it out.
    pub(crate) fn add_section<T: Pod>(&mut self, index: usize, count: usize) -> &mut [T] {
        let length = count * size_of::<T>();
        let start = self.bytes.grow(length);
        self.sections[index] = (start, length);
        bytemuck::cast_slice_mut(&mut self.bytes.bytes_mut()[start..start + length])
    }

    /// Section `index` as items; a length that is no multiple of the item is cut.
    pub(crate) fn section<T: Pod>(&self, index: usize) -> &[T] {
        let (start, length) = self.sections[index];
        let length = length - length % size_of::<T>();
        bytemuck::cast_slice(&self.bytes.bytes()[start..start + length])
    }
}

/// Encoded values of one column, with their statistics.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Int64Array};
/// use tersecades_columnar::codec::Work;
/// use tersecades_columnar::encoder::ColumnEncoder;
/// use tersecades_columnar::predicate::{Comparison, Predicate};
/// use tersecades_columnar::selection::Selection;
/// let array: ArrayRef = Arc::new(Int64Array::from_iter_values(1_000_000..1_005_000));
/// let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
/// let chunk = encoder.encode_new(&array).unwrap();
/// assert!(chunk.byte_size() < 5_000 * 2);
/// let (late, time) = (Comparison::GreaterOrEqual, chunk.data_type());
/// let late = Predicate::compare(time, late, &1_004_000.into()).unwrap();
/// let (mut found, mut work) = (Selection::default(), Work::default());
/// chunk.compare(&late, &Selection::all(5_000), &mut found, &mut work);
/// assert_eq!(found.count(), 1_000);
/// ```
// In the order in which tests look at them: a chunk that its ends rule out is read in one or two
// cache lines, one that zones pass over in four or five.
#[derive(Clone)]
#[repr(C)]
pub struct Chunk {
    pub(crate) stats: Stats,
    pub(crate) rows: usize,
    pub(crate) nulls: usize,
    pub(crate) codec: &'static dyn Codec,
    pub(crate) physical: Physical,
    pub(crate) body: Body,
    pub(crate) data_type: DataType,
    pub(crate) validity: Bitmap,
    /// What the chooser weighed, cheapest first.
    pub(crate) candidates: Vec<Candidate>,
}

impl Default for Chunk {
    fn default() -> Self {
        Chunk {
            stats: Stats::default(),
            rows: 0,
            nulls: 0,
            codec: registry::fallback(),
            physical: Physical::Integer {
                bytes: 8,
                signed: true,
            },
            body: Body::default(),
            data_type: DataType::Int64,
            validity: Bitmap::default(),
            candidates: Vec::new(),
        }
    }
}

impl Chunk {
    /// Becomes `input` under the first codec of `scheme`, which must accept it; memory is reused.
    ///
    /// # Errors
    /// What [`Codec::encode`] says.
    pub fn encode(
        &mut self,
        scheme: &Scheme,
        input: &Input<'_>,
        work: &mut EncodeWork,
    ) -> Result<()> {
        let stage = scheme.first();
        let codec = stage.map_or_else(registry::fallback, |stage| stage.codec);
        debug_assert!(codec.accepts(input));
        work.begin(codec.id());
        work.parameter = stage.and_then(|stage| stage.parameter);
        work.rest = scheme.rest();
        self.data_type.clone_from(input.data_type);
        self.physical = input.physical;
        self.rows = input.rows();
        self.codec = codec;
        self.stats = Stats::default();
        self.candidates.clear();
        self.body.clear();
        match input.validity {
            Some(validity) => {
                self.nulls = self.rows - validity.count();
                self.validity.copy_words(validity.words(), self.rows);
            }
            None => self.nulls = 0,
        }
        if self.nulls == 0 {
            self.validity.clear();
        }
        codec.encode(input, self, work)?;
        if !self.stats.known {
            self.stats = Stats::of(input);
        }
        self.body.zones = Zones::of(self);
        Ok(())
    }

    /// Becomes a chunk of `rows` rows without sections and nulls; the bytes stay, stale.
    pub(crate) fn begin(
        &mut self,
        codec: &'static dyn Codec,
        data_type: &DataType,
        physical: Physical,
        rows: usize,
    ) {
        self.data_type.clone_from(data_type);
        self.physical = physical;
        self.rows = rows;
        self.codec = codec;
        self.stats = Stats::default();
        self.candidates.clear();
        self.nulls = 0;
        self.validity.clear();
        self.body.retire();
    }

    /// Logical type.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Physical shape.
    pub fn physical(&self) -> Physical {
        self.physical
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of nulls.
    pub fn nulls(&self) -> usize {
        self.nulls
    }

    /// Which rows are not null; empty when all are.
    pub fn validity(&self) -> &Bitmap {
        &self.validity
    }

    /// Smallest and largest value.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The codec in use.
    pub fn codec(&self) -> &'static dyn Codec {
        self.codec
    }

    /// What the chooser weighed, cheapest first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The codec's name, with the codecs inside where it composes (`dictionary(plain)`).
    pub fn codec_label(&self) -> String {
        let inner: Vec<String> = self.inner().map(Chunk::codec_label).collect();
        match inner.is_empty() {
            true => self.codec.name().to_owned(),
            false => format!("{}({})", self.codec.name(), inner.join(", ")),
        }
    }

    /// The chunks inside, for codecs that compose.
    pub fn inner(&self) -> impl Iterator<Item = &Chunk> {
        self.body.inner.iter().flatten().map(Box::as_ref)
    }

    /// Bytes needed to get the values back, validity included, the shared dictionary not.
    pub fn byte_size(&self) -> usize {
        let sections: usize = self.body.sections.iter().map(|(_, length)| length).sum();
        let array = self.body.array.as_ref();
        let array = array.map_or(0, |array| crate::arrow::array_bytes(array.as_ref()));
        let row_bytes = self.rows * self.physical.lane_bytes();
        let rows = self.body.rows.as_ref().map_or(0, |_| row_bytes);
        let inner: usize = self.inner().map(Chunk::byte_size).sum();
        sections + array + rows + inner + size_of_val(self.validity.words())
    }

    /// Bytes as Arrow lays the values out, text as codes of 32 bits; what does not lie in lanes as
    /// it is encoded.
    pub fn raw_byte_size(&self) -> usize {
        let validity = match self.nulls() {
            0 => 0,
            _ => self.rows.div_ceil(8),
        };
        let lane = match self.codes() {
            Some(_) => size_of::<i32>(),
            None => self.physical.lane_bytes(),
        };
        match lane {
            0 => self.byte_size(),
            _ if self.data_type == DataType::Boolean => self.rows.div_ceil(8) + validity,
            lane => self.rows * lane + validity,
        }
    }

    /// [`Chunk::byte_size`] per row.
    pub fn bytes_per_row(&self) -> f64 {
        self.byte_size() as f64 / self.rows.max(1) as f64
    }

    /// The dictionary behind text codes.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.body.dictionary.as_ref()
    }

    /// Selects the rows of `within` where the value is not null and passes `predicate`.
    ///
    /// # Cost
    /// Nothing per value when statistics decide; else what the codec takes.
    pub fn compare(
        &self,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        let coverage = match self.stats.known && !work.decode_first {
            true if self.nulls < self.rows => predicate.coverage(self.stats.min, self.stats.max),
            true => Coverage::None,
            false => Coverage::Some,
        };
        match coverage {
            Coverage::None => {
                work.tally.skipped += self.rows as u64;
                out.set_none(self.rows);
                return;
            }
            Coverage::All => {
                work.tally.skipped += self.rows as u64;
                out.copy_from(within);
            }
            Coverage::Some if within.shape() == Shape::None => out.set_none(self.rows),
            Coverage::Some if work.decode_first => {
                compare_decoded(self.codec, self, predicate, within, out, work);
            }
            Coverage::Some if self.zones_rule_out(predicate) => {
                work.tally.skipped += self.rows as u64;
                out.set_none(self.rows);
            }
            Coverage::Some => self.codec.compare(self, predicate, within, out, work),
        }
        if self.nulls > 0 {
            out.retain_words(self.validity.words());
        }
    }

    /// Whether no block holds a value that passes, as far as zones tell.
    fn zones_rule_out(&self, predicate: &Predicate) -> bool {
        let Predicate::Keys(ranges) = predicate else {
            return false;
        };
        let empty = |range: &KeyRange| self.body.zones.test(*range).is_empty();
        ranges.iter().all(empty)
    }

    /// Folds the values of `within` that are not null into `out`.
    pub fn fold(&self, asked: Asked, within: &Selection, out: &mut Fold, work: &mut Work) {
        if self.nulls == 0 {
            return self.fold_valid(asked, within, out, work);
        }
        let mut valid = std::mem::take(&mut work.selection);
        valid.copy_from(within);
        valid.retain_words(self.validity.words());
        self.fold_valid(asked, &valid, out, work);
        work.selection = valid;
    }

    fn fold_valid(&self, asked: Asked, within: &Selection, out: &mut Fold, work: &mut Work) {
        if within.shape() == Shape::None {
            return;
        }
        if work.decode_first {
            return fold_decoded(self.codec, self, asked, within, out, work);
        }
        let mut asked = asked;
        if asked.ends && within.shape() == Shape::All && self.stats.known && self.rows > 0 {
            out.add_end(i128::from(self.stats.min));
            out.add_end(i128::from(self.stats.max));
            asked.ends = false;
        }
        if asked == Asked::default() {
            let count = within.count() as u64;
            work.tally.skipped += count;
            out.count += count;
            return;
        }
        self.codec.fold(self, asked, within, out, work);
    }

    /// Appends the values of the rows of `within`, nulls marked, to a reset `out`.
    pub fn gather(&self, within: &Selection, out: &mut Values, work: &mut Work) {
        out.reset(self.physical);
        match within.shape() {
            Shape::None => {}
            Shape::All => self.codec.decode(self, 0..self.rows, out),
            Shape::Rows if work.decode_first => {
                gather_decoded(self.codec, self, within.list(), out, work);
            }
            Shape::Rows => self.codec.gather(self, within.list(), out, work),
            Shape::Bits => {
                let mut list = std::mem::take(&mut work.list);
                list.clear();
                (crate::kernels::kernels().bitmap.to_rows)(within.words(), 0, &mut list);
                self.codec.gather(self, &list, out, work);
                work.list = list;
            }
        }
        work.tally.gathered += out.len() as u64;
        if self.nulls > 0 {
            self.gather_validity(within, out);
        }
    }

    fn gather_validity(&self, within: &Selection, out: &mut Values) {
        if within.shape() == Shape::All {
            out.validity.copy_words(self.validity.words(), self.rows);
            return;
        }
        out.validity.fill(out.len(), true);
        let mut index = 0;
        within.for_each(|row| {
            out.validity.set(index, self.validity.get(row));
            index += 1;
        });
    }

    /// The chunk as codes and table, if that is how it lies.
    pub fn codes(&self) -> Option<Codes<'_>> {
        self.codec.codes(self)
    }

    /// An Arrow array of the selected rows; zero-copy where the codec kept one.
    ///
    /// # Errors
    /// `Corrupt` when text is not UTF-8.
    pub fn to_arrow(&self, within: &Selection, work: &mut Work) -> Result<ArrayRef> {
        if let (Some(array), Shape::All) = (&self.body.array, within.shape()) {
            return Ok(Arc::clone(array));
        }
        let mut values = Values::default();
        self.gather(within, &mut values, work);
        values.into_array(&self.data_type)
    }
}

impl std::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunk")
            .field("data_type", &self.data_type)
            .field("rows", &self.rows)
            .field("nulls", &self.nulls)
            .field("codec", &self.codec.name())
            .field("bytes", &self.byte_size())
            .finish()
    }
}
