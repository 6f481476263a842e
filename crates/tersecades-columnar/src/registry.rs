//! The ordered list of codecs: one line each.
//!
//! Order breaks ties in the chooser (earlier wins), so simpler layouts stand first. Ids are the
//! wire ids; they never change and are never reused.
//!
//! Ids in order: plain, constant, base_delta, run_length, dictionary (0 to 4), frame_of_reference,
//! patched, sequence, number_dictionary (5 to 8), bit_pack, delta, varint, pco (9 to 12), decimal,
//! xor, fixed_point, zfp (13 to 16), symbols (17), lz4, snappy, zstd (18 to 20), row (21),
//! gcd (22), linear (23).

use crate::codec::Codec;
use crate::codecs;
use crate::error::{Error, Result};
use crate::nearest::nearest;

/// Every codec, in order of preference at equal cost.
pub const CODECS: &[&dyn Codec] = &[
    // id 0: values looked at once; nothing to decode
    &codecs::plain::Plain,
    // id 1: mostly one value; answers from the exceptions alone
    &codecs::constant::Constant,
    // id 2: the workhorse for integers and times
    &codecs::base_delta::BaseDelta,
    // id 3: repeats; cheaper than deltas when runs are long
    &codecs::run_length::RunLength,
    // id 5: integers without outliers; least overhead, no patches
    &codecs::frame_of_reference::FrameOfReference,
    // id 6: outliers apart, so that any codec inside stays narrow
    &codecs::patched::Patched,
    // id 7: regular times and counters; as runs, with a step
    &codecs::sequence::Sequence,
    // id 22: integers a fixed distance apart, times of coarse clocks above all
    &codecs::gcd::Gcd,
    // id 8: numbers of which few are distinct, floats above all
    &codecs::number_dictionary::NumberDictionary,
    // id 4: text
    &codecs::dictionary::DictionaryCodes,
    // id 9: integers of any few bits
    &codecs::bit_pack::BitPack,
    // id 10: neighbours that differ by little
    &codecs::delta::Delta,
    // id 23: times of clocks that jitter
    &codecs::linear::Linear,
    // id 11: values of many sizes near zero
    &codecs::varint::Varint,
    // id 17: text of too many distinct values for codes
    &codecs::symbol::Symbols,
    // id 12: numbers that are kept and hardly read
    &codecs::pco::Pco,
    // id 18: anything, decompressed fast
    &codecs::byte_unit::ByteUnit(codecs::byte_unit::lz4::Lz4),
    // id 19: anything, for readers that have it
    &codecs::byte_unit::ByteUnit(codecs::byte_unit::snappy::Snappy),
    // id 20: anything, small
    &codecs::byte_unit::ByteUnit(codecs::byte_unit::zstd::Zstd),
    // id 21: rows, by request
    &codecs::row::Row,
    // id 13: floats that people write with few digits; answers from integers
    &codecs::decimal::Decimal,
    // id 14: cold floats of many digits
    &codecs::xor::Xor,
    // id 15: lossy, by request; after the exact codecs
    &codecs::fixed_point::FixedPoint,
    // id 16: lossy, by request; cold
    &codecs::zfp::Zfp,
];

/// The codecs that give values back as they were.
pub fn exact() -> impl Iterator<Item = &'static dyn Codec> {
    CODECS.iter().copied().filter(|codec| !codec.is_lossy())
}

/// The codec that takes everything.
pub fn fallback() -> &'static dyn Codec {
    &codecs::plain::Plain
}

/// The codec that keeps text as codes.
pub fn text_codes() -> &'static dyn Codec {
    &codecs::dictionary::DictionaryCodes
}

/// The codec of columns that lie in rows.
pub fn row_layout() -> &'static dyn Codec {
    &codecs::row::Row
}

/// The codec with wire id `id`.
///
/// # Errors
/// `Corrupt` for an id that names no codec.
pub fn by_id(id: u8) -> Result<&'static dyn Codec> {
    let found = CODECS.iter().find(|codec| codec.id() == id).copied();
    found.ok_or_else(|| {
        Error::corrupt(format!("no codec has id {id}"))
            .hint("the bytes come from a newer version or are damaged")
    })
}

/// The codec named `name`.
///
/// # Errors
/// `InvalidArgument`, naming the nearest and listing all.
pub fn by_name(name: &str) -> Result<&'static dyn Codec> {
    let found = CODECS.iter().find(|codec| codec.name() == name).copied();
    found.ok_or_else(|| {
        let names: Vec<&str> = CODECS.iter().map(|codec| codec.name()).collect();
        let list = names.join(", ");
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`? The codecs are {list}"),
            None => format!("the codecs are {list}"),
        };
        Error::invalid(format!("no codec is named `{name}`")).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_unique_and_found() {
        for codec in CODECS {
            assert_eq!(by_id(codec.id()).unwrap().name(), codec.name());
            assert_eq!(by_name(codec.name()).unwrap().id(), codec.id());
        }
        assert!(by_id(250).is_err() && by_name("zip").is_err());
    }
}
