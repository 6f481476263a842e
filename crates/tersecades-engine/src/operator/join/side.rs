//! The two inputs of a join: key columns made comparable, and how columns are named.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_row::Rows;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use tersecades_columnar::error::{Error, Result};

use super::kind::{JoinKind, JoinOptions};
use crate::error_bound::ResultBounds;
use crate::expression::Expression;
use crate::frame::Scope;
use crate::operator::row::key_number::{ABSENT, KeyNumbers};
use crate::operator::row::keys::{RowKeys, any_null};

/// Key columns of one input.
pub struct SideKeys {
    slots: Vec<usize>,
    types: Vec<DataType>,
    keys: RowKeys,
    null_equals_null: bool,
}

/// The keys of some rows.
pub struct Keyed {
    keys: Option<Rows>,
    /// The key of each row among `keys`, where rows share them.
    shared: Option<Vec<usize>>,
    excluded: Vec<bool>,
}

impl Keyed {
    /// The key of `row`; `None` when nothing equals it.
    pub fn key(&self, row: usize) -> Option<&[u8]> {
        if self.excluded.get(row).copied().unwrap_or(false) {
            return None;
        }
        let at = self.shared.as_ref().map_or(row, |shared| shared[row]);
        Some(
            self.keys
                .as_ref()
                .map_or(&[][..], |keys| keys.row(at).data()),
        )
    }

    /// What `found` says of the key of each of `rows` rows, asked once for keys that rows share;
    /// `absent` for rows that nothing equals.
    pub fn map<T: Copy>(
        &self,
        rows: usize,
        absent: T,
        mut found: impl FnMut(&[u8]) -> T,
    ) -> Vec<T> {
        let (Some(keys), Some(shared)) = (&self.keys, &self.shared) else {
            let of_row = |row| self.key(row).map_or(absent, &mut found);
            return (0..rows).map(of_row).collect();
        };
        let distinct: Vec<T> = keys.iter().map(|key| found(key.data())).collect();
        let excluded = |row| self.excluded.get(row).copied().unwrap_or(false);
        let of_row = |(row, at): (usize, &usize)| match excluded(row) {
            true => absent,
            false => distinct[*at],
        };
        shared.iter().enumerate().map(of_row).collect()
    }
}

impl SideKeys {
    /// Computes the keys of `rows`.
    ///
    /// # Errors
    /// `SchemaMismatch` when the columns are of other types.
    pub fn of(&self, rows: &RecordBatch) -> Result<Keyed> {
        let columns = self.columns(rows);
        let excluded = self.excluded(&columns, rows.num_rows());
        let (keys, shared) = match self.distinct(&columns) {
            Some((values, codes)) => (Some(self.keys.of(&[values])?), Some(codes)),
            None if columns.is_empty() => (None, None),
            None => (Some(self.keys.of(&columns)?), None),
        };
        Ok(Keyed {
            keys,
            shared,
            excluded,
        })
    }

    /// No keys yet, to be numbered.
    ///
    /// # Errors
    /// `Unsupported` for types without an order.
    pub fn key_numbers(&self) -> Result<KeyNumbers> {
        KeyNumbers::new(self.types.iter().cloned())
    }

    /// What `number` says of the key of each row, asked once for keys that rows share; [`ABSENT`]
    /// for those that nothing equals.
    ///
    /// # Errors
    /// What `number` says.
    pub fn numbers(
        &self,
        rows: &RecordBatch,
        number: impl FnOnce(&[ArrayRef], usize) -> Result<Vec<u32>>,
    ) -> Result<Vec<u32>> {
        let columns = self.columns(rows);
        let excluded = self.excluded(&columns, rows.num_rows());
        let is_out = |row: usize| excluded.get(row).copied().unwrap_or(false);
        if let Some((values, codes)) = self.distinct(&columns) {
            let numbers = number(&[Arc::clone(&values)], values.len())?;
            let of_row = |(row, at): (usize, &usize)| match is_out(row) {
                true => ABSENT,
                false => numbers[*at],
            };
            return Ok(codes.iter().enumerate().map(of_row).collect());
        }
        if !excluded.contains(&true) {
            return number(&columns, rows.num_rows());
        }
        let some = (0..rows.num_rows() as u32).filter(|row| !is_out(*row as usize));
        let some = UInt32Array::from_iter_values(some);
        let columns = columns.iter().map(|column| take(column, &some, None));
        let columns: Vec<ArrayRef> = columns.collect::<std::result::Result<_, _>>()?;
        let mut numbers = number(&columns, some.len())?.into_iter();
        let of_row = |is_out: &bool| match is_out {
            true => ABSENT,
            false => numbers.next().unwrap_or(ABSENT),
        };
        Ok(excluded.iter().map(of_row).collect())
    }

    fn columns(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        let columns = self.slots.iter().map(|slot| Arc::clone(rows.column(*slot)));
        columns.collect()
    }

    /// Which rows nothing equals; nothing where that holds for none.
    fn excluded(&self, columns: &[ArrayRef], rows: usize) -> Vec<bool> {
        match self.null_equals_null || columns.is_empty() {
            true => Vec::new(),
            false => any_null(columns, rows),
        }
    }

    /// Values of the only column, which has a dictionary, and which of them each row has; `None`
    /// where there are more values than rows, or where null is a key.
    fn distinct(&self, columns: &[ArrayRef]) -> Option<(ArrayRef, Vec<usize>)> {
        let [column] = columns else { return None };
        let coded = column.as_any_dictionary_opt()?;
        let values = coded.values();
        let fits = !values.is_empty() && values.len() <= column.len();
        let without_null = !self.null_equals_null || column.logical_null_count() == 0;
        (fits && without_null).then(|| (Arc::clone(values), coded.normalized_keys()))
    }
}

/// Key columns of both inputs, which must be of kinds that compare.
///
/// # Errors
/// `InvalidArgument` for unknown columns, `SchemaMismatch` for types that do not compare.
pub fn bind_keys(
    (left, right): (&Schema, &Schema),
    on: &[(String, String)],
    null_equals_null: bool,
) -> Result<(SideKeys, SideKeys)> {
    let scopes = (Scope::of_schema(left), Scope::of_schema(right));
    let (mut slots, mut types) = ((Vec::new(), Vec::new()), Vec::new());
    for (left, right) in on {
        let (left_type, left_slot) = scopes.0.find(left)?;
        let (right_type, right_slot) = scopes.1.find(right)?;
        slots.0.push(left_slot);
        slots.1.push(right_slot);
        types.push(common_type(left_type, right_type).ok_or_else(|| {
            Error::schema(format!(
                "`{left}` is {left_type}, `{right}` is {right_type}: they do not compare"
            ))
            .hint("cast one of them")
        })?);
    }
    let side = |slots| -> Result<SideKeys> {
        Ok(SideKeys {
            slots,
            keys: RowKeys::unordered(types.iter().cloned())?,
            types: types.clone(),
            null_equals_null,
        })
    };
    Ok((side(slots.0)?, side(slots.1)?))
}

/// The type both kinds of key fit without loss.
fn common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    let pair = (left, right);
    match pair {
        _ if left == right => Some(left.clone()),
        (DataType::UInt64, other) | (other, DataType::UInt64) if other.is_integer() => {
            Some(DataType::Decimal128(20, 0))
        }
        _ if left.is_integer() && right.is_integer() => Some(DataType::Int64),
        _ if left.is_floating() && right.is_floating() => Some(DataType::Float64),
        _ => None,
    }
}

/// What comes out of a join, and under which names.
#[derive(Debug, Clone)]
pub struct JoinColumns {
    /// The columns of both inputs, as a residual condition sees them.
    pub both: SchemaRef,
    /// The columns that come out.
    pub output: SchemaRef,
    /// Columns of the left input.
    pub left: usize,
    /// Which sides come out.
    pub kind: JoinKind,
    /// Names of the right input and names in the join.
    shown: Vec<(String, String)>,
    /// What lossy columns do to them.
    bounds: ResultBounds,
}

impl JoinColumns {
    /// Names the columns of a join.
    ///
    /// # Errors
    /// `SchemaMismatch` when two would have one name.
    pub fn new(
        (left, right): (&Schema, &Schema),
        kind: JoinKind,
        options: &JoinOptions,
    ) -> Result<Self> {
        let taken = |name: &str| left.fields().iter().any(|field| field.name() == name);
        let mut shown: Vec<(String, String)> = Vec::new();
        for field in right.fields() {
            let mut name = field.name().clone();
            if taken(&name) {
                name += &options.suffix;
            }
            if taken(&name) || shown.iter().any(|(_, known)| *known == name) {
                let message = format!("two columns of the join are named `{name}`");
                return Err(Error::schema(message).hint("rename one, or give another suffix"));
            }
            shown.push((field.name().clone(), name));
        }
        Ok(Self::of((left, right), kind, shown))
    }

    /// The name in the join of the right column `name`.
    pub fn shown(&self, name: &str) -> String {
        let found = self.shown.iter().find(|(original, _)| original == name);
        found.map_or_else(|| name.to_owned(), |(_, shown)| shown.clone())
    }

    /// The same names over inputs that lack some columns.
    pub fn over(&self, inputs: (&Schema, &Schema)) -> Self {
        Self::of(inputs, self.kind, self.shown.clone()).marked(self.bounds.clone())
    }

    /// The same columns, whose metadata says what lossy ones do to them.
    pub fn marked(self, bounds: ResultBounds) -> Self {
        JoinColumns {
            both: bounds.mark(&self.both),
            output: bounds.mark(&self.output),
            bounds,
            ..self
        }
    }

    fn of((left, right): (&Schema, &Schema), kind: JoinKind, shown: Vec<(String, String)>) -> Self {
        let nullable =
            |name: &str, field: &Field| field.clone().with_name(name).with_nullable(true);
        let lefts = left
            .fields()
            .iter()
            .map(|field| nullable(field.name(), field));
        let name_of = |name: &String| {
            let found = shown.iter().find(|(original, _)| original == name);
            found.map_or_else(|| name.clone(), |(_, shown)| shown.clone())
        };
        let rights = right.fields().iter();
        let rights = rights.map(|field| nullable(&name_of(field.name()), field));
        let both: Vec<Field> = lefts.chain(rights).collect();
        let left = left.fields().len();
        let output = match (kind.shows_left(), kind.shows_right()) {
            (true, true) => both.clone(),
            (true, false) => both[..left].to_vec(),
            _ => both[left..].to_vec(),
        };
        JoinColumns {
            both: Arc::new(Schema::new(both)),
            output: Arc::new(Schema::new(output)),
            left,
            kind,
            shown,
            bounds: ResultBounds::default(),
        }
    }

    /// Leaves of the columns that come out only the `wanted` ones; their positions in the left and
    /// in the right input.
    ///
    /// # Errors
    /// `SchemaMismatch` where the inputs lack columns.
    pub fn show(&mut self, wanted: Option<&[String]>) -> Result<(Vec<usize>, Vec<usize>)> {
        let is_wanted = |at: &usize| {
            let name = self.both.field(*at).name();
            wanted.is_none_or(|names| names.contains(name))
        };
        let of = |range: Range<usize>, is_shown: bool| -> Vec<usize> {
            range.filter(|_| is_shown).filter(is_wanted).collect()
        };
        let lefts = of(0..self.left, self.kind.shows_left());
        let rights = of(self.left..self.both.fields().len(), self.kind.shows_right());
        let all = [lefts.as_slice(), rights.as_slice()].concat();
        let output = self.both.project(&all)?;
        self.output = Arc::new(output);
        let rights = rights.into_iter().map(|at| at - self.left).collect();
        Ok((lefts, rights))
    }

    /// The columns of both inputs, by their own names, that `needed` ones of each, the `wanted`
    /// ones of the output and the residual condition are made of.
    pub fn inputs_of(
        &self,
        wanted: Option<&[String]>,
        needed: (&[String], &[String]),
        residual: Option<&Expression>,
    ) -> (Vec<String>, Vec<String>) {
        let read: Vec<&str> = residual.map_or_else(Vec::new, Expression::columns);
        let asked = |shown: &String, visible: bool| {
            read.contains(&shown.as_str())
                || visible && wanted.is_none_or(|names| names.contains(shown))
        };
        let (left, right) = (self.kind.shows_left(), self.kind.shows_right());
        let lefts = self.both.fields()[..self.left].iter().map(|f| f.name());
        let lefts = lefts.filter(|name| needed.0.contains(name) || asked(name, left));
        let rights = self.shown.iter();
        let rights = rights.filter(|(name, shown)| needed.1.contains(name) || asked(shown, right));
        (
            lefts.cloned().collect(),
            rights.map(|(name, _)| name.clone()).collect(),
        )
    }
}
