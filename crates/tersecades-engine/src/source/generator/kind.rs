//! What every generator is: a trait, its line in the list, and the ordered list itself.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};

use super::parameter::{Arguments, Parameter};
use super::{counters, nexmark, pingmesh, positions, weather, yahoo};

/// Chooses the stream when the user names no seed.
pub const SEED_DEFAULT: u64 = 20_180_711;

/// The most rows a stream can have.
pub const ROWS_MAX: u64 = 1 << 50;

/// An endless stream whose row `i` is a function of its options and `i`, cut off somewhere.
pub trait Generator: Send {
    /// Schema of the batches.
    fn schema(&self) -> SchemaRef;

    /// Rows in the whole stream.
    fn rows(&self) -> u64;

    /// Number of the next row, from 0.
    fn position(&self) -> u64;

    /// Goes on at row number `row` (at the end, if the stream is shorter).
    fn seek(&mut self, row: u64);

    /// The next `rows` rows as a batch, fewer at the end, `None` after it; 0 counts as 1. All
    /// batches have the same dictionaries.
    ///
    /// # Errors
    /// `Corrupt` if Arrow refuses the batch, which would be a bug.
    fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>>;

    /// Writes what was put into the stream on purpose before its last row, as JSON lines.
    ///
    /// # Errors
    /// `Io` (or `Interrupted`) when `out` cannot be written.
    fn write_truth(&self, out: &mut dyn Write) -> Result<()>;

    /// Tables that queries on the stream join with, by name.
    ///
    /// # Errors
    /// As [`Self::next_batch`].
    fn tables(&self) -> Result<Vec<(&'static str, RecordBatch)>> {
        Ok(Vec::new())
    }
}

/// One kind of stream that can be generated.
pub struct GeneratorKind {
    /// Name, as front ends spell it.
    pub name: &'static str,
    /// One line for help texts and tables.
    pub summary: &'static str,
    /// What can be chosen besides rows and seed.
    pub parameters: &'static [Parameter],
    /// Makes the stream of a number of rows and a seed.
    pub open: fn(u64, u64, &Arguments<'_>) -> Result<Box<dyn Generator>>,
}

/// Every kind of stream that can be generated: the papers' data sets, in their order, and the
/// streams of two benchmarks.
pub const GENERATORS: &[GeneratorKind] = &[
    pingmesh::KIND,
    counters::KIND,
    positions::KIND,
    weather::KIND,
    nexmark::KIND,
    yahoo::KIND,
];

impl GeneratorKind {
    /// The stream of `rows` rows that `seed` chooses, with `given` (name, text) parameters.
    ///
    /// # Errors
    /// `InvalidArgument` that names a parameter and its legal values.
    ///
    /// # Examples
    /// ```
    /// use tersecades_engine::source::generator::find_generator;
    /// let given = [("vms".to_owned(), "50".to_owned())];
    /// let mut stream = find_generator("counters")?.start(1_000, 7, &given)?;
    /// assert_eq!(stream.next_batch(600)?.map(|batch| batch.num_rows()), Some(600));
    /// # Ok::<(), tersecades_columnar::error::Error>(())
    /// ```
    pub fn start(
        &self,
        rows: u64,
        seed: u64,
        given: &[(String, String)],
    ) -> Result<Box<dyn Generator>> {
        if rows > ROWS_MAX {
            return Err(
                Error::invalid(format!("`rows` is {rows}")).hint(format!("use at most {ROWS_MAX}"))
            );
        }
        (self.open)(rows, seed, &Arguments::new(self.parameters, given)?)
    }
}

/// The generator of the name `name`.
///
/// # Errors
/// `InvalidArgument` for an unknown name; the hint lists the known ones.
pub fn find_generator(name: &str) -> Result<&'static GeneratorKind> {
    GENERATORS
        .iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| {
            let known: Vec<&str> = GENERATORS.iter().map(|kind| kind.name).collect();
            Error::invalid(format!("there is no generator `{name}`"))
                .hint(format!("generators: {}", known.join(", ")))
        })
}
