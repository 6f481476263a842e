//! ZFP: floats within an absolute tolerance, one dimension.
//!
//! ```text
//! stream = block …, filled up with zeros to whole 64-bit little-endian words
//! block  = 0                          four zeros, or four values below the tolerance
//!        | 1  exponent  plane …       exponent: 8 or 11 bits; planes from the highest
//! ```
//! Bits are read from the lowest of a word. Four values are scaled by their largest exponent to
//! integers of two spare bits, transformed (so that smooth values leave all but the first small),
//! written in base -2 (so that small numbers of both signs have leading zeros) and cut into bit
//! planes, of which those below the tolerance are left out. The streams are those of the reference
//! library in its fixed-accuracy mode without header. That library overflows for blocks whose
//! largest magnitude is below `2^-961` (`f64`) or `2^-97` (`f32`) and above the tolerance; here
//! they are scaled exactly.
//! Source: Lindstrom, Fixed-Rate Compressed Floating-Point Arrays, TVCG 2014;
//! <https://zfp.readthedocs.io/en/latest/algorithm.html>.

mod bits;
mod plane;

mod block;
mod stream;

pub use stream::{Format, decode, encode};
