//! The columns of a store and what they are for: key, time, primary key.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;
use tersecades_columnar::types::{Physical, logical_type};
use tersecades_columnar::wire;

use crate::bytes::{Put as _, Take};

/// The column that marks deleted rows of stores with a primary key.
pub(crate) const DELETED: &str = "__deleted";

const NO_COLUMN: u32 = u32::MAX;

/// Columns and what they are for.
///
/// # Examples
/// ```
/// use arrow_schema::{DataType, Field, Schema};
/// use tersecades_store::StoreSchema;
/// let fields = Schema::new(vec![
///     Field::new("k", DataType::Int64, false),
///     Field::new("v", DataType::Float64, true),
/// ]);
/// let schema = StoreSchema::new(&fields).unwrap().key(&["k"]).unwrap();
/// assert_eq!(schema.fields().fields().len(), 2);
/// assert!(schema.time("v").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSchema {
    fields: SchemaRef,
    key: Vec<usize>,
    time: Option<usize>,
    is_primary: bool,
}

impl StoreSchema {
    /// Columns of `fields`; rows lie in the order of their arrival.
    ///
    /// # Errors
    /// `Unsupported` for types that cannot be encoded, `InvalidArgument` for a name that stands
    /// twice or is taken.
    pub fn new(fields: &Schema) -> Result<Self> {
        let mut logical: Vec<Field> = Vec::with_capacity(fields.fields().len());
        for field in fields.fields() {
            let name = field.name();
            let data_type = logical_type(field.data_type());
            Physical::of(&data_type).map_err(|error| error.column(name))?;
            if name == DELETED || logical.iter().any(|other| other.name() == name) {
                return Err(Error::invalid("the name of a column is taken").column(name));
            }
            logical.push(Field::new(name, data_type, field.is_nullable()));
        }
        if logical.is_empty() {
            return Err(Error::invalid("a store needs a column"));
        }
        Ok(StoreSchema {
            fields: Arc::new(Schema::new(logical)),
            key: Vec::new(),
            time: None,
            is_primary: false,
        })
    }

    /// Sorts by these columns first; rows that are equal in them are all kept.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns.
    pub fn key(mut self, names: &[&str]) -> Result<Self> {
        self.key = names
            .iter()
            .map(|name| self.position(name))
            .collect::<Result<_>>()?;
        Ok(self)
    }

    /// Sorts by these columns and keeps one row for each of their values: the last written.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns and those that may be null.
    pub fn primary_key(self, names: &[&str]) -> Result<Self> {
        let mut schema = self.key(names)?;
        let nullable = |index: &&usize| schema.fields.field(**index).is_nullable();
        if let Some(index) = schema.key.iter().find(nullable) {
            let name = schema.fields.field(*index).name();
            return Err(Error::invalid("a column of a primary key may not be null")
                .column(name)
                .hint("declare it NOT NULL"));
        }
        schema.is_primary = !schema.key.is_empty();
        Ok(schema)
    }

    /// Which column says when a row happened; rows sort by it after the key.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns and types that are no time.
    pub fn time(mut self, name: &str) -> Result<Self> {
        let index = self.position(name)?;
        match self.fields.field(index).data_type() {
            DataType::Timestamp(..) | DataType::Int64 => {}
            other => {
                return Err(Error::invalid(format!("values of {other} are no time"))
                    .column(name)
                    .hint("a timestamp or a 64-bit integer is"));
            }
        }
        self.time = Some(index);
        Ok(self)
    }

    /// The columns.
    pub fn fields(&self) -> &SchemaRef {
        &self.fields
    }

    /// Positions of the key's columns.
    pub fn key_columns(&self) -> &[usize] {
        &self.key
    }

    /// Position of the column that says when a row happened.
    pub fn time_column(&self) -> Option<usize> {
        self.time
    }

    /// A length of time in units of the time column; an integer counts milliseconds.
    ///
    /// # Errors
    /// `InvalidArgument` without a time column, and for lengths that are no number of units.
    pub fn time_ticks(&self, length: Duration) -> Result<i64> {
        let time = self.time.map(|time| self.fields.field(time).data_type());
        let tick = match time {
            None => return Err(Error::invalid("the store has no time column")),
            Some(DataType::Timestamp(TimeUnit::Second, _)) => Duration::from_secs(1),
            Some(DataType::Timestamp(TimeUnit::Microsecond, _)) => Duration::from_micros(1),
            Some(DataType::Timestamp(TimeUnit::Nanosecond, _)) => Duration::from_nanos(1),
            Some(_) => Duration::from_millis(1),
        };
        let (length_ns, tick_ns) = (length.as_nanos(), tick.as_nanos());
        let ticks = i64::try_from(length_ns / tick_ns).ok();
        ticks
            .filter(|_| length_ns.is_multiple_of(tick_ns))
            .ok_or_else(|| {
                Error::invalid(format!(
                    "{length:?} is no number of units of the time column"
                ))
            })
    }

    /// The time of the clock, to the second, in units of the time column; `None` where that is no
    /// timestamp, or has no number for it.
    pub(crate) fn now(&self) -> Option<i64> {
        match self.fields.field(self.time?).data_type() {
            DataType::Timestamp(..) => {
                let now = SystemTime::now()
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .ok()?;
                self.time_ticks(Duration::from_secs(now.as_secs())).ok()
            }
            _ => None,
        }
    }

    /// Whether there is one row for each key.
    pub fn is_primary(&self) -> bool {
        self.is_primary
    }

    /// Columns by which rows are sorted: the key, then the time.
    pub(crate) fn sort_columns(&self) -> Vec<usize> {
        let mut columns = self.key.clone();
        if let Some(time) = self
            .time
            .filter(|time| !columns.contains(time) && !self.is_primary)
        {
            columns.push(time);
        }
        columns
    }

    /// Columns of the files: those of the schema, and the mark of deleted rows.
    pub(crate) fn stored(&self) -> SchemaRef {
        if !self.is_primary {
            return Arc::clone(&self.fields);
        }
        let deleted = Arc::new(Field::new(DELETED, DataType::Boolean, false));
        let fields = self.fields.fields().iter().cloned().chain([deleted]);
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Position of the column `name`.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the nearest.
    pub fn position(&self, name: &str) -> Result<usize> {
        self.fields.index_of(name).map_err(|_| {
            let names: Vec<&str> = self
                .fields
                .fields()
                .iter()
                .map(|f| f.name().as_str())
                .collect();
            let error = Error::invalid(format!("the store has no column `{name}`"));
            match nearest(name, &names) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("the columns are {}", names.join(", "))),
            }
        })
    }

    /// The schema with one more column, null in rows that are there already.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is taken or a column that may not be null.
    pub fn with_column(&self, name: &str, data_type: &DataType) -> Result<Self> {
        let added = Arc::new(Field::new(name, data_type.clone(), true));
        let fields = self.fields.fields().iter().cloned().chain([added]);
        let fields = Schema::new(fields.collect::<Vec<_>>());
        Ok(StoreSchema {
            fields: StoreSchema::new(&fields)?.fields,
            ..self.clone()
        })
    }

    /// Appends the bytes of the schema.
    ///
    /// # Errors
    /// What encoding says.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.put_blob(&write_fields(&self.fields)?)?;
        out.put_u8(u8::from(self.is_primary));
        out.put_u32(self.time.map_or(NO_COLUMN, |index| index as u32));
        out.put_u32(self.key.len() as u32);
        self.key.iter().for_each(|index| out.put_u32(*index as u32));
        Ok(())
    }

    /// Takes a schema off the front of `bytes`.
    ///
    /// # Errors
    /// `Corrupt` for bytes that [`StoreSchema::write`] cannot have written.
    pub(crate) fn read(bytes: &mut Take<'_>) -> Result<Self> {
        let wrong = || Error::corrupt("the columns of a store do not fit together");
        let fields = read_fields(bytes.blob()?)?;
        let schema = StoreSchema::new(&fields).map_err(|_| wrong())?;
        let is_primary = match bytes.u8()? {
            0 => false,
            1 => true,
            _ => return Err(wrong()),
        };
        let name = |index: u32| {
            let field = fields.fields().get(index as usize);
            field.map(|field| field.name().as_str()).ok_or_else(wrong)
        };
        let time = bytes.u32()?;
        let count = bytes.count(4)?;
        let key = (0..count).map(|_| name(bytes.u32()?));
        let key = key.collect::<Result<Vec<_>>>()?;
        let keyed = match is_primary {
            true => schema.primary_key(&key),
            false => schema.key(&key),
        };
        let schema = keyed.map_err(|_| wrong())?;
        match time {
            NO_COLUMN => Ok(schema),
            time => schema.time(name(time)?).map_err(|_| wrong()),
        }
    }
}

/// Names and types as a batch without rows.
pub(crate) fn write_fields(fields: &SchemaRef) -> Result<Vec<u8>> {
    let empty = RecordBatch::new_empty(Arc::clone(fields));
    let mut bytes = Vec::new();
    wire::write_batch(&BatchEncoder::new(fields)?.encode_new(&empty)?, &mut bytes)?;
    Ok(bytes)
}

/// What [`write_fields`] wrote.
pub(crate) fn read_fields(bytes: &[u8]) -> Result<SchemaRef> {
    Ok(Arc::clone(wire::read_batch(bytes)?.schema()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_read_as_they_were_written() {
        let fields = Schema::new(vec![
            Field::new("host", DataType::Utf8, false),
            Field::new("ts", DataType::Int64, true),
        ]);
        let plain = StoreSchema::new(&fields).unwrap();
        let timed = plain.clone().key(&["host"]).unwrap().time("ts").unwrap();
        let primary = timed.clone().primary_key(&["host"]).unwrap();
        assert_eq!(primary.stored().fields().len(), 3);
        for schema in [plain, timed, primary] {
            let mut bytes = Vec::new();
            schema.write(&mut bytes).unwrap();
            let mut take = Take::new(&bytes);
            assert_eq!(StoreSchema::read(&mut take).unwrap(), schema);
            take.end().unwrap();
        }
    }
}
