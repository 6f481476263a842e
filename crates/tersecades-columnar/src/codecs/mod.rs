//! The codecs, one file each; [`crate::registry::CODECS`] is the list.

pub mod base_delta;
pub mod bit_pack;
pub mod byte_unit;
pub mod constant;
pub mod decimal;
pub mod delta;
pub mod dictionary;
pub mod fixed_point;
pub mod frame_of_reference;
pub mod gcd;
pub mod linear;
pub mod number_dictionary;
pub mod patched;
pub mod pco;
pub mod plain;
pub mod row;
mod row_bytes;
pub mod run_length;
pub mod sequence;
pub mod symbol;
mod units;
pub mod varint;
pub mod xor;
pub mod zfp;
