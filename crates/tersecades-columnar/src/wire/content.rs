//! The content of a chunk unit: header and parts, before checksums.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::bitmap::{Bitmap, WORD_ROWS};
use crate::block::{block_count, block_rows};
use crate::chunk::{Body, Chunk, INNER_MAX, SECTIONS_MAX};
use crate::codec::{Codes, LANE_ITEM, Work};
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::Lanes;
use crate::registry;
use crate::rows::Strided;
use crate::scheme::STAGES_MAX;
use crate::selection::Selection;
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;
use crate::zone::Zones;

use super::header::{
    HEADER_BYTES, Header, INNER, PARTS, SECTIONS, TEXT_ENDS, TEXTS, VALIDITY, ZONE,
};
use super::{header, padded, types};

/// Sections of plain text.
const TEXT_SECTIONS: [usize; 2] = [SECTIONS, SECTIONS + 1];

/// Parts on their way out.
struct Parts<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    lengths: [usize; PARTS],
}

impl Parts<'_> {
    /// Appends part `index` as `write` leaves it, and pads.
    fn add(&mut self, index: usize, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        let from = self.out.len();
        write(self.out)?;
        self.lengths[index] = self.out.len() - from;
        let length = padded(self.out.len() - self.start);
        self.out.resize(self.start + length, 0);
        Ok(())
    }

    fn add_bytes(&mut self, index: usize, bytes: &[u8]) -> Result<()> {
        self.add(index, |out| {
            out.extend_from_slice(bytes);
            Ok(())
        })
    }
}

/// Appends header and parts of `chunk`.
pub(super) fn write(chunk: &Chunk, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let (type_bytes, zone) = types::write(&chunk.data_type)?;
    out.resize(start + HEADER_BYTES, 0);
    let mut parts = Parts {
        out,
        start,
        lengths: [0; PARTS],
    };
    parts.add_bytes(ZONE, zone.as_bytes())?;
    parts.add_bytes(VALIDITY, bytemuck::cast_slice(chunk.validity.words()))?;
    write_sections(chunk, &mut parts)?;
    for (index, inner) in chunk.body.inner.iter().enumerate() {
        if let Some(inner) = inner {
            parts.add(INNER + index, |out| write(inner, out))?;
        }
    }
    if let Some(Codes { codes, dictionary }) = chunk.codec.codes(chunk) {
        write_texts(codes, dictionary, &mut parts)?;
    }
    let lengths = parts.lengths;
    header::write(chunk, type_bytes, &lengths, &mut out[start..])
}

/// The codec's sections; an array kept as it came, or a column of rows, is written as the sections
/// it would have had.
fn write_sections(chunk: &Chunk, parts: &mut Parts<'_>) -> Result<()> {
    let lanes = chunk.body.array.as_ref().map(|array| {
        crate::arrow::lanes(array.as_ref())
            .ok_or_else(|| Error::internal("a kept array has no lanes"))
    });
    match lanes.transpose()? {
        None if chunk.body.rows.is_some() => parts.add(SECTIONS, |out| {
            let values = Strided::of(chunk);
            (0..chunk.rows).for_each(|row| out.extend_from_slice(values.value(row)));
            Ok(())
        }),
        None => {
            for index in 0..SECTIONS_MAX {
                parts.add_bytes(SECTIONS + index, chunk.body.section::<u8>(index))?;
            }
            Ok(())
        }
        Some(Lanes::U8(lanes)) => parts.add_bytes(SECTIONS, lanes),
        Some(Lanes::U16(lanes)) => parts.add_bytes(SECTIONS, bytemuck::cast_slice(lanes)),
        Some(Lanes::U32(lanes)) => parts.add_bytes(SECTIONS, bytemuck::cast_slice(lanes)),
        Some(Lanes::U64(lanes)) => parts.add_bytes(SECTIONS, bytemuck::cast_slice(lanes)),
        Some(Lanes::Wide(lanes)) => parts.add_bytes(SECTIONS, bytemuck::cast_slice(lanes)),
        Some(Lanes::Text { offsets, bytes }) => write_plain_text(offsets, bytes, parts),
        Some(Lanes::Codes { .. }) => Err(Error::internal("codes cannot be kept plain")),
    }
}

/// Text and offsets of an array that may be a slice of a larger one.
fn write_plain_text(offsets: &[i32], bytes: &[u8], parts: &mut Parts<'_>) -> Result<()> {
    let (first, last) = (offsets.first().unwrap_or(&0), offsets.last().unwrap_or(&0));
    let [text, ends] = TEXT_SECTIONS;
    parts.add_bytes(text, &bytes[*first as usize..*last as usize])?;
    parts.add(ends, |out| {
        out.extend(offsets.iter().flat_map(|at| (at - first).to_le_bytes()));
        Ok(())
    })
}

/// The texts that `codes` can mean: those up to the largest code.
fn write_texts(codes: &Chunk, dictionary: &Dictionary, parts: &mut Parts<'_>) -> Result<()> {
    let reader = dictionary.read();
    let mut used = 0;
    for_each_block_of_keys(codes, |_, keys| {
        used = keys
            .iter()
            .fold(used, |used, code| used.max(code.saturating_add(1)));
    });
    let used = used.min(reader.len() as u64) as u32;
    parts.add(TEXT_ENDS, |out| {
        let mut end = 0;
        for code in 0..used {
            end += reader.get(code).len() as u32;
            out.extend_from_slice(&end.to_le_bytes());
        }
        Ok(())
    })?;
    parts.add(TEXTS, |out| {
        (0..used).for_each(|code| out.extend_from_slice(reader.get(code)));
        Ok(())
    })
}

/// Calls `visit` with every block and its keys.
fn for_each_block_of_keys(chunk: &Chunk, mut visit: impl FnMut(usize, &[u64])) {
    let mut values = Values::default();
    for block in 0..block_count(chunk.rows) {
        values.reset(chunk.physical);
        chunk
            .codec
            .decode(chunk, block_rows(block, chunk.rows), &mut values);
        visit(block, &values.keys);
    }
}

/// The chunk whose header and parts are `content`, safe to use.
///
/// # Errors
/// `Corrupt` for anything that [`write`] could not have written.
pub(super) fn read(content: &[u8]) -> Result<Chunk> {
    let mut chunk = read_nested(content, 0)?;
    let header = Header::read(content)?;
    let (ends, texts) = (
        header.part(content, TEXT_ENDS)?,
        header.part(content, TEXTS)?,
    );
    if has_texts(&header) {
        chunk.body.dictionary = Some(read_texts(&chunk.data_type, ends, texts)?);
    }
    check(&chunk, None)?;
    find_zones(&mut chunk);
    Ok(chunk)
}

/// Whether texts lie behind the codec's codes.
fn has_texts(header: &Header) -> bool {
    header.codec.id() == registry::text_codes().id()
}

/// Zones of a checked chunk and of the chunks inside.
fn find_zones(chunk: &mut Chunk) {
    chunk.body.zones = Zones::of(chunk);
    let inner = chunk.body.inner.iter_mut().flatten();
    inner.for_each(|inner| find_zones(inner));
}

/// Header, parts and the chunks inside, of which none is safe to use yet.
fn read_nested(content: &[u8], depth: usize) -> Result<Chunk> {
    let header = Header::read(content)?;
    let mut chunk = read_parts(&header, content)?;
    for index in 0..INNER_MAX {
        let inner = header.part(content, INNER + index)?;
        if inner.is_empty() {
            continue;
        }
        if depth + 1 >= STAGES_MAX || index >= chunk.codec.inner_max() {
            return Err(Error::corrupt("a chunk inside one that holds none"));
        }
        chunk.body.inner[index] = Some(Box::new(read_nested(inner, depth + 1)?));
    }
    Ok(chunk)
}

/// Checks everything that primitives rely on, from the inside out; `around` is the chunk with the
/// nulls of a chunk that lies inside.
fn check(chunk: &Chunk, around: Option<&Chunk>) -> Result<()> {
    let around = around.filter(|around| around.rows == chunk.rows);
    let with_nulls = if chunk.nulls > 0 { Some(chunk) } else { around };
    for inner in chunk.inner() {
        let number = matches!(inner.physical, Physical::Integer { .. });
        if inner.nulls != 0 || !number {
            return Err(Error::corrupt(
                "a chunk inside another holds plain integers",
            ));
        }
        check(inner, with_nulls)?;
    }
    chunk.codec.validate(chunk)?;
    check_stats(chunk)?;
    let all = Selection::all(chunk.rows);
    let right = match around {
        // The holes of the chunk around may or may not count.
        Some(around) => {
            let mut valid = all.clone();
            valid.retain_words(around.validity.words());
            ends_are_right(chunk, &valid) || ends_are_right(chunk, &all)
        }
        _ => {
            let mut valid = all;
            if chunk.nulls > 0 {
                valid.retain_words(chunk.validity.words());
            }
            ends_are_right(chunk, &valid)
        }
    };
    match right {
        true => Ok(()),
        false => Err(Error::corrupt("statistics differ from the values")),
    }
}

/// Everything of a chunk but what lies inside it.
fn read_parts(header: &Header, content: &[u8]) -> Result<Chunk> {
    let data_type = types::read(header.type_bytes, header.part(content, ZONE)?)?;
    let physical = Physical::of(&data_type)?;
    check_lengths(header, physical)?;
    let mut chunk = Chunk {
        physical,
        data_type,
        rows: header.rows,
        nulls: header.nulls,
        stats: header.stats,
        codec: header.codec,
        ..Chunk::default()
    };
    chunk.validity = read_validity(header, header.part(content, VALIDITY)?)?;
    if chunk.physical == Physical::Text && chunk.codec.id() == registry::fallback().id() {
        let [text, offsets] = TEXT_SECTIONS;
        let (text, offsets) = (header.part(content, text)?, header.part(content, offsets)?);
        chunk.body.array = Some(read_text_array(&chunk, offsets, text)?);
        return Ok(chunk);
    }
    chunk.body = read_body(header, content)?;
    Ok(chunk)
}

/// Sections are of whole items, and all parts of some use to the codec.
fn check_lengths(header: &Header, physical: Physical) -> Result<()> {
    let name = header.codec.name();
    if !has_texts(header) && header.bytes(TEXT_ENDS) + header.bytes(TEXTS) > 0 {
        return Err(Error::corrupt(format!("texts behind a {name} chunk")));
    }
    let sections = header.codec.sections(physical);
    for index in 0..SECTIONS_MAX {
        let bytes = header.bytes(SECTIONS + index);
        let right = match sections.get(index) {
            Some(&LANE_ITEM) => bytes.is_multiple_of(physical.lane_bytes()),
            Some(&item) => bytes.is_multiple_of(item),
            None => bytes == 0,
        };
        if !right {
            let message = format!("a {name} chunk has {bytes} bytes in section {index}");
            return Err(Error::corrupt(message));
        }
    }
    Ok(())
}

fn read_body(header: &Header, content: &[u8]) -> Result<Body> {
    let mut body = Body::default();
    for index in 0..SECTIONS_MAX {
        let bytes = header.part(content, SECTIONS + index)?;
        body.add_section::<u8>(index, bytes.len())
            .copy_from_slice(bytes);
    }
    Ok(body)
}

/// The bitmap, present exactly when there are nulls, with as many zeros as there are nulls.
fn read_validity(header: &Header, bytes: &[u8]) -> Result<Bitmap> {
    let corrupt = || Error::corrupt("validity does not match the number of nulls");
    let mut validity = Bitmap::default();
    if header.nulls == 0 {
        return match bytes.is_empty() {
            true => Ok(validity),
            false => Err(corrupt()),
        };
    }
    if bytes.len() != header.rows.div_ceil(WORD_ROWS) * 8 {
        return Err(corrupt());
    }
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    validity.copy_words(&words, header.rows);
    match validity.words() == words && validity.count() == header.rows - header.nulls {
        true => Ok(validity),
        false => Err(corrupt()),
    }
}

/// Plain text becomes an Arrow array again, which checks UTF-8.
fn read_text_array(chunk: &Chunk, offsets: &[u8], text: &[u8]) -> Result<ArrayRef> {
    let corrupt = || Error::corrupt("text offsets are out of order or range");
    if offsets.len() != (chunk.rows + 1) * 4 {
        return Err(corrupt());
    }
    let (offsets, _) = offsets.as_chunks::<4>();
    let offsets: Vec<i32> = offsets.iter().map(|at| i32::from_le_bytes(*at)).collect();
    let ascending = offsets.is_sorted();
    let first = offsets.first() == Some(&0);
    let last = offsets.last().and_then(|last| usize::try_from(*last).ok());
    if !ascending || !first || last != Some(text.len()) {
        return Err(corrupt());
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let text = Buffer::from(text);
    let nulls = (chunk.nulls > 0).then(|| chunk.validity.to_nulls());
    Ok(match chunk.data_type {
        DataType::Utf8 => Arc::new(StringArray::try_new(offsets, text, nulls)?),
        _ => Arc::new(BinaryArray::try_new(offsets, text, nulls)?),
    })
}

/// Ends are known for numbers only, and are in order and range.
fn check_stats(chunk: &Chunk) -> Result<()> {
    let Stats { min, max, known } = chunk.stats;
    let ordered = matches!(
        chunk.physical,
        Physical::Integer { .. } | Physical::Float { .. }
    );
    let largest = match chunk.data_type {
        DataType::Boolean => 1,
        _ => chunk.physical.key_max(),
    };
    let sane = match known {
        true => ordered && min <= max && max <= largest,
        false => min == 0 && max == 0,
    };
    match sane {
        true => Ok(()),
        false => Err(Error::corrupt("the statistics of a chunk cannot be right")),
    }
}

/// Whether the ends are those of the values of `rows`, and known exactly where there are some.
fn ends_are_right(chunk: &Chunk, rows: &Selection) -> bool {
    let Stats { min, max, known } = chunk.stats;
    let ordered = matches!(
        chunk.physical,
        Physical::Integer { .. } | Physical::Float { .. }
    );
    if !known || !ordered {
        return known == (ordered && !rows.is_empty());
    }
    let ends = Asked {
        ends: true,
        ..Asked::default()
    };
    let mut fold = Fold::default();
    let codec = chunk.codec;
    codec.fold(chunk, ends, rows, &mut fold, &mut Work::default());
    (fold.min, fold.max) == (i128::from(min), i128::from(max))
}

/// The table of the texts, each of them once.
fn read_texts(data_type: &DataType, ends: &[u8], texts: &[u8]) -> Result<Arc<Dictionary>> {
    let corrupt = || Error::corrupt("the texts behind codes are damaged");
    let (ends, rest) = ends.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(corrupt());
    }
    let dictionary = Dictionary::new();
    let mut start = 0;
    for (code, end) in ends.iter().enumerate() {
        let end = super::length(u64::from(u32::from_le_bytes(*end)))?;
        let text = texts.get(start..end).ok_or_else(corrupt)?;
        if *data_type == DataType::Utf8 && std::str::from_utf8(text).is_err() {
            return Err(Error::corrupt("text is not UTF-8"));
        }
        if dictionary.intern(text)? as usize != code {
            return Err(Error::corrupt("a text has two codes"));
        }
        start = end;
    }
    match start == texts.len() {
        true => Ok(dictionary),
        false => Err(corrupt()),
    }
}

/// Lets `chunk` use `shared` if that has the same texts under the same codes.
pub(super) fn share_dictionary(chunk: &mut Chunk, shared: &Arc<Dictionary>) {
    let Some(own) = &chunk.body.dictionary else {
        return;
    };
    let same = {
        let (own, shared) = (own.read(), shared.read());
        own.len() <= shared.len()
            && (0..own.len() as u32).all(|code| own.get(code) == shared.get(code))
    };
    if same {
        chunk.body.dictionary = Some(Arc::clone(shared));
    }
}
