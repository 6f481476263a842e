//! Functions that SQL knows besides DataFusion's scalar ones.

pub(crate) mod aggregate;
pub(crate) mod arithmetic;
pub(crate) mod date_interval;
pub(crate) mod date_part;
pub(crate) mod join;
pub(crate) mod over;
pub(crate) mod window;
