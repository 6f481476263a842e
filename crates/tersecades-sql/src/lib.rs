//! SQL over streams.
