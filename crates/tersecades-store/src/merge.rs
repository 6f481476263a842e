//! Sorted inputs as one: groups that overlap nothing move as they are, the rest is decoded.
//!
//! Inputs stand oldest first, so that rows with the same key stay in the order of their arrival,
//! and of those with the same primary key the last is the newest.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{BooleanArray, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave_record_batch;
use arrow_select::take::take_record_batch;
use tersecades_columnar::error::Result;

use crate::encode::decode;
use crate::retention::Floor;
use crate::run::{self, Group, Run};
use crate::schema::{DELETED, StoreSchema};
use crate::sort_key::{SortKey, Sorted};
use crate::source::{Source, text_bytes};

/// What comes out.
pub(crate) enum Piece {
    /// A group of a run, as its bytes are.
    Spliced(Arc<Run>, usize),
    /// Rows, and the hashes of their keys where they are asked for.
    Rows(RecordBatch, Vec<u64>),
}

/// How to merge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeOptions {
    /// Most rows of a piece.
    pub(crate) chunk_rows: usize,
    /// Bytes of texts that end a piece.
    pub(crate) text_bytes: usize,
    /// Rows above which a piece ends where a key does that has many rows.
    pub(crate) series_rows: usize,
    /// Least rows of a group that is not decoded.
    pub(crate) splice_rows: usize,
    /// Whether no older rows are left that a deletion must hide.
    pub(crate) is_oldest: bool,
    /// Whether the keys of rows are hashed.
    pub(crate) hashes_keys: bool,
}

/// The least sort key of other inputs, and the input it is in.
type Limit = (Vec<u8>, usize);

struct Decoded {
    batch: usize,
    sorted: Box<Sorted>,
    position: usize,
}

struct Input {
    /// The run whose groups come, and the end of those that do; `None` for rows.
    run: Option<(Arc<Run>, usize)>,
    next_group: usize,
    decoded: Option<Decoded>,
    /// Sort key of the next row, or the least it can be; `None` at the end.
    head: Option<Vec<u8>>,
}

/// Rows that pieces are made of.
#[derive(Clone)]
struct Held {
    rows: RecordBatch,
    /// Bytes of texts of a row, on average.
    row_bytes: usize,
}

/// A merge that is under way.
pub(crate) struct Merge {
    key: SortKey,
    fields: SchemaRef,
    options: MergeOptions,
    is_primary: bool,
    floor: Floor,
    inputs: Vec<Input>,
    batches: Vec<Held>,
    pending: Vec<(usize, usize)>,
    /// Bytes of texts of the pending rows, about.
    pending_bytes: usize,
    /// Keys that begin among the pending rows.
    pending_keys: usize,
    /// Their hashes, where they are asked for.
    hashes: Vec<u64>,
    last: Option<Vec<u8>>,
    decoded_bytes: u64,
}

/// Rows of a key, on average, below which pieces do not end with it: they would hold few rows of
/// each key all the same, and more of their bytes would be headers.
const LONG_SERIES_ROWS: usize = 64;

/// [`MergeOptions::text_bytes`] of every merge: a column takes 2^31 of them at most.
pub(crate) const TEXT_BYTES: usize = 256 << 20;

impl Merge {
    /// Merges `sources`, oldest first, with the columns of `fields`.
    ///
    /// # Errors
    /// `Unsupported` for keys without an order.
    pub(crate) fn new(
        schema: &StoreSchema,
        fields: SchemaRef,
        sources: Vec<Source>,
        floor: Floor,
        options: MergeOptions,
    ) -> Result<Self> {
        let mut merge = Merge {
            key: SortKey::new(schema)?,
            fields,
            options,
            is_primary: schema.is_primary(),
            floor,
            inputs: Vec::with_capacity(sources.len()),
            batches: Vec::new(),
            pending: Vec::new(),
            pending_bytes: 0,
            pending_keys: 0,
            hashes: Vec::new(),
            last: None,
            decoded_bytes: 0,
        };
        for source in sources {
            let (run, next_group, decoded) = match source {
                Source::Run(run, groups) => (Some((run, groups.end)), groups.start, None),
                Source::Rows(sorted) => (None, 0, Some(merge.begin(sorted))),
            };
            merge.inputs.push(Input {
                run,
                next_group,
                decoded,
                head: None,
            });
            merge.find_head(merge.inputs.len() - 1);
        }
        Ok(merge)
    }

    /// The order of the rows.
    pub(crate) fn key(&self) -> &SortKey {
        &self.key
    }

    /// Bytes of chunks that were decoded so far.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.decoded_bytes
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// What reading and decoding say.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>> {
        while let Some((index, limit)) = self.least() {
            if self.inputs[index].decoded.is_none() {
                if let Some((run, group)) = self.splice(index, limit.as_ref()) {
                    if let Some(piece) = self.emit()? {
                        return Ok(Some(piece));
                    }
                    self.last = Some(run.group(group).fences.1.clone());
                    self.inputs[index].next_group += 1;
                    self.find_head(index);
                    return Ok(Some(Piece::Spliced(run, group)));
                }
                self.decode_next(index)?;
                continue;
            }
            if self.take_rows(index, limit.as_ref())?
                && let Some(piece) = self.emit()?
            {
                return Ok(Some(piece));
            }
        }
        self.emit()
    }

    /// The input with the least head, and the least head of the others with its input.
    fn least(&self) -> Option<(usize, Option<Limit>)> {
        let heads = || {
            let heads = self.inputs.iter().enumerate();
            heads.filter_map(|(index, input)| Some((input.head.as_ref()?, index)))
        };
        let (_, index) = heads().min()?;
        let limit = heads().filter(|(_, other)| *other != index).min();
        Some((index, limit.map(|(head, other)| (head.clone(), other))))
    }

    /// The next group of input `index`, if it can move as it is.
    fn splice(&self, index: usize, limit: Option<&Limit>) -> Option<(Arc<Run>, usize)> {
        let input = &self.inputs[index];
        let (run, _) = input.run.as_ref()?;
        let group = run.group(input.next_group);
        let last = &group.fences.1;
        let alone = limit.is_none_or(|(head, other)| match self.is_primary {
            true => last < head,
            false => (last, index) < (head, *other),
        });
        let follows = !self.is_primary || self.last.as_ref() != Some(&group.fences.0);
        let large = group.rows as usize >= self.options.splice_rows;
        let whole = !(self.floor.cuts(run, group) || self.options.is_oldest && deletes(run, group));
        (alone && follows && large && whole).then(|| (Arc::clone(run), input.next_group))
    }

    /// Decodes the next group of input `index`.
    fn decode_next(&mut self, index: usize) -> Result<()> {
        let input = &mut self.inputs[index];
        let Some((run, _)) = &input.run else {
            return Ok(());
        };
        self.decoded_bytes += run.group(input.next_group).bytes();
        let rows = decode(&run.read_group(input.next_group, &self.fields)?)?;
        input.next_group += 1;
        let sorted = Box::new(Sorted::already(&self.key, rows)?);
        self.inputs[index].decoded = Some(self.begin(sorted));
        self.find_head(index);
        Ok(())
    }

    /// Begins to take rows of `sorted`.
    fn begin(&mut self, sorted: Box<Sorted>) -> Decoded {
        self.batches.push(Held {
            row_bytes: text_bytes(&sorted.rows) / sorted.rows.num_rows().max(1),
            rows: sorted.rows.clone(),
        });
        Decoded {
            batch: self.batches.len() - 1,
            sorted,
            position: 0,
        }
    }

    /// Finds the head of input `index`, which may have come to the end of a group.
    fn find_head(&mut self, index: usize) {
        let input = &mut self.inputs[index];
        if let Some(decoded) = &input.decoded {
            if decoded.position < decoded.rows() {
                input.head = Some(decoded.key(decoded.position).to_vec());
                return;
            }
            input.decoded = None;
        }
        input.head = input.run.as_ref().and_then(|(run, end)| {
            let gone = |group: &usize| self.floor.drops(run, run.group(*group));
            let next = (input.next_group..*end).find(|group| !gone(group));
            input.next_group = next.unwrap_or(*end);
            next.map(|group| run.group(group).fences.0.clone())
        });
    }

    /// Takes rows of input `index` up to `limit`; whether a piece is complete.
    fn take_rows(&mut self, index: usize, limit: Option<&Limit>) -> Result<bool> {
        let Some(mut decoded) = self.inputs[index].decoded.take() else {
            return Ok(false);
        };
        let mut complete = false;
        while decoded.position < decoded.rows() {
            let key = decoded.key(decoded.position);
            let within = limit.is_none_or(|(head, other)| (key, index) < (head.as_slice(), *other));
            if !within {
                break;
            }
            let row = (decoded.batch, decoded.sorted.row(decoded.position));
            let same = self.last.as_deref() == Some(key) && !self.pending.is_empty();
            if same && self.is_primary {
                if let Some((batch, _)) = self.pending.pop() {
                    self.pending_bytes -= self.batches[batch].row_bytes;
                }
            } else if self.is_complete(key) {
                complete = true;
                break;
            }
            if !same {
                let continues = !self.pending.is_empty()
                    && self.key.series(self.last.as_deref().unwrap_or_default())
                        == self.key.series(key);
                if !continues {
                    self.pending_keys += 1;
                    if self.options.hashes_keys {
                        self.hashes.push(run::hash(self.key.series(key)));
                    }
                }
            }
            self.pending_bytes += self.batches[row.0].row_bytes;
            self.pending.push(row);
            if !same {
                let last = self.last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
            decoded.position += 1;
        }
        self.inputs[index].decoded = Some(decoded);
        self.find_head(index);
        Ok(complete)
    }

    /// Whether what is pending ends before a row with `key`.
    fn is_complete(&self, key: &[u8]) -> bool {
        let rows = self.pending.len();
        if rows > 0 && self.pending_bytes >= self.options.text_bytes {
            return true;
        }
        if rows < self.options.series_rows.min(self.options.chunk_rows) {
            return false;
        }
        let last = self.last.as_deref().unwrap_or_default();
        let ends = || self.key.series(last) != self.key.series(key);
        rows >= self.options.chunk_rows
            || (rows >= self.pending_keys.saturating_mul(LONG_SERIES_ROWS) && ends())
    }

    /// The pending rows, without those that are gone; `None` where there are none.
    fn emit(&mut self) -> Result<Option<Piece>> {
        if self.pending.is_empty() {
            return Ok(None);
        }
        let rows = self.pending_rows()?;
        self.pending.clear();
        self.pending_bytes = 0;
        self.pending_keys = 0;
        self.forget_batches();
        let rows = self.floor.apply(rows)?;
        let rows = match self.options.is_oldest && self.is_primary {
            true => without_deleted(&rows)?,
            false => rows,
        };
        let hashes = std::mem::take(&mut self.hashes);
        Ok((rows.num_rows() > 0).then_some(Piece::Rows(rows, hashes)))
    }

    /// The pending rows: cut out where they lie one after another.
    fn pending_rows(&self) -> Result<RecordBatch> {
        let (batch, first) = self.pending[0];
        let mut rows = self.pending.iter().zip(first..);
        if rows.all(|((other, row), next)| *other == batch && *row == next) {
            return Ok(self.batches[batch].rows.slice(first, self.pending.len()));
        }
        if self.pending.iter().all(|(other, _)| *other == batch) {
            let rows = self.pending.iter().map(|(_, row)| *row as u32);
            let rows = UInt32Array::from_iter_values(rows);
            return Ok(take_record_batch(&self.batches[batch].rows, &rows)?);
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().map(|held| &held.rows).collect();
        Ok(interleave_record_batch(&batches, &self.pending)?)
    }

    /// Keeps the batches that inputs still read.
    fn forget_batches(&mut self) {
        let batches = std::mem::take(&mut self.batches);
        for decoded in self
            .inputs
            .iter_mut()
            .filter_map(|input| input.decoded.as_mut())
        {
            self.batches.push(batches[decoded.batch].clone());
            decoded.batch = self.batches.len() - 1;
        }
    }
}

impl Decoded {
    fn rows(&self) -> usize {
        self.sorted.rows.num_rows()
    }

    fn key(&self, position: usize) -> &[u8] {
        self.sorted.key(position)
    }
}

/// Whether a group may hold deleted rows.
fn deletes(run: &Run, group: &Group) -> bool {
    let column = run.fields().index_of(DELETED);
    column.is_ok_and(|column| group.chunks[column].stats.max > 0)
}

/// The rows that are not deleted.
///
/// # Errors
/// What filtering says.
pub(crate) fn without_deleted(rows: &RecordBatch) -> Result<RecordBatch> {
    let Some(deleted) = rows.column_by_name(DELETED) else {
        return Ok(rows.clone());
    };
    let deleted = deleted.as_boolean();
    if deleted.true_count() == 0 {
        return Ok(rows.clone());
    }
    let kept: BooleanArray = (0..deleted.len())
        .map(|row| Some(!deleted.value(row)))
        .collect();
    Ok(arrow_select::filter::filter_record_batch(rows, &kept)?)
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use arrow_schema::Schema;

    use super::*;
    use crate::encode::coded;

    #[test]
    fn pieces_end_where_they_hold_enough_text() {
        let rows = |first: i64, length: usize| {
            let times = Int64Array::from_iter_values((0..30).map(|row| first + 2 * row));
            let texts = (0..30).map(|row| format!("{first:0length$}{}", row % 2));
            let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
            let columns: [(_, ArrayRef); 2] =
                [("t", Arc::new(times)), ("text", coded(&texts).unwrap())];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let inputs = [rows(0, 9), rows(1, 99)];
        assert_eq!(inputs.each_ref().map(text_bytes), [300, 3_000]);
        let fields = inputs[0].schema();
        let bare = Schema::new(vec![
            fields.field(0).clone(),
            fields
                .field(1)
                .clone()
                .with_data_type(arrow_schema::DataType::Utf8),
        ]);
        let schema = StoreSchema::new(&bare).unwrap().key(&["t"]).unwrap();
        let key = SortKey::new(&schema).unwrap();
        let sources = inputs
            .iter()
            .map(|rows| Source::Rows(Box::new(Sorted::already(&key, rows.clone()).unwrap())));
        let options = MergeOptions {
            chunk_rows: 1_000,
            text_bytes: 1_000,
            series_rows: usize::MAX,
            splice_rows: 1,
            is_oldest: true,
            hashes_keys: false,
        };
        let (sources, floor) = (sources.collect(), Floor::default());
        let mut merge = Merge::new(&schema, fields, sources, floor, options).unwrap();
        let mut times = Vec::<i64>::new();
        while let Some(Piece::Rows(piece, _)) = merge.next().unwrap() {
            let size = text_bytes(&piece);
            assert!((1..1_100).contains(&size), "{size}");
            let found = piece
                .column(0)
                .as_primitive::<arrow_array::types::Int64Type>();
            times.extend(found.values());
        }
        assert!(times.iter().copied().eq(0..60), "{times:?}");
    }
}
