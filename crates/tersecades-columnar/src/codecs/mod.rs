//! The codecs, one file each; [`crate::registry::CODECS`] is the list.

pub mod base_delta;
pub mod bit_pack;
pub mod constant;
pub mod delta;
pub mod dictionary;
pub mod frame_of_reference;
pub mod number_dictionary;
pub mod plain;
pub mod run_length;
pub mod sequence;
pub mod varint;
