//! Generated streams as sources and as a table that every run reads from its first row.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::runtime::ingest::Origin;

use super::generator::{Generator, GeneratorKind, Pingmesh, find_generator};
use super::table::Table;
use super::{BATCH_ROWS_DEFAULT, Rejected, Source};

/// A source of what a generator makes.
pub struct GeneratorSource<G: ?Sized + Generator> {
    batch_rows: usize,
    rejected: Rejected,
    generator: Box<G>,
}

/// A source of generated probes.
pub type PingmeshSource = GeneratorSource<Pingmesh>;

impl<G: Generator> GeneratorSource<G> {
    /// Hands out what `generator` makes, `batch_rows` at a time.
    pub fn new(generator: G, batch_rows: usize) -> Self {
        Self::from_boxed(Box::new(generator), batch_rows)
    }
}

impl<G: ?Sized + Generator> GeneratorSource<G> {
    /// As [`Self::new`], for a generator whose kind is known at run time only.
    pub fn from_boxed(generator: Box<G>, batch_rows: usize) -> Self {
        GeneratorSource {
            batch_rows: batch_rows.max(1),
            rejected: Rejected::default(),
            generator,
        }
    }
}

impl<G: ?Sized + Generator> Source for GeneratorSource<G> {
    fn schema(&self) -> SchemaRef {
        self.generator.schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.generator.next_batch(self.batch_rows)
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.generator.rows())
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

/// A generated stream, started anew by every run.
pub struct GeneratorTable {
    kind: &'static GeneratorKind,
    rows: u64,
    seed: u64,
    given: Vec<(String, String)>,
    schema: SchemaRef,
    batch_rows: usize,
}

impl GeneratorTable {
    /// The first `rows` rows of the stream of the kind `name` that `seed` chooses, with `given`
    /// (name, text) parameters.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown names and for values that make no sense.
    ///
    /// # Examples
    /// ```
    /// use tersecades_engine::source::generated::GeneratorTable;
    /// use tersecades_engine::stream::Stream;
    /// let weather = GeneratorTable::new("weather", 10_000, 7, Vec::new())?;
    /// let stream = Stream::from_table(weather);
    /// # Ok::<(), tersecades_columnar::error::Error>(())
    /// ```
    pub fn new(name: &str, rows: u64, seed: u64, given: Vec<(String, String)>) -> Result<Self> {
        let kind = find_generator(name)?;
        let schema = kind.start(rows, seed, &given)?.schema();
        Ok(GeneratorTable {
            kind,
            rows,
            seed,
            given,
            schema,
            batch_rows: BATCH_ROWS_DEFAULT,
        })
    }

    /// Hands out batches of `batch_rows` rows.
    pub fn batch_rows(mut self, batch_rows: usize) -> Self {
        self.batch_rows = batch_rows;
        self
    }

    /// The stream at its first row.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn start(&self) -> Result<Box<dyn Generator>> {
        self.kind.start(self.rows, self.seed, &self.given)
    }
}

impl Table for GeneratorTable {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn may_reject(&self) -> bool {
        false
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        let source = GeneratorSource::from_boxed(self.start()?, self.batch_rows);
        Ok(Origin::Source(Box::new(source)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_starts_anew() {
        let table = GeneratorTable::new("counters", 1_000, 1, Vec::new())
            .unwrap()
            .batch_rows(300);
        let read = || match table.open(None).unwrap() {
            Origin::Source(mut source) => {
                assert_eq!(source.rows_hint(), Some(1_000));
                let mut batches = Vec::new();
                while let Some(batch) = source.next().unwrap() {
                    batches.push(batch);
                }
                batches
            }
            Origin::Encoded(..) => panic!("generated rows are not encoded"),
        };
        let first = read();
        assert_eq!(first.len(), 4);
        assert!(first == read());
    }
}
