//! Values replaced by a representative of their class.
//!
//! The representative is the first value of its class, or the last of the class below all cuts, so
//! that it is a value of the column's type and every cut decides about it as about the others.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int32Array, StringArray,
    make_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer};
use arrow_schema::DataType;
use tersecades_columnar::block::BLOCK_ROWS;
use tersecades_columnar::cut::CutPoints;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::input::{Input, Lanes};
use tersecades_columnar::stats::Stats;
use tersecades_columnar::types::{Physical, float_key, float_of, logical_type};
use tersecades_columnar::values::float_of_bits;

use super::need::Classes;

/// Most cuts that every value is compared with; among more the class is searched.
const COMPARED_MAX: usize = 8;

/// Replaces the values of a column by the representatives of their classes.
#[derive(Debug)]
pub struct Reducer {
    data_type: DataType,
    physical: Physical,
    classes: Classes,
    /// Representatives of text, in order of their classes.
    texts: Option<ArrayRef>,
}

/// Keys that share a class, and the one they are replaced by.
#[derive(Debug, Clone, Copy)]
struct Class {
    low: u64,
    high: u64,
    representative: u64,
}

/// Values looked at together.
const RUN_ROWS: usize = BLOCK_ROWS;

/// Bits of a value, computed with at its own width.
trait Lane: ArrowNativeType + Ord + std::ops::BitXor<Output = Self> {
    fn bits(self) -> u64;
    fn of(bits: u64) -> Self;
    fn all(lanes: &[Self]) -> Lanes<'_>;
}

macro_rules! lane {
    ($($lane:ty, $lanes:ident);*) => {$(
        impl Lane for $lane {
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn of(bits: u64) -> Self {
                bits as $lane
            }

            fn all(lanes: &[Self]) -> Lanes<'_> {
                Lanes::$lanes(lanes)
            }
        }
    )*};
}

lane!(u8, U8; u16, U16; u32, U32; u64, U64);

/// The least and the largest key of `lanes`; `None` where there is none, or no order of keys.
fn ends_of(lanes: Lanes<'_>, data_type: &DataType) -> Option<(u64, u64)> {
    let input = Input {
        data_type,
        physical: Physical::of(data_type).ok()?,
        lanes,
        validity: None,
        array: None,
    };
    let ends = Stats::of(&input);
    ends.known.then_some((ends.min, ends.max))
}

/// The lane in `found` of the class between `points` that each of `lanes` lies in.
///
/// # Cost
/// A comparison and a choice for each point, for as many values at once as a register holds.
fn compare_all<T: Lane>(lanes: &[T], flip: T, points: &[u64], found: &[u64]) -> Buffer {
    let mut reduced = Vec::with_capacity(lanes.len());
    for part in lanes.chunks(RUN_ROWS) {
        let start = reduced.len();
        reduced.resize(start + part.len(), T::of(found[0]));
        for (point, found) in points.iter().zip(&found[1..]) {
            let (point, found) = (T::of(*point), T::of(*found));
            for (reduced, lane) in reduced[start..].iter_mut().zip(part) {
                *reduced = if point <= *lane ^ flip {
                    found
                } else {
                    *reduced
                };
            }
        }
    }
    Buffer::from_vec(reduced)
}

impl Reducer {
    /// For a column of `data_type`.
    ///
    /// # Errors
    /// `Unsupported` for types that cannot be encoded and for text constants that are no text.
    pub fn new(data_type: &DataType, classes: &Classes) -> Result<Self> {
        let data_type = logical_type(data_type);
        let physical = Physical::of(&data_type)?;
        let texts = match physical {
            Physical::Text => Some(representatives(&classes.points, &data_type)?),
            _ => None,
        };
        Ok(Reducer {
            data_type,
            physical,
            classes: classes.clone(),
            texts,
        })
    }

    /// The representatives of the values of `array`; nulls stay null.
    ///
    /// # Errors
    /// `SchemaMismatch` when the array is of another type.
    ///
    /// # Cost
    /// A comparison for each value like the one before it, a search among the cuts for others.
    pub fn reduce(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if logical_type(array.data_type()) != self.data_type {
            let (got, expected) = (array.data_type(), &self.data_type);
            let message = format!("expected values of {expected}, got {got}");
            return Err(Error::schema(message));
        }
        if let Some(texts) = &self.texts {
            return self.reduce_text(array, texts);
        }
        if self.data_type == DataType::Boolean {
            let unset = BooleanBuffer::new_unset(array.len());
            return Ok(Arc::new(BooleanArray::new(unset, array.logical_nulls())));
        }
        let plain = match array.data_type() {
            DataType::Dictionary(..) => arrow_cast::cast(array, &self.data_type)?,
            _ => Arc::clone(array),
        };
        let lanes = tersecades_columnar::arrow::lanes(plain.as_ref());
        let lanes = lanes.ok_or_else(|| Error::internal("a column to reduce has lanes"))?;
        let buffer = match lanes {
            Lanes::U8(lanes) => self.lanes(lanes),
            Lanes::U16(lanes) => self.lanes(lanes),
            Lanes::U32(lanes) => self.lanes(lanes),
            Lanes::U64(lanes) => self.lanes(lanes),
            Lanes::Wide(lanes) => Buffer::from_vec(self.wide(lanes)),
            Lanes::Text { .. } | Lanes::Codes { .. } => {
                return Err(Error::internal("text has representatives of its own"));
            }
        };
        let data = plain.to_data().into_builder();
        let data = data
            .offset(0)
            .buffers(vec![buffer])
            .nulls(plain.nulls().cloned());
        Ok(make_array(data.build()?))
    }

    fn lanes<T: Lane>(&self, lanes: &[T]) -> Buffer {
        if let Some((points, found)) = self.compared() {
            return match self.physical {
                Physical::Float { .. } => {
                    let bits = |lane: &T| T::of(found[self.below(points, lane.bits())]);
                    Buffer::from_vec(lanes.iter().map(bits).collect::<Vec<T>>())
                }
                physical => compare_all(lanes, T::of(physical.flip()), points, &found),
            };
        }
        let mut reduced = Vec::with_capacity(lanes.len());
        let mut class = Class {
            low: 1,
            high: 0,
            representative: 0,
        };
        for part in lanes.chunks(RUN_ROWS) {
            // Values in any order but of one class, as times are, are not looked at one by one.
            let ends = match self.physical {
                Physical::Float { .. } => None,
                _ => ends_of(T::all(part), &self.data_type),
            };
            if let Some((low, high)) = ends {
                if low < class.low || low > class.high {
                    class = self.class(low);
                }
                if high <= class.high {
                    reduced.resize(reduced.len() + part.len(), T::of(self.bits(class)));
                    continue;
                }
            }
            reduced.extend(part.iter().map(|lane| {
                let key = self.key(lane.bits());
                if key < class.low || key > class.high {
                    class = self.class(key);
                }
                T::of(self.bits(class))
            }));
        }
        Buffer::from_vec(reduced)
    }

    /// The cuts, where they are few and no times, and the lane of each class between them.
    fn compared(&self) -> Option<(&[u64], [u64; COMPARED_MAX + 1])> {
        let CutPoints::Keys(points) = &self.classes.points else {
            return None;
        };
        if points.len() > COMPARED_MAX || !self.classes.times.is_empty() {
            return None;
        }
        let mut found = [0; COMPARED_MAX + 1];
        let before = points.first().map_or(0, |first| first.saturating_sub(1));
        let keys = std::iter::once(before).chain(points.iter().copied());
        for (found, key) in found.iter_mut().zip(keys) {
            *found = self.bits(self.class(key));
        }
        Some((points, found))
    }

    /// The number of cuts that the value with these bits is not below.
    ///
    /// # Cost
    /// A comparison for each cut and no branch: values on both sides of one come in any order.
    #[inline]
    fn below(&self, points: &[u64], bits: u64) -> usize {
        let key = self.key(bits);
        match points {
            [one] => usize::from(*one <= key),
            [one, two] => usize::from(*one <= key) + usize::from(*two <= key),
            points => points.iter().map(|point| usize::from(*point <= key)).sum(),
        }
    }

    #[inline]
    fn key(&self, bits: u64) -> u64 {
        match self.physical {
            Physical::Float { bytes } => float_key(float_of_bits(bits, bytes)),
            physical => bits ^ physical.flip(),
        }
    }

    fn class(&self, key: u64) -> Class {
        let points: &[u64] = match &self.classes.points {
            CutPoints::Keys(points) => points,
            CutPoints::Wide(_) | CutPoints::Text(_) => &[],
        };
        let next = points.partition_point(|point| *point <= key);
        let mut low = next.checked_sub(1).map(|index| points[index]);
        let mut high = points.get(next).map(|point| point - 1);
        if let Physical::Integer { .. } = self.physical {
            let time = i64::try_from(self.physical.value_of(key)).unwrap_or(i64::MAX);
            let (start, end) = self.classes.times.class(time);
            let least = self.physical.value_of(0);
            let key_of = |time: i128| self.physical.key_of(time.max(least));
            low = low.max(start.and_then(key_of));
            let last = end.and_then(|end| key_of(end - 1));
            high = match (high, last) {
                (Some(high), Some(last)) => Some(high.min(last)),
                (high, last) => high.or(last),
            };
        }
        // No class but that of NaN has it, whose keys go up to the greatest.
        let (middle, last) = match self.physical {
            Physical::Float { .. } => (float_key(0.0), float_key(f64::INFINITY)),
            physical => (physical.flip(), u64::MAX),
        };
        Class {
            low: low.unwrap_or(0),
            high: high.unwrap_or(u64::MAX),
            representative: low.or(high.map(|high| high.min(last))).unwrap_or(middle),
        }
    }

    /// The lane of a class's representative.
    fn bits(&self, class: Class) -> u64 {
        let key = class.representative;
        match self.physical {
            Physical::Float { bytes: 4 } => {
                let near = float_of(key) as f32;
                let found = float_key(f64::from(near));
                let near = match (found < class.low, found > class.high) {
                    (true, _) => near.next_up(),
                    (_, true) => near.next_down(),
                    _ => near,
                };
                u64::from(near.to_bits())
            }
            // The key below zero's is that of the negative zero, which is zero.
            Physical::Float { .. } if float_key(float_of(key)) > class.high => {
                float_of(key).next_down().to_bits()
            }
            Physical::Float { .. } => float_of(key).to_bits(),
            physical => key ^ physical.flip(),
        }
    }

    fn wide(&self, lanes: &[i128]) -> Vec<i128> {
        let points: &[i128] = match &self.classes.points {
            CutPoints::Wide(points) => points,
            CutPoints::Keys(_) | CutPoints::Text(_) => &[],
        };
        let reduced = lanes.iter().map(|value| {
            let next = points.partition_point(|point| point <= value);
            match (next.checked_sub(1), points.first()) {
                (Some(index), _) => points[index],
                (None, Some(first)) => first - 1,
                (None, None) => 0,
            }
        });
        reduced.collect()
    }

    fn reduce_text(&self, array: &ArrayRef, texts: &ArrayRef) -> Result<ArrayRef> {
        let nulls = array.logical_nulls();
        let keys: Vec<i32> = match array.as_any_dictionary_opt() {
            Some(dictionary) => {
                let classes = self.text_classes(dictionary.values())?;
                let keys = dictionary.normalized_keys().into_iter();
                keys.map(|key| classes.get(key).copied().unwrap_or(0))
                    .collect()
            }
            None => self.text_classes(array)?,
        };
        let keys = Int32Array::new(keys.into(), nulls);
        let reduced = DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(texts))?;
        Ok(Arc::new(reduced))
    }

    /// The index of each text's class.
    fn text_classes(&self, texts: &ArrayRef) -> Result<Vec<i32>> {
        let texts = match texts.data_type() == &self.data_type {
            true => Arc::clone(texts),
            false => arrow_cast::cast(texts, &self.data_type)?,
        };
        let Some(Lanes::Text { offsets, bytes }) =
            tersecades_columnar::arrow::lanes(texts.as_ref())
        else {
            return Err(Error::internal("text arrays have text lanes"));
        };
        let points: &[Vec<u8>] = match &self.classes.points {
            CutPoints::Text(points) => points,
            CutPoints::Keys(_) | CutPoints::Wide(_) => &[],
        };
        let class = |ends: &[i32]| {
            let text = &bytes[ends[0] as usize..ends[1] as usize];
            points.partition_point(|point| point.as_slice() <= text) as i32
        };
        Ok(offsets.windows(2).map(class).collect())
    }
}

/// The empty text for the class below all cuts, then the first text of each other class.
fn representatives(points: &CutPoints, data_type: &DataType) -> Result<ArrayRef> {
    let points: &[Vec<u8>] = match points {
        CutPoints::Text(points) => points,
        CutPoints::Keys(_) | CutPoints::Wide(_) => &[],
    };
    let all = std::iter::once(&b""[..]).chain(points.iter().map(Vec::as_slice));
    if *data_type == DataType::Binary {
        return Ok(Arc::new(BinaryArray::from_iter_values(all)));
    }
    let texts: std::result::Result<Vec<&str>, _> = all.map(std::str::from_utf8).collect();
    let texts = texts.map_err(|_| Error::unsupported("text compared with bytes that are none"))?;
    Ok(Arc::new(StringArray::from_iter_values(texts)))
}

/// The newest time of a column of times or integers; `None` when no row has one.
pub(super) fn newest(array: &dyn Array) -> Option<i64> {
    let physical = Physical::of(array.data_type()).ok()?;
    let lanes = tersecades_columnar::arrow::lanes(array)?;
    let most = match (array.nulls(), lanes) {
        (Some(nulls), lanes) => {
            let key = |row: usize| lanes.bits(row) ^ physical.flip();
            nulls.valid_indices().map(key).max()
        }
        (None, lanes) => ends_of(lanes, array.data_type()).map(|(_, most)| most),
    };
    i64::try_from(physical.value_of(most?)).ok()
}
