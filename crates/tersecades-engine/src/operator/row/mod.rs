//! Operators on rows: whole record batches in, whole record batches out, between stages.
//!
//! A stage works on encoded frames and keeps nothing of a row but what its windows fold. What
//! needs rows themselves in a certain order (sorting, limits, earlier rows of a key) is a
//! [`RowOperator`]: it stands after a stage, needs neither event time nor windows, and keeps its
//! rows encoded where it keeps many.

pub(crate) mod bound;
pub mod coded;
pub mod each_window;
pub mod expression;
pub mod group;
pub mod kept;
pub mod key_number;
pub mod keys;
pub(crate) mod order;
pub(crate) mod paged;
pub mod shape;
mod text_size;
pub(crate) mod word;

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::expression::Expression;
use crate::plan::EventTime;
use crate::runtime::Interrupt;
use crate::runtime::state::{StateReader, StateWriter};

use self::bound::Reached;
use self::keys::SortOrder;

/// Rows of a batch from which on it is worth a thread to take in several things of it at once.
const TOGETHER_ROWS_MIN: usize = 8_192;

/// How many of `threads` take in a batch of so many `rows`.
pub(crate) fn threads_for(rows: usize, threads: usize) -> usize {
    match rows < TOGETHER_ROWS_MIN {
        true => 1,
        false => threads,
    }
}

/// What a row operator takes in.
#[derive(Debug, Clone)]
pub struct RowInput {
    /// Names and logical types of the columns.
    pub schema: SchemaRef,
    /// Where the rows' event time comes from, if they still have its columns.
    pub event_time: EventTime,
    /// Whether each record batch is what one closing window gave.
    pub windowed: bool,
    /// Whether rows come in another order than that of the stream or its windows.
    pub reordered: bool,
}

/// Which rows an operator takes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Extent {
    /// The results of each window, after a windowed aggregate; all rows otherwise.
    #[default]
    Natural,
    /// All rows of the stream.
    Whole,
}

impl Extent {
    /// What `what` is done with, in words.
    pub(super) fn described(self, what: String) -> String {
        match self {
            Extent::Natural => what,
            Extent::Whole => format!("{what}, of all rows"),
        }
    }

    /// Whether the results of each window are taken by themselves.
    pub fn is_each_window(self, input: &RowInput) -> bool {
        self == Extent::Natural && input.windowed
    }
}

/// What a row operator is to do; bound anew by every run.
pub trait RowOperatorPlan: Debug + Send + Sync {
    /// One line for explain.
    fn describe(&self) -> String;

    /// Whether rows come out in another order than they went in.
    fn reorders(&self) -> bool {
        false
    }

    /// Whether the results of each window are taken by themselves.
    fn takes_windows(&self) -> bool {
        false
    }

    /// The rows that come out, where they are the first of all rows by an order of columns: the
    /// order, and how many rows are looked at.
    fn first_rows(&self) -> Option<(Vec<(&str, SortOrder)>, usize)> {
        None
    }

    /// What leaves out rows before this operator, where of those that come out only such with
    /// `condition` are used.
    fn before_filter(&self, _condition: &Expression) -> Option<Arc<dyn RowOperatorPlan>> {
        None
    }

    /// Whether all rows that go in together come out together, or not at all.
    fn keeps_windows(&self) -> bool {
        true
    }

    /// Whether the values of a column that goes in come out as they are, under the same name.
    fn passes(&self, _column: &str) -> bool {
        true
    }

    /// The operator over `input`, with empty state.
    ///
    /// # Errors
    /// What binding says: unknown columns, wrong types.
    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>>;
}

/// An operator on rows, and its state.
pub trait RowOperator: Send {
    /// Names and logical types of what comes out.
    fn schema(&self) -> SchemaRef;

    /// Says what is to be asked in the midst of work that is long.
    fn interrupt_with(&mut self, _interrupt: &Interrupt) {}

    /// Says how many threads may work on what takes long, the caller's among them.
    fn work_on(&mut self, _threads: usize) {}

    /// Says whom to tell how far the first rows of an order have come.
    fn tell(&mut self, _reached: &Reached) {}

    /// Takes in rows; what is ready is appended to `out`.
    ///
    /// # Errors
    /// What evaluating expressions says.
    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()>;

    /// Appends what is still held at the end of the stream, or the next part of it; whether there
    /// is more, for which it is called again, and nothing else before.
    ///
    /// # Errors
    /// What decoding says.
    fn finish(&mut self, _out: &mut Vec<RecordBatch>) -> Result<bool> {
        Ok(false)
    }

    /// Whether further rows would change nothing, so that nobody need compute them.
    fn is_done(&self) -> bool {
        false
    }

    /// Bytes of state.
    fn byte_size(&self) -> usize;

    /// Writes the state.
    ///
    /// # Errors
    /// What encoding says.
    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()>;

    /// Reads what [`RowOperator::snapshot`] wrote, before the first row.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit.
    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()>;
}
