//! Functions that SQL knows besides DataFusion's scalar ones.

pub(crate) mod aggregate;
pub(crate) mod arithmetic;
pub(crate) mod window;
