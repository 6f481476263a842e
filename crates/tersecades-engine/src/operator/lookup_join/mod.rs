//! `lookup_join`: adds columns of a table row found by key; rows without one are dropped.
//!
//! Integer keys within a narrow range are found by their rank, others by hash. Text keys are
//! looked up once per distinct text: codes of the stream's dictionary lead straight to table rows.

mod picked;
mod ranked;

use std::sync::{Arc, OnceLock};

use arrow_schema::DataType;
use hashbrown::HashMap;
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::dictionary::Dictionary;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use crate::frame::{Frame, Scope, Slot};
use crate::plan::LookupTable;

use super::{Operator, OperatorKind};
use picked::Picked;
use ranked::RankedKeys;

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "lookup_join",
    summary: "adds columns of the table row with the same key; rows without one are dropped",
};

const ABSENT: u32 = u32::MAX;

/// From key to row of the table.
#[derive(Debug)]
enum Index {
    Ranked(RankedKeys),
    Hashed(HashMap<i128, u32, foldhash::fast::FixedState>),
    /// Rows by code of `dictionary`, which holds the table's keys.
    Text {
        dictionary: Arc<Dictionary>,
        rows: Vec<u32>,
    },
}

/// A table found by one of its columns.
#[derive(Debug)]
pub struct KeyedTable {
    name: String,
    key: String,
    batch: Batch,
    index: Arc<Index>,
    /// Columns of the batch that were asked for.
    picked: Vec<OnceLock<Arc<Picked>>>,
}

impl KeyedTable {
    /// Indexes `table` by `key`.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns and keys that occur twice, `Unsupported` for types.
    pub(crate) fn new(table: &LookupTable, key: &str) -> Result<Self> {
        let mut encoder = BatchEncoder::new(&table.rows.schema())?;
        let batch = encoder.encode_new(&table.rows)?;
        let scope = Scope::of_schema(batch.schema());
        let (_, key_slot) = find(&table.name, &scope, key)?;
        let index = index_keys(&all_values(&batch, key_slot)).map_err(|error| error.column(key))?;
        Ok(KeyedTable {
            name: table.name.clone(),
            key: key.to_owned(),
            picked: batch.columns().iter().map(|_| OnceLock::new()).collect(),
            batch,
            index: Arc::new(index),
        })
    }

    /// The column in `slot`, decoded when it is first asked for.
    fn picked(&self, slot: Slot) -> Arc<Picked> {
        let decode = || Arc::new(Picked::of(all_values(&self.batch, slot)));
        Arc::clone(self.picked[slot].get_or_init(decode))
    }

    /// The column that rows are found by.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// The table, ready to be looked up in; shared by workers.
#[derive(Debug)]
pub struct PreparedTable {
    name: String,
    key_type: DataType,
    index: Arc<Index>,
    columns: Vec<(String, DataType, Arc<Picked>)>,
}

impl PreparedTable {
    /// Takes the wanted `columns` (name in the table, new name) of `keyed`.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns.
    pub fn new(keyed: &KeyedTable, columns: &[(String, String)]) -> Result<Self> {
        let KeyedTable {
            name: table, batch, ..
        } = keyed;
        let scope = Scope::of_schema(batch.schema());
        let mut prepared = Vec::new();
        for (name, output) in columns {
            let (data_type, slot) = find(table, &scope, name)?;
            prepared.push((output.clone(), data_type.clone(), keyed.picked(slot)));
        }
        Ok(PreparedTable {
            name: table.clone(),
            key_type: find(table, &scope, &keyed.key)?.0.clone(),
            index: Arc::clone(&keyed.index),
            columns: prepared,
        })
    }
}

fn find<'a>(table: &str, scope: &'a Scope, name: &str) -> Result<(&'a DataType, Slot)> {
    let found = scope.find(name);
    found.map_err(|error| error.hint(format!("the table is `{table}`")))
}

fn all_values(batch: &Batch, slot: Slot) -> Values {
    let (mut values, mut work) = (Values::default(), Work::default());
    batch
        .column(slot)
        .gather(&Selection::all(batch.rows()), &mut values, &mut work);
    values
}

fn doubled() -> Error {
    Error::invalid("a key of the lookup table occurs twice")
        .hint("keep one row per key; a lookup never multiplies rows")
}

fn index_keys(keys: &Values) -> Result<Index> {
    let valid = || (0..keys.len()).filter(|row| keys.is_valid(*row));
    if let (Physical::Text, Some(dictionary)) = (keys.physical, &keys.dictionary) {
        let mut rows = vec![ABSENT; dictionary.len()];
        for row in valid() {
            let cell = &mut rows[keys.keys[row] as usize];
            if std::mem::replace(cell, row as u32) != ABSENT {
                return Err(doubled());
            }
        }
        return Ok(Index::Text {
            dictionary: Arc::clone(dictionary),
            rows,
        });
    }
    if let Some(ranked) = RankedKeys::new(keys)? {
        return Ok(Index::Ranked(ranked));
    }
    let mut rows = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
    for row in valid() {
        if rows.insert(keys.ordered(row), row as u32).is_some() {
            return Err(doubled());
        }
    }
    Ok(Index::Hashed(rows))
}

/// Looks rows up; one per worker.
pub struct LookupJoin {
    table: Arc<PreparedTable>,
    key: Slot,
    key_name: String,
    /// Source dictionary and the table row of each of its codes.
    translated: (u64, Vec<u32>),
    keys: Values,
    found: Vec<u32>,
    before: Selection,
    output: Values,
}

impl LookupJoin {
    /// Looks the stream's column `key` up in `table`; its columns are added to `scope`.
    ///
    /// # Errors
    /// `SchemaMismatch` when the keys are of different types, unless both are integers.
    pub fn bind(table: Arc<PreparedTable>, key: &str, scope: &mut Scope) -> Result<Self> {
        let (key_type, slot) = scope.find(key)?;
        // Times, dates and booleans are kept as integers too, but of other units.
        let are_integers = key_type.is_integer() && table.key_type.is_integer();
        if key_type != &table.key_type && !are_integers {
            let message = format!(
                "`{key}` is {key_type}, the key of table `{}` is {}",
                table.name, table.key_type
            );
            return Err(Error::schema(message).hint("cast one of them"));
        }
        for (name, data_type, _) in &table.columns {
            if scope.find(name).is_ok() {
                let message = format!("the stream has a column `{name}` already");
                return Err(Error::invalid(message).hint("give the table's another name"));
            }
            scope.add(name, data_type.clone());
        }
        Ok(LookupJoin {
            table,
            key: slot,
            key_name: key.to_owned(),
            translated: (0, Vec::new()),
            keys: Values::default(),
            found: Vec::new(),
            before: Selection::default(),
            output: Values::default(),
        })
    }

    /// Table rows of the selected rows, [`ABSENT`] where there is none.
    fn look_up(&mut self, physical: Physical) {
        let (keys, found) = (&self.keys, &mut self.found);
        found.clear();
        match &*self.table.index {
            Index::Ranked(ranked) => {
                let same = Physical::of(&self.table.key_type).is_ok_and(|table| table == physical);
                if same && keys.validity.is_empty() {
                    return found.extend(keys.keys.iter().map(|key| ranked.row(*key)));
                }
                found.extend((0..keys.len()).map(|index| {
                    let key = table_key(keys, index, &self.table.key_type);
                    let key = key.and_then(|key| u64::try_from(key).ok());
                    key.map_or(ABSENT, |key| ranked.row(key))
                }));
            }
            Index::Hashed(rows) => found.extend((0..keys.len()).map(|index| {
                let key = table_key(keys, index, &self.table.key_type);
                key.and_then(|key| rows.get(&key).copied())
                    .unwrap_or(ABSENT)
            })),
            Index::Text { dictionary, rows } => {
                let Some(source) = &keys.dictionary else {
                    return;
                };
                translate(source, dictionary, rows, &mut self.translated);
                let table = &self.translated.1;
                found.extend((0..keys.len()).map(|index| match keys.is_valid(index) {
                    true => table[keys.keys[index] as usize],
                    false => ABSENT,
                }));
            }
        }
    }
}

/// The ordered key, in the table's type, of value `index`; `None` for null and out of range.
fn table_key(keys: &Values, index: usize, table_type: &DataType) -> Option<i128> {
    if !keys.is_valid(index) {
        return None;
    }
    match (keys.physical, Physical::of(table_type)) {
        (Physical::Integer { .. }, Ok(table @ Physical::Integer { .. })) => {
            table.key_of(keys.integer(index)).map(i128::from)
        }
        _ => Some(keys.ordered(index)),
    }
}

fn translate(
    source: &Dictionary,
    known: &Dictionary,
    rows: &[u32],
    translated: &mut (u64, Vec<u32>),
) {
    if translated.0 != source.id() {
        *translated = (source.id(), Vec::new());
    }
    let reader = source.read();
    for code in translated.1.len()..reader.len() {
        let found = known.find(reader.get(code as u32));
        translated.1.push(
            found
                .and_then(|code| rows.get(code as usize).copied())
                .unwrap_or(ABSENT),
        );
    }
}

impl Operator for LookupJoin {
    fn describe(&self) -> String {
        format!("lookup_join {} in {}", self.key_name, self.table.name)
    }

    fn push(&mut self, frame: &mut Frame, work: &mut Work) -> Result<()> {
        frame.selection.to_rows();
        let key = frame.column(self.key);
        let physical = key.physical();
        key.prefetch(&frame.selection);
        key.gather(&frame.selection, &mut self.keys, work);
        self.look_up(physical);
        std::mem::swap(&mut self.before, &mut frame.selection);
        let found = self.found.iter();
        let rows = self
            .before
            .list()
            .iter()
            .zip(found)
            .filter(|(_, found)| **found != ABSENT);
        frame
            .selection
            .set_rows(frame.batch.rows())
            .extend(rows.map(|(row, _)| *row));
        self.found.retain(|row| *row != ABSENT);
        for (_, data_type, values) in &self.table.columns {
            values.pick(&self.found, &mut self.output);
            let mut column: Chunk = frame.take_derived();
            let scattered = column.scatter(
                data_type,
                frame.batch.rows(),
                &frame.selection,
                &self.output,
            );
            frame.put_derived(column);
            scattered?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use arrow_schema::TimeUnit;

    use super::*;

    #[test]
    fn keys_of_other_units_are_refused() {
        let second: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let column = |data_type: &DataType| {
            let narrow = arrow_cast::cast(&second, &DataType::Int32).unwrap();
            let values = match data_type {
                DataType::Date32 => &narrow,
                _ => &second,
            };
            arrow_cast::cast(values, data_type).unwrap()
        };
        let timestamp = |unit| DataType::Timestamp(unit, None);
        let pairs = [
            (
                timestamp(TimeUnit::Microsecond),
                timestamp(TimeUnit::Millisecond),
            ),
            (timestamp(TimeUnit::Second), DataType::Int64),
            (DataType::Date32, DataType::Int32),
            (DataType::Date32, timestamp(TimeUnit::Second)),
        ];
        let bind = |key: &DataType, looked_up: &DataType| {
            let rows = RecordBatch::try_from_iter([("k", column(looked_up))]).unwrap();
            let keyed = KeyedTable::new(&LookupTable::new("t", rows), "k").unwrap();
            let prepared = Arc::new(PreparedTable::new(&keyed, &[]).unwrap());
            let rows = RecordBatch::try_from_iter([("s", column(key))]).unwrap();
            let encoder = BatchEncoder::new(&rows.schema()).unwrap().encode_new(&rows);
            let mut scope = Scope::of_schema(encoder.unwrap().schema());
            let bound = LookupJoin::bind(prepared, "s", &mut scope);
            bound.map(|_| ()).map_err(|error| error.kind())
        };
        for (one, other) in &pairs {
            let refused = Err(tersecades_columnar::error::ErrorKind::SchemaMismatch);
            assert_eq!(bind(one, other), refused, "{one} in {other}");
            assert_eq!(bind(other, one), refused, "{other} in {one}");
            assert_eq!(bind(one, one), Ok(()), "{one}");
        }
        assert_eq!(bind(&DataType::Int32, &DataType::Int64), Ok(()));
    }

    #[test]
    fn signed_keys_at_both_ends_are_found_whatever_the_type_of_the_stream() {
        let ends = [i64::MIN, i64::MAX].map(|end| [end, end.wrapping_add(1), end - end.signum()]);
        let near = |key: i64| Some(key.saturating_add(3));
        let tables = [
            vec![Some(3), None, Some(-2), Some(0), None, Some(127)],
            vec![None, Some(i64::MIN), near(i64::MIN), None],
            vec![Some(i64::MAX - 4), Some(i64::MAX), None],
            vec![None],
        ];
        let asked = ends.into_iter().flatten().chain(-130..130);
        let asked: Vec<Option<i64>> = asked.map(Some).chain([None, near(i64::MIN)]).collect();
        for table in tables {
            let keys: ArrayRef = Arc::new(Int64Array::from(table.clone()));
            let rows = RecordBatch::try_from_iter([("k", Arc::clone(&keys))]).unwrap();
            let keyed = KeyedTable::new(&LookupTable::new("t", rows), "k").unwrap();
            assert!(matches!(*keyed.index, Index::Ranked(_)), "{table:?}");
            let prepared = Arc::new(PreparedTable::new(&keyed, &[]).unwrap());
            for data_type in [DataType::Int64, DataType::Int8, DataType::UInt64] {
                let column: ArrayRef = Arc::new(Int64Array::from(asked.clone()));
                let column = arrow_cast::cast(&column, &data_type).unwrap();
                let fits = arrow_cast::cast(&column, &DataType::Int64).unwrap();
                let row = |key: Option<i64>| {
                    let place = table.iter().position(|known| *known == key);
                    place
                        .filter(|_| key.is_some())
                        .map_or(ABSENT, |row| row as u32)
                };
                let expected: Vec<u32> = fits.as_primitive::<Int64Type>().iter().map(row).collect();
                let rows = RecordBatch::try_from_iter([("s", column)]).unwrap();
                let mut encoder = BatchEncoder::new(&rows.schema()).unwrap();
                let batch = encoder.encode_new(&rows).unwrap();
                let mut scope = Scope::of_schema(batch.schema());
                let mut join = LookupJoin::bind(Arc::clone(&prepared), "s", &mut scope).unwrap();
                join.keys = all_values(&batch, 0);
                join.look_up(Physical::of(&data_type).unwrap());
                assert_eq!(join.found, expected, "{table:?} by {data_type}");
            }
        }
    }
}
