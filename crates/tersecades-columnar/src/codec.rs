//! The narrow waist: what a codec must give, and what it may do better than decoding.
//!
//! A codec must name itself and its sections, accept types, `estimate`, `encode`, `validate` and
//! `decode`. Every other primitive has a default that decodes and computes, which is also the
//! oracle its overrides are tested against. Operators call the primitives through [`Chunk`] and
//! never name a codec; [`Tally`] counts which way each value went.

use std::fmt::Debug;
use std::ops::Range;

use crate::block::BLOCK_ROWS;
use crate::choose::{Estimate, Place, Sample};
use crate::chunk::{Chunk, INNER_MAX};
use crate::dictionary::Dictionary;
use crate::distinct::Distinct;
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::goal::{Goal, Tier};
use crate::habit::Habit;
use crate::input::Input;
use crate::predicate::{KeyRange, Predicate};
use crate::primitive::arithmetic::{Change, add_decoded, map_decoded};
use crate::primitive::byte::bytes_decoded;
use crate::primitive::fold_by::{GroupFold, fold_by_decoded};
use crate::primitive::fold_where::RangeFold;
use crate::primitive::pair::Bands;
use crate::primitive::rank::rank_in_place;
use crate::primitive::repeat::{Repeats, repeats_counted};
use crate::primitive::search::search_decoded;
use crate::primitive::slice::slice_decoded;
use crate::scheme::{STAGES_MAX, Scheme};
use crate::selection::Selection;
use crate::types::Physical;
use crate::values::Values;

pub(crate) use crate::primitive::decoded::mask_keys;
pub use crate::primitive::decoded::{compare_decoded, fold_decoded, fold_values, gather_decoded};

/// How many values each way of answering took; the "ran encoded" figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Values answered for by statistics, bases or runs without being looked at.
    pub skipped: u64,
    /// Values computed on in encoded form.
    pub direct: u64,
    /// Values decoded because no encoded form of the primitive exists.
    pub decoded: u64,
    /// Values fetched because the answer needed them.
    pub gathered: u64,
}

impl Tally {
    /// Adds another tally.
    pub fn merge(&mut self, other: Tally) {
        self.skipped += other.skipped;
        self.direct += other.direct;
        self.decoded += other.decoded;
        self.gathered += other.gathered;
    }
}

/// Reused memory and counters that every primitive gets.
#[derive(Debug, Default)]
pub struct Work {
    /// What happened.
    pub tally: Tally,
    /// Whether `compare`, `fold` and `gather` decode whole units and pass over statistics: to see
    /// what working on encoded values is worth.
    pub decode_first: bool,
    /// Decoded values of a block.
    pub(crate) values: Values,
    /// Decoded values of a second column, or a single value.
    pub(crate) others: Values,
    /// A number for each code of a dictionary.
    pub(crate) totals: Vec<u64>,
    /// Row list.
    pub(crate) list: Vec<u32>,
    /// A selection narrowed by validity.
    pub(crate) selection: Selection,
    /// The rows that pass the test of a fold.
    pub(crate) passing: Selection,
    /// Bytes, one or two a block.
    pub(crate) marks: Vec<u8>,
    /// Codes of a dictionary and how often each came.
    pub(crate) repeats: Repeats,
    /// Ranges of a comparison, in the keys of the codec inside.
    pub(crate) ranges: Vec<KeyRange>,
    /// Ranges of multiples that a comparison of floats becomes.
    pub(crate) multiples: Vec<KeyRange>,
    /// Rows whose values are kept apart, and the others.
    pub(crate) patched: Selection,
    pub(crate) unpatched: Selection,
}

/// What encoders are told, and their reused memory.
#[derive(Debug, Default)]
pub struct EncodeWork {
    /// What the column is encoded for.
    pub goal: Goal,
    /// Whether results of arithmetic are written past the caches, for results that are not read
    /// soon.
    pub past_caches: bool,
    /// The number that the scheme sets the codec by.
    pub(crate) parameter: Option<f64>,
    /// What the scheme says of the codecs inside.
    pub(crate) rest: Scheme,
    /// Codecs around this one.
    pub(crate) depth: usize,
    /// Wire id of the codec directly around this one.
    around: Option<u8>,
    /// What was chosen so far where the scheme leaves the choice open.
    pub(crate) habit: Habit,
    /// The codec used last, which the choices inside hang on.
    last: Option<u8>,
    /// Memory of the codecs inside.
    nested: [Option<Box<EncodeWork>>; INNER_MAX],
    pub(crate) patch_starts: Vec<u32>,
    pub(crate) patch_rows: Vec<u16>,
    pub(crate) patch_keys: Vec<u64>,
    pub(crate) keys: Vec<u64>,
    pub(crate) ends: Vec<u32>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) shorts: Vec<u16>,
    pub(crate) distinct: Distinct,
}

impl EncodeWork {
    /// Whether readers accept a chunk inside the one that is encoded.
    pub(crate) fn may_nest(&self) -> bool {
        self.depth + 1 < STAGES_MAX
    }

    /// Where the codec in use stands.
    pub(crate) fn place(&self) -> Place {
        Place {
            depth: self.depth,
            around: self.around,
        }
    }

    /// Aims at `goal`; what was chosen for another is forgotten.
    pub(crate) fn aim(&mut self, goal: Goal) {
        self.goal = goal;
        self.habit.forget();
        self.forget_inside();
    }

    /// Takes note that the codec with wire id `id` is next.
    pub(crate) fn begin(&mut self, id: u8) {
        if self.last.replace(id) != Some(id) {
            self.forget_inside();
        }
    }

    fn forget_inside(&mut self) {
        let inside = self.nested.iter_mut().flatten();
        inside.for_each(|nested| nested.habit.forget());
    }

    /// Encodes `input` as chunk `index` inside another: by the scheme where it says how, else by
    /// choice. The memory of `spare` is reused.
    ///
    /// The chunk keeps no validity: its holes belong to the chunk around it.
    ///
    /// # Errors
    /// What [`Codec::encode`] says.
    pub(crate) fn encode_inner(
        &mut self,
        index: usize,
        input: &Input<'_>,
        spare: Option<Box<Chunk>>,
    ) -> Result<Box<Chunk>> {
        if !self.may_nest() {
            return Err(Error::limit(format!(
                "a cascade has at most {STAGES_MAX} codecs"
            )));
        }
        let mut chunk = spare.unwrap_or_default();
        let nested = self.nested[index].get_or_insert_default();
        nested.goal.clone_from(&self.goal);
        nested.depth = self.depth + 1;
        nested.around = self.last;
        match self.rest.first() {
            Some(stage) if stage.codec.accepts(input) => chunk.encode(&self.rest, input, nested)?,
            _ => chunk.encode_chosen(input, nested)?,
        }
        chunk.validity.clear();
        chunk.nulls = 0;
        Ok(chunk)
    }
}

/// In place of the bytes of an item: those of a lane of the column.
pub const LANE_ITEM: usize = 0;

/// Codes of a chunk's values and the table behind them.
#[derive(Debug, Clone, Copy)]
pub struct Codes<'a> {
    /// The codes, themselves an encoded chunk of unsigned integers.
    pub codes: &'a Chunk,
    /// The table.
    pub dictionary: &'a std::sync::Arc<Dictionary>,
}

/// One way to encode a column's values, and to work on them encoded.
///
/// Selections handed to primitives never contain a null row; the caller ([`Chunk`]) has removed
/// them, and removes them from `compare`'s result.
pub trait Codec: Debug + Send + Sync {
    /// The number that names the codec in encoded bytes, for ever.
    fn id(&self) -> u8;

    /// The name users see.
    fn name(&self) -> &'static str;

    /// One line for docs and `inspect`: layout and use.
    fn summary(&self) -> &'static str;

    /// Where the idea is from: the paper and its section, or the format.
    fn source(&self) -> &'static str;

    /// Whether the codec can encode `input` at all.
    fn accepts(&self, input: &Input<'_>) -> bool;

    /// The warmest tier the codec is meant for.
    fn tier(&self) -> Tier {
        Tier::Hot
    }

    /// Whether values may come back changed; such a codec is used only where it is asked for.
    fn is_lossy(&self) -> bool {
        false
    }

    /// Whether a scheme may set the codec by a number: a level, a scale, a tolerance.
    fn takes_number(&self) -> bool {
        false
    }

    /// How far, at most, a value that comes back is from the one that went in, when the codec is
    /// set by `parameter`; values that it cannot bring so near are kept as they are.
    fn error_bound(&self, _parameter: f64) -> f64 {
        0.0
    }

    /// Most chunks that one of this codec holds inside.
    fn inner_max(&self) -> usize {
        0
    }

    /// Whether one of this codec directly inside another can make sense.
    fn nests_in_itself(&self) -> bool {
        false
    }

    /// Rows that are best decoded together, a multiple of [`BLOCK_ROWS`].
    fn unit_rows(&self) -> usize {
        BLOCK_ROWS
    }

    /// What encoding a column would give, judged from a sample of it.
    fn estimate(&self, sample: &Sample<'_>) -> Estimate;

    /// Encodes `input` into `out`, whose memory is reused.
    ///
    /// # Errors
    /// `LimitExceeded` when the input is larger than the codec's layout can address.
    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()>;

    /// Nanoseconds per row and read that `chunk` takes for values it keeps apart or that are dear
    /// to compute with, which its size does not tell.
    fn apart_ns(&self, _chunk: &Chunk, _goal: &Goal) -> f64 {
        0.0
    }

    /// The sections of a chunk of `physical` values: bytes of an item of each, or [`LANE_ITEM`].
    fn sections(&self, physical: Physical) -> &'static [usize];

    /// Checks everything the primitives rely on, for chunks that come from outside, whose sections
    /// are those of [`Codec::sections`].
    ///
    /// # Errors
    /// `Corrupt`, naming the block, for bytes that no `encode` could have produced.
    fn validate(&self, chunk: &Chunk) -> Result<()>;

    /// Calls `visit` with every block, a key that none of its values is below and one that none is
    /// above; not at all where that would take a look at the values.
    fn block_ends(&self, _chunk: &Chunk, _visit: &mut dyn FnMut(usize, u64, u64)) {}

    /// Appends the values of `rows` to `out`.
    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values);

    /// Writes the keys of a block of integers of one byte; bytes after its rows mean nothing.
    fn decode_bytes(
        &self,
        chunk: &Chunk,
        block: usize,
        out: &mut [u8; BLOCK_ROWS],
        work: &mut Work,
    ) {
        bytes_decoded(self.decoder(), chunk, block, out, work);
    }

    /// Selects the rows of `within` that pass `predicate`.
    fn compare(
        &self,
        chunk: &Chunk,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        compare_decoded(self.decoder(), chunk, predicate, within, out, work);
    }

    /// Folds the values of `within` into `out`.
    fn fold(
        &self,
        chunk: &Chunk,
        asked: Asked,
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        fold_decoded(self.decoder(), chunk, asked, within, out, work);
    }

    /// The fold of the values in the range of `predicate`, of chunks that are tested and folded
    /// block by block for it.
    fn range_fold(&self, _chunk: &Chunk, _predicate: &Predicate) -> Option<RangeFold> {
        None
    }

    /// Appends the values of the listed rows, ascending, to `out`.
    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        gather_decoded(self.decoder(), chunk, rows, out, work);
    }

    /// The rows of `rows` whose key is `key`; values are integers that ascend over `rows`, none of
    /// them null.
    fn search(&self, chunk: &Chunk, key: u64, rows: Range<usize>, work: &mut Work) -> Range<usize> {
        search_decoded(self.decoder(), chunk, key, rows, work)
    }

    /// Asks for what the listed rows need, ahead of fetching them.
    fn prefetch(&self, _chunk: &Chunk, _rows: &[u32]) {}

    /// Writes the values of `within`, each with its number of rows, to `out`, which is empty.
    fn repeats(&self, chunk: &Chunk, within: &Selection, out: &mut Repeats, work: &mut Work) {
        repeats_counted(self.decoder(), chunk, within, out, work);
    }

    /// Appends a number that sorts as the value does for each row of `within` to `out`.
    fn rank(&self, chunk: &Chunk, within: &Selection, out: &mut Vec<u64>, work: &mut Work) {
        rank_in_place(self.decoder(), chunk, within, out, work);
    }

    /// Adds the values of `within` to the groups `ids`, one for each of its rows.
    fn fold_by(
        &self,
        chunk: &Chunk,
        within: &Selection,
        ids: &[u32],
        out: &mut dyn GroupFold,
        work: &mut Work,
    ) {
        fold_by_decoded(self.decoder(), chunk, within, ids, out, work);
    }

    /// Whether [`Codec::map`] works on the encoded form.
    fn maps(&self, _chunk: &Chunk, _change: Change) -> bool {
        false
    }

    /// Fills `out` with `change` made to each integer; every result of a valid row fits `i64`.
    ///
    /// # Errors
    /// What encoding says.
    fn map(
        &self,
        chunk: &Chunk,
        change: Change,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        map_decoded(self.decoder(), chunk, change, out, work, encode)
    }

    /// The chunk as bases, narrow deltas and patches, if that is how its integers lie.
    fn bands<'a>(&self, _chunk: &'a Chunk) -> Option<Bands<'a>> {
        None
    }

    /// Whether [`Codec::add`] works on the encoded form.
    fn adds(&self, _chunk: &Chunk, _other: &Chunk) -> bool {
        false
    }

    /// Fills `out` with the sums of two chunks of as many integers; every sum of two valid rows
    /// fits `i64`.
    ///
    /// # Errors
    /// What encoding says.
    fn add(
        &self,
        chunk: &Chunk,
        other: &Chunk,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        add_decoded(chunk, other, out, work, encode)
    }

    /// Fills `out` with the values of `rows`, which lie inside the chunk; the ends may stay open.
    ///
    /// # Errors
    /// What encoding says.
    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        slice_decoded(self.decoder(), chunk, rows, out, work, encode)
    }

    /// The chunk as codes and table, if that is how it lies.
    fn codes<'a>(&self, _chunk: &'a Chunk) -> Option<Codes<'a>> {
        None
    }

    /// This codec, as the defaults of the primitives need it.
    fn decoder(&self) -> &dyn Codec;
}
