//! `map` and `add`: integer arithmetic that makes a new chunk.
//!
//! Results are 64-bit signed integers, as the engine's arithmetic has them; a result outside is an
//! error, never a wrap. The ends of the operands decide that for most chunks, so that codecs need
//! not look at values: whoever overrides these primitives may take every valid result to fit.

use arrow_schema::DataType;

use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::{Input, Lanes};
use crate::selection::Selection;
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;

/// The shape of results.
pub(crate) const RESULT: Physical = Physical::Integer {
    bytes: 8,
    signed: true,
};

/// Arithmetic with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Adds it.
    Add(i64),
    /// Multiplies by it.
    Multiply(i64),
}

impl Change {
    /// The result, exactly; operands have at most 65 bits.
    pub fn apply(self, value: i128) -> i128 {
        match self {
            Change::Add(constant) => value + i128::from(constant),
            Change::Multiply(constant) => value * i128::from(constant),
        }
    }

    /// The key of the result for a key of `physical`; wraps where there is no result.
    pub(crate) fn key(self, physical: Physical, key: u64) -> u64 {
        key_of_result(self.apply(physical.value_of(key)))
    }

    /// The ends of results.
    fn ends(self, (min, max): (i128, i128)) -> (i128, i128) {
        let (a, b) = (self.apply(min), self.apply(max));
        (a.min(b), a.max(b))
    }
}

/// The low 64 bits of a result, as a key.
#[inline]
fn key_of_result(value: i128) -> u64 {
    value as u64 ^ RESULT.flip()
}

fn fits((min, max): (i128, i128)) -> bool {
    i64::try_from(min).is_ok() && i64::try_from(max).is_ok()
}

fn overflow() -> Error {
    Error::limit("a result leaves the range of 64-bit integers")
}

/// The default of [`Codec::map`]: decode, compute, encode under the codec that suits the results.
///
/// # Errors
/// What encoding says.
pub fn map_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    change: Change,
    out: &mut Chunk,
    work: &mut Work,
    encode: &mut EncodeWork,
) -> Result<()> {
    let mut values = std::mem::take(&mut work.values);
    values.reset(chunk.physical());
    codec.decode(chunk, 0..chunk.rows(), &mut values);
    work.tally.decoded += values.len() as u64;
    for key in &mut values.keys {
        *key = change.key(chunk.physical, *key) ^ RESULT.flip();
    }
    let encoded = out.encode_integers(&values, chunk, encode);
    work.values = values;
    encoded
}

/// The default of [`Codec::add`]: decode both, compute, encode under the codec that suits the sums.
///
/// # Errors
/// `LimitExceeded` where a sum leaves 64 bits, and what encoding says.
pub fn add_decoded(
    chunk: &Chunk,
    other: &Chunk,
    out: &mut Chunk,
    work: &mut Work,
    encode: &mut EncodeWork,
) -> Result<()> {
    let mut values = std::mem::take(&mut work.values);
    let mut others = std::mem::take(&mut work.others);
    for (side, values) in [(chunk, &mut values), (other, &mut others)] {
        values.reset(side.physical());
        side.codec.decode(side, 0..side.rows(), values);
        work.tally.decoded += values.len() as u64;
    }
    let valid = |row| [chunk, other].iter().all(|side| side.is_valid(row));
    let mut outside = false;
    for (row, (key, other_key)) in values.keys.iter_mut().zip(&others.keys).enumerate() {
        let sum = chunk.physical.value_of(*key) + other.physical.value_of(*other_key);
        outside |= i64::try_from(sum).is_err() && valid(row);
        *key = sum as u64;
    }
    let encoded = match outside {
        true => Err(overflow()),
        false => {
            out.join_validity(chunk, other);
            let joined = std::mem::take(&mut out.validity);
            out.encode_lanes(&values.keys, Some(&joined), encode)
        }
    };
    (work.values, work.others) = (values, others);
    encoded
}

impl Chunk {
    /// Whether row `row` is not null.
    fn is_valid(&self, row: usize) -> bool {
        self.nulls == 0 || self.validity.get(row)
    }

    /// Becomes the integers whose bits are in `values`, null where `source` is.
    fn encode_integers(
        &mut self,
        values: &Values,
        source: &Chunk,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        let validity = (source.nulls > 0).then_some(&source.validity);
        self.encode_lanes(&values.keys, validity, encode)
    }

    /// Becomes the integers whose bits are in `lanes`, under the codec that suits them.
    fn encode_lanes(
        &mut self,
        lanes: &[u64],
        validity: Option<&crate::bitmap::Bitmap>,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        self.encode_chosen(
            &Input {
                data_type: &DataType::Int64,
                physical: RESULT,
                lanes: Lanes::U64(lanes),
                validity: validity.filter(|validity| !validity.is_empty()),
                array: None,
            },
            encode,
        )
    }

    /// Becomes an empty chunk of results under `codec`, as long and as null as `source`.
    pub(crate) fn begin_results(&mut self, codec: &'static dyn Codec, source: &Chunk) {
        self.begin(codec, &DataType::Int64, RESULT, source.rows);
        self.body.bytes.clear();
        self.nulls = source.nulls;
        self.validity.clone_from(&source.validity);
    }

    /// Becomes null where `a` or `b` is.
    pub(crate) fn join_validity(&mut self, a: &Chunk, b: &Chunk) {
        let (first, second) = if a.nulls > 0 { (a, b) } else { (b, a) };
        self.validity.clone_from(&first.validity);
        self.nulls = first.nulls;
        if second.nulls > 0 {
            let and = crate::kernels::kernels().bitmap.and;
            and(self.validity.words_mut(), second.validity.words());
            self.nulls = a.rows - self.validity.count();
        }
    }

    /// The smallest and largest value, if there is one.
    ///
    /// # Errors
    /// `SchemaMismatch` for values that are no integers.
    fn integer_ends(&self, work: &mut Work) -> Result<Option<(i128, i128)>> {
        if !matches!(self.physical, Physical::Integer { .. }) {
            let message = format!("integer arithmetic on values of {}", self.data_type);
            return Err(Error::schema(message));
        }
        let mut fold = Fold::default();
        let ends = Asked {
            ends: true,
            ..Asked::default()
        };
        let all = Selection::all(self.rows);
        self.fold(ends, &all, &mut fold, work);
        let value = |key: i128| self.physical.value_of(key as u64);
        Ok((fold.count > 0).then(|| (value(fold.min), value(fold.max))))
    }

    /// Whether [`Chunk::map`] works on the encoded form.
    pub fn maps(&self, change: Change) -> bool {
        self.codec.maps(self, change)
    }

    /// Fills `out` with `change` made to every value.
    ///
    /// # Errors
    /// `SchemaMismatch` for values that are no integers, `LimitExceeded` when one of them or a
    /// result leaves the range of 64-bit signed integers.
    pub fn map(
        &self,
        change: Change,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        let ends = self.integer_ends(work)?;
        let results = ends.map(|ends| change.ends(ends));
        if !ends.is_none_or(fits) || !results.is_none_or(fits) {
            return Err(overflow());
        }
        self.codec.map(self, change, out, work, encode)?;
        out.stats = match results {
            Some((min, max)) => Stats::from_ends(key_of_result(min), key_of_result(max)),
            None => Stats::default(),
        };
        Ok(())
    }

    /// Whether [`Chunk::add`] works on the encoded form.
    pub fn adds(&self, other: &Chunk) -> bool {
        self.codec.adds(self, other)
    }

    /// Fills `out` with the sum of this chunk's and the other's value of each row.
    ///
    /// The ends of sums stay open where the sums were not looked at; [`Chunk::settle`] finds them.
    ///
    /// # Errors
    /// `SchemaMismatch` for values that are no integers, `InvalidArgument` when the rows do not
    /// match, `LimitExceeded` when a value or a sum leaves the range of 64-bit signed integers.
    pub fn add(
        &self,
        other: &Chunk,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        let (a, b) = (self.integer_ends(work)?, other.integer_ends(work)?);
        if self.rows != other.rows {
            return Err(Error::invalid(format!(
                "{} rows cannot be added to {}",
                self.rows, other.rows
            )));
        }
        if !a.is_none_or(fits) || !b.is_none_or(fits) {
            return Err(overflow());
        }
        let sums = a.zip(b).map(|(a, b)| (a.0 + b.0, a.1 + b.1));
        match sums.is_none_or(fits) {
            true => self.codec.add(self, other, out, work, encode),
            false => add_decoded(self, other, out, work, encode),
        }
    }
}
