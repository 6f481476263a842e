//! The codecs, one file each; [`crate::registry::CODECS`] is the list.

pub mod base_delta;
pub mod byte_unit;
pub mod constant;
pub mod dictionary;
pub mod pco;
pub mod plain;
mod row_bytes;
pub mod run_length;
pub mod symbol;
mod units;
