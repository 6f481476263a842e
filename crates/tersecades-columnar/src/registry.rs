//! The ordered list of codecs: one line each.
//!
//! Order breaks ties in the chooser (earlier wins), so simpler layouts stand first. Ids are the
//! wire ids; they never change and are never reused.
//!
//! Ids in order: plain, constant, base_delta, run_length, dictionary (0 to 4), frame_of_reference,
//! patched, sequence, number_dictionary (5 to 8), bit_pack, delta, varint, pco (9 to 12), decimal,
//! xor, fixed_point, zfp (13 to 16), symbols (17), lz4, snappy, zstd (18 to 20), row (21).

use crate::codec::Codec;
use crate::codecs::{
    base_delta::BaseDelta, bit_pack::BitPack, constant::Constant, delta::Delta,
    dictionary::DictionaryCodes, frame_of_reference::FrameOfReference,
    number_dictionary::NumberDictionary, plain::Plain, run_length::RunLength, sequence::Sequence,
    varint::Varint,
};
use crate::error::{Error, Result};

/// Every codec, in order of preference at equal cost.
pub const CODECS: &[&dyn Codec] = &[
    &Plain,            // id 0: values looked at once; nothing to decode
    &Constant,         // id 1: mostly one value; answers from the exceptions alone
    &BaseDelta,        // id 2: the workhorse for integers and times
    &RunLength,        // id 3: repeats; cheaper than deltas when runs are long
    &FrameOfReference, // id 5: integers without outliers; least overhead, no patches
    &Sequence,         // id 7: regular times and counters; as runs, with a step
    &NumberDictionary, // id 8: numbers of which few are distinct, floats above all
    &DictionaryCodes,  // id 4: text
    &BitPack,          // id 9: integers of any few bits
    &Delta,            // id 10: neighbours that differ by little
    &Varint,           // id 11: values of many sizes near zero
];

/// The codec that takes everything.
pub fn fallback() -> &'static dyn Codec {
    &Plain
}

/// The codec that keeps text as codes.
pub fn text_codes() -> &'static dyn Codec {
    &DictionaryCodes
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
/// `InvalidArgument`, listing the names.
pub fn by_name(name: &str) -> Result<&'static dyn Codec> {
    let found = CODECS.iter().find(|codec| codec.name() == name).copied();
    found.ok_or_else(|| {
        let names: Vec<&str> = CODECS.iter().map(|codec| codec.name()).collect();
        Error::invalid(format!("no codec is named `{name}`")).hint(format!("one of {names:?}"))
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
