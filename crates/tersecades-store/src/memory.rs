//! Rows that are in no run yet: the encoded batches of the log, in the order of their arrival.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::error::Result;
use tersecades_columnar::goal::Tier;

use crate::codec_policy::CodecPolicy;
use crate::encode::{Encoder, conform, decode};

/// Rows below which a batch is put together with its neighbours.
const SMALL_ROWS: usize = 1_024;
/// Small batches that become one.
const SMALL_BATCHES: usize = 64;

/// Batches in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    batches: Vec<Arc<Batch>>,
    /// What each batch counted for when it came: its texts grow where a query goes on with them.
    sizes: Vec<usize>,
    rows: usize,
    first: u64,
}

impl Memory {
    /// No rows; the next is number `first`.
    pub(crate) fn starting_at(first: u64) -> Self {
        Memory {
            first,
            ..Memory::default()
        }
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// What encoding small batches together says.
    pub(crate) fn push(&mut self, batch: Arc<Batch>, policy: CodecPolicy) -> Result<()> {
        self.rows += batch.rows();
        self.add(batch);
        let tail = self.batches.len().saturating_sub(SMALL_BATCHES);
        let small = |batch: &Arc<Batch>| batch.rows() < SMALL_ROWS;
        if self.batches.len() >= SMALL_BATCHES && self.batches[tail..].iter().all(small) {
            self.unite(tail, policy)?;
        }
        Ok(())
    }

    /// Makes one batch of those from `tail` on.
    fn unite(&mut self, tail: usize, policy: CodecPolicy) -> Result<()> {
        // A writer may not know yet of a column that others have written.
        let schemas = self.batches[tail..].iter().map(|batch| batch.schema());
        let Some(fields) = schemas.max_by_key(|fields| fields.fields().len()) else {
            return Ok(());
        };
        let fields = Arc::clone(fields);
        let rows = decode_all(&self.batches[tail..], &fields)?;
        let whole = arrow_select::concat::concat_batches(&rows[0].schema(), &rows)?;
        let united = Encoder::new(&fields, policy, Tier::Hot)?.encode(&whole)?;
        self.batches.truncate(tail);
        self.sizes.truncate(tail);
        self.add(Arc::new(united));
        Ok(())
    }

    fn add(&mut self, batch: Arc<Batch>) {
        self.sizes.push(bytes_of(&batch));
        self.batches.push(batch);
    }

    /// These rows, and those of `later`, which follow them.
    pub(crate) fn followed_by(&self, later: &Memory) -> Memory {
        let batches = self.batches.iter().chain(&later.batches);
        Memory {
            batches: batches.cloned().collect(),
            sizes: [self.sizes.as_slice(), &later.sizes].concat(),
            rows: self.rows + later.rows,
            first: self.first,
        }
    }

    /// The batches.
    pub(crate) fn batches(&self) -> &[Arc<Batch>] {
        &self.batches
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Encoded bytes, and those of texts.
    pub(crate) fn bytes(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// Numbers of the rows.
    pub(crate) fn sequences(&self) -> Range<u64> {
        self.first..self.first + self.rows as u64
    }
}

/// Encoded bytes of `batch`, whose texts are its own, and those of the texts.
fn bytes_of(batch: &Batch) -> usize {
    let texts = batch.columns().iter().filter_map(Chunk::dictionary);
    batch.byte_size() + texts.map(|texts| texts.byte_size()).sum::<usize>()
}

/// All rows of `batches`, decoded, with the columns of `fields`.
///
/// # Errors
/// What decoding says.
pub(crate) fn decode_all(batches: &[Arc<Batch>], fields: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let decoded = batches.iter().map(|batch| match batch.schema() == fields {
        true => decode(batch),
        false => decode(&conform(Batch::clone(batch), fields)?),
    });
    decoded.collect()
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array as _, ArrayRef, StringArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn texts_fill_memory() {
        let texts = StringArray::from_iter_values((0..4_000).map(|row| format!("{row:0100}")));
        let texts: ArrayRef = Arc::new(texts);
        let rows = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let mut encoder = Encoder::new(&rows.schema(), CodecPolicy::Auto, Tier::Hot).unwrap();
        let mut memory = Memory::default();
        let batch = Arc::new(encoder.encode(&rows).unwrap());
        memory.push(batch, CodecPolicy::Auto).unwrap();
        assert!(memory.bytes() >= 4_000 * 100, "{} bytes", memory.bytes());
        let few = Arc::new(encoder.encode(&rows.slice(0, 40)).unwrap());
        for _ in 0..SMALL_BATCHES {
            memory.push(Arc::clone(&few), CodecPolicy::Auto).unwrap();
        }
        let texts = (4_000 + 40) * 100;
        let united = texts..2 * texts;
        assert!(united.contains(&memory.bytes()), "{} bytes", memory.bytes());
    }

    #[test]
    fn texts_are_those_of_their_batch_alone_and_may_grow() {
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(["a text", "another"]));
        let rows = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let mut encoder = Encoder::new(&rows.schema(), CodecPolicy::Auto, Tier::Hot).unwrap();
        let (mut memory, mut seen) = (Memory::default(), std::collections::BTreeSet::new());
        for number in 0..2 * SMALL_BATCHES {
            let batch = Arc::new(encoder.encode(&rows).unwrap());
            let texts = Arc::clone(batch.column(0).dictionary().unwrap());
            assert!(seen.insert(texts.id()), "texts that count twice");
            memory.push(batch, CodecPolicy::Auto).unwrap();
            // As a query does that follows the store.
            texts.intern(format!("{number:0100}").as_bytes()).unwrap();
        }
        assert_eq!(memory.rows(), 2 * SMALL_BATCHES * 2);
        let one = bytes_of(&encoder.encode(&rows).unwrap());
        assert!(memory.bytes() < memory.rows() * one, "{}", memory.bytes());
    }

    #[test]
    fn a_batch_that_lacks_a_column_takes_it_from_no_other() {
        let column = |name| -> (&str, ArrayRef) {
            (name, Arc::new(StringArray::from_iter_values(["a text"])))
        };
        let narrow = RecordBatch::try_from_iter([column("a")]).unwrap();
        let field = |name| Field::new(name, DataType::Utf8, true);
        let wide = Arc::new(Schema::new(vec![field("a"), field("b")]));
        let columns = vec![column("a").1, column("b").1];
        let wide = RecordBatch::try_new(wide, columns).unwrap();
        let mut memory = Memory::default();
        for number in 1..=SMALL_BATCHES {
            let rows = [&wide, &narrow][usize::from(number == SMALL_BATCHES)];
            let mut encoder = Encoder::new(&rows.schema(), CodecPolicy::Auto, Tier::Hot).unwrap();
            let batch = Arc::new(encoder.encode(rows).unwrap());
            memory.push(batch, CodecPolicy::Auto).unwrap();
        }
        let united = decode(&memory.batches()[0]).unwrap();
        assert_eq!(
            (memory.batches().len(), united.num_rows()),
            (1, SMALL_BATCHES)
        );
        assert_eq!(united.column_by_name("b").unwrap().logical_null_count(), 1);
    }
}
