//! What is merged: runs, and rows that are sorted for it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::array::AnyDictionaryArray;
use arrow_array::cast::AsArray as _;
use tersecades_columnar::error::Result;

use crate::run::Run;
use crate::sort_key::{SortKey, Sorted};

/// One input of a merge.
pub(crate) enum Source {
    /// Groups of a run.
    Run(Arc<Run>, Range<usize>),
    /// Sorted rows.
    Rows(Box<Sorted>),
}

/// Bytes of texts of the rows that are sorted together: a column takes 2^31 of them at most.
pub(crate) const SORTED_BYTES: usize = 1 << 30;

impl Source {
    /// All groups of a run.
    pub(crate) fn whole(run: Arc<Run>) -> Self {
        let groups = 0..run.groups().len();
        Source::Run(run, groups)
    }

    /// The rows of `batches`, sorted, oldest first: as few sources as hold at most `text_bytes`
    /// bytes of texts each, every text counted as often as it stands there.
    ///
    /// # Errors
    /// As [`Sorted::new`].
    pub(crate) fn sorted(
        key: &SortKey,
        batches: &[RecordBatch],
        text_bytes: usize,
    ) -> Result<Vec<Self>> {
        let groups = grouped(batches, text_bytes).into_iter();
        let sort = |group: Vec<RecordBatch>| {
            let sorted = Sorted::new(key, &group[0].schema(), &group)?;
            Ok(Source::Rows(Box::new(sorted)))
        };
        groups.map(sort).collect()
    }
}

/// `batches` in their order, in groups with at most `limit` bytes of texts; a batch with more is
/// cut into groups of its own.
fn grouped(batches: &[RecordBatch], limit: usize) -> Vec<Vec<RecordBatch>> {
    let mut groups: Vec<Vec<RecordBatch>> = Vec::new();
    let mut space = 0;
    for batch in batches {
        let bytes = text_bytes(batch);
        match groups.last_mut() {
            Some(group) if bytes <= space => {
                space -= bytes;
                group.push(batch.clone());
            }
            _ => {
                cut(batch, bytes, limit, &mut groups);
                space = limit.saturating_sub(bytes);
            }
        }
    }
    groups
}

/// Adds groups of the rows of `batch`, which hold `bytes` bytes of texts, each with at most `limit`
/// of them or of one row.
fn cut(batch: &RecordBatch, bytes: usize, limit: usize, groups: &mut Vec<Vec<RecordBatch>>) {
    let rows = batch.num_rows();
    if bytes <= limit || rows <= 1 {
        groups.push(vec![batch.clone()]);
        return;
    }
    for half in [
        batch.slice(0, rows / 2),
        batch.slice(rows / 2, rows - rows / 2),
    ] {
        cut(&half, text_bytes(&half), limit, groups);
    }
}

/// Bytes of the texts and bytes of all rows, each as often as it stands there.
pub(crate) fn text_bytes(rows: &RecordBatch) -> usize {
    let coded = rows.columns().iter();
    let coded = coded.filter_map(|column| column.as_any_dictionary_opt());
    coded.map(coded_bytes).sum()
}

fn coded_bytes(column: &dyn AnyDictionaryArray) -> usize {
    let values = column.values();
    let offsets = match (values.as_string_opt::<i32>(), values.as_binary_opt::<i32>()) {
        (Some(texts), _) => texts.value_offsets(),
        (_, Some(bytes)) => bytes.value_offsets(),
        _ => return 0,
    };
    if values.is_empty() {
        return 0;
    }
    let length = |code: usize| (offsets[code + 1] - offsets[code]) as usize;
    column.normalized_keys().into_iter().map(length).sum()
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::encode::coded;
    use crate::merge::{Merge, MergeOptions, Piece};
    use crate::retention::Floor;
    use crate::schema::StoreSchema;

    /// Rows whose keys are texts of `length` bytes, and their numbers.
    fn rows(numbers: Range<i64>, length: usize) -> RecordBatch {
        let key = |number: i64| format!("{:0length$}", number % 3);
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(numbers.clone().map(key)));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        RecordBatch::try_from_iter([("k", coded(&keys).unwrap()), ("n", numbers)]).unwrap()
    }

    fn schema() -> StoreSchema {
        let fields = Schema::new(vec![
            Field::new("k", DataType::Utf8, false),
            Field::new("n", DataType::Int64, false),
        ]);
        StoreSchema::new(&fields).unwrap().key(&["k"]).unwrap()
    }

    #[test]
    fn sources_have_few_bytes_of_texts_and_merge_in_the_order_of_arrival() {
        let batches = [
            rows(0..20, 10),
            rows(20..40, 10),
            rows(40..300, 10),
            rows(300..303, 2_000),
            rows(303..310, 10),
        ];
        let key = SortKey::new(&schema()).unwrap();
        let sources = Source::sorted(&key, &batches, 1_000).unwrap();
        let sizes = sources.iter().map(|source| match source {
            Source::Rows(sorted) => (sorted.rows.num_rows(), text_bytes(&sorted.rows)),
            Source::Run(..) => (0, 0),
        });
        let sizes: Vec<_> = sizes.collect();
        assert_eq!(sizes[..2], [(40, 400), (65, 650)]);
        assert!(
            sizes
                .iter()
                .all(|(rows, bytes)| *rows == 1 || *bytes <= 1_000),
            "{sizes:?}"
        );
        let options = MergeOptions {
            chunk_rows: 1_000,
            text_bytes: usize::MAX,
            series_rows: usize::MAX,
            splice_rows: 1,
            is_oldest: true,
            hashes_keys: false,
        };
        let fields = batches[0].schema();
        let mut merge = Merge::new(&schema(), fields, sources, Floor::default(), options).unwrap();
        let mut numbers = Vec::new();
        while let Some(Piece::Rows(piece, _)) = merge.next().unwrap() {
            numbers.extend_from_slice(piece.column(1).as_primitive::<Int64Type>().values());
        }
        let short = |key: i64| {
            let is_short = |number: &i64| !(300..303).contains(number);
            (0..310)
                .filter(is_short)
                .filter(move |number| number % 3 == key)
        };
        // Long keys are those with the most zeros, of which the first key has ten.
        let expected = short(0).chain(300..303).chain(short(1)).chain(short(2));
        assert!(numbers.iter().copied().eq(expected), "{numbers:?}");
    }
}
