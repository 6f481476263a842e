//! `lookup_join`: adds columns of a table row found by key; rows without one are dropped.
//!
//! Integer keys within a narrow range are found by direct address, others by hash. Text keys are
//! looked up once per distinct text: codes of the stream's dictionary lead straight to table rows.

use std::sync::Arc;

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

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "lookup_join",
    summary: "adds columns of the table row with the same key; rows without one are dropped",
};

/// Cells of the direct-address table for each row of the table, at most.
const DIRECT_CELLS_PER_ROW: u64 = 16;

const ABSENT: u32 = u32::MAX;

/// From key to row of the table.
#[derive(Debug)]
enum Index {
    Direct {
        first: u64,
        rows: Vec<u32>,
    },
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
            batch,
            index: Arc::new(index),
        })
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
    columns: Vec<(String, DataType, Values)>,
}

impl PreparedTable {
    /// Decodes the wanted `columns` (name in the table, new name) of `keyed`.
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
            prepared.push((output.clone(), data_type.clone(), all_values(batch, slot)));
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
    if let Some(index) = address_keys(keys)? {
        return Ok(index);
    }
    let mut rows = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
    for row in valid() {
        if rows.insert(keys.ordered(row), row as u32).is_some() {
            return Err(doubled());
        }
    }
    Ok(Index::Hashed(rows))
}

/// Integer keys by direct address, where they lie close enough.
fn address_keys(keys: &Values) -> Result<Option<Index>> {
    if !matches!(keys.physical, Physical::Integer { .. }) {
        return Ok(None);
    }
    let valid = || {
        let keyed = keys.keys.iter().enumerate();
        keyed.filter(|(row, _)| keys.is_valid(*row))
    };
    let ends = valid().fold((u64::MAX, 0), |(low, high), (_, key)| {
        (low.min(*key), high.max(*key))
    });
    let first = ends.0.min(ends.1);
    let cells = (ends.1 - first).saturating_add(1);
    if cells > (keys.len() as u64 + 64) * DIRECT_CELLS_PER_ROW {
        return Ok(None);
    }
    let mut rows = vec![ABSENT; cells as usize];
    for (row, key) in valid() {
        let cell = &mut rows[(key - first) as usize];
        if std::mem::replace(cell, row as u32) != ABSENT {
            return Err(doubled());
        }
    }
    Ok(Some(Index::Direct { first, rows }))
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
    /// `SchemaMismatch` when the keys are of different kinds.
    pub fn bind(table: Arc<PreparedTable>, key: &str, scope: &mut Scope) -> Result<Self> {
        let (key_type, slot) = scope.find(key)?;
        let shape = |data_type: &DataType| match Physical::of(data_type) {
            Ok(Physical::Integer { .. }) => "integer",
            Ok(Physical::Text) => "text",
            _ => "other",
        };
        let same = key_type == &table.key_type
            || (shape(key_type) == "integer" && shape(&table.key_type) == "integer");
        if !same {
            let message = format!(
                "`{key}` is {key_type}, the key of table `{}` is {}",
                table.name, table.key_type
            );
            return Err(Error::schema(message).hint("cast one of them"));
        }
        for (name, data_type, _) in &table.columns {
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
            Index::Direct { first, rows } => {
                let same = Physical::of(&self.table.key_type).is_ok_and(|table| table == physical);
                if same && keys.validity.is_empty() {
                    let row = |key: &u64| rows.get(key.wrapping_sub(*first) as usize).copied();
                    found.extend(keys.keys.iter().map(|key| row(key).unwrap_or(ABSENT)));
                    return;
                }
                found.extend((0..keys.len()).map(|index| {
                    let key = table_key(keys, index, &self.table.key_type);
                    let cell = key.and_then(|key| usize::try_from(key - i128::from(*first)).ok());
                    cell.and_then(|cell| rows.get(cell).copied())
                        .unwrap_or(ABSENT)
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

/// Picks `values` at `rows`.
fn pick(values: &Values, rows: &[u32], out: &mut Values) {
    out.reset(values.physical);
    out.dictionary = values.dictionary.as_ref().map(Arc::clone);
    match values.physical {
        Physical::Wide => out
            .wide
            .extend(rows.iter().map(|row| values.wide[*row as usize])),
        _ => out
            .keys
            .extend(rows.iter().map(|row| values.keys[*row as usize])),
    }
    if !values.validity.is_empty() {
        out.validity.fill(rows.len(), true);
        for (index, row) in rows.iter().enumerate() {
            out.validity.set(index, values.validity.get(*row as usize));
        }
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
            pick(values, &self.found, &mut self.output);
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
