//! Seeded columns and streams of every supported type and every shape that codecs care about.

pub mod arrow;
pub mod column;
pub mod stream;
pub mod time;

pub use arrow::{from_array, from_batch, to_array, to_batches};
pub use column::{SHAPES, Shape, column, types};
pub use stream::{Stream, random_stream};
pub use time::{TIME_SHAPES, TimeShape, TimeStream, times};
