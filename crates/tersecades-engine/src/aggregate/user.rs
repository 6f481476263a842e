//! Aggregates from outside: what embeds the engine says how whole arrays change its state.
//!
//! A state holds all groups of a pane. It can write itself as Arrow arrays with one row for each
//! group, and take such rows in: with these two the engine merges panes and workers, slides
//! windows, and takes and restores snapshots.

use std::any::Any;
use std::fmt::Debug;
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, UInt64Array,
};
use arrow_cast::cast;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::take::take;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;

use super::Aggregate;
use super::collected::{CollectWork, Collection, Finish, Rows, collected};
use crate::operator::window_aggregate::pane::NO_GROUP;
use crate::operator::window_aggregate::plan::Argument;
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::guard::guard;
use crate::source::ipc_bounds::check_stream;

/// An aggregate that the engine does not have.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float64Array, cast::AsArray, types::Float64Type};
/// use arrow_schema::DataType;
/// use tersecades_engine::Result;
/// use tersecades_engine::aggregate::{UserAggregate, UserState};
/// use tersecades_engine::expression::col;
/// use tersecades_engine::plan::AggregateCall;
///
/// #[derive(Debug)]
/// struct Product;
///
/// #[derive(Debug, Default)]
/// struct Products(Vec<f64>);
///
/// impl UserAggregate for Product {
///     fn name(&self) -> &str {
///         "product"
///     }
///     fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
///         Ok(DataType::Float64)
///     }
///     fn start(&self, _arguments: &[DataType]) -> Box<dyn UserState> {
///         Box::new(Products::default())
///     }
/// }
///
/// impl UserState for Products {
///     fn update(&mut self, arguments: &[ArrayRef], ids: &[u32], groups: usize) -> Result<()> {
///         self.0.resize(groups, 1.0);
///         for (value, id) in arguments[0].as_primitive::<Float64Type>().iter().zip(ids) {
///             self.0[*id as usize] *= value.unwrap_or(1.0);
///         }
///         Ok(())
///     }
///     fn merge(&mut self, state: &[ArrayRef], ids: &[u32], groups: usize) -> Result<()> {
///         self.update(state, ids, groups)
///     }
///     fn state(&self, groups: usize) -> Result<Vec<ArrayRef>> {
///         Ok(vec![self.finish(groups)?])
///     }
///     fn finish(&self, groups: usize) -> Result<ArrayRef> {
///         let mut products = self.0.clone();
///         products.resize(groups, 1.0);
///         Ok(Arc::new(Float64Array::from(products)))
///     }
///     fn byte_size(&self) -> usize {
///         self.0.capacity() * size_of::<f64>()
///     }
/// }
/// let call = AggregateCall::user(Arc::new(Product), [col("gain")]);
/// assert_eq!(call.output, "product(gain)");
/// ```
pub trait UserAggregate: Debug + Send + Sync {
    /// The name that plans and errors show.
    fn name(&self) -> &str;

    /// The type of the result for arguments of these types.
    ///
    /// # Errors
    /// `SchemaMismatch` when the aggregate does not take them.
    fn return_type(&self, arguments: &[DataType]) -> Result<DataType>;

    /// Whether it asks where rows stand: the last argument of its states is then the place of each
    /// row in its stream, of type `UInt64`, besides those of [`UserAggregate::return_type`].
    fn by_place(&self) -> bool {
        false
    }

    /// A state without groups.
    fn start(&self, arguments: &[DataType]) -> Box<dyn UserState>;
}

/// The state of all groups of a pane, which have ids from 0 on.
///
/// Rows arrive in any order and states are merged in any; an answer that depends on it depends on
/// the number of workers. `groups` is the number of groups there are, those without rows included.
pub trait UserState: Debug + Send {
    /// Adds rows: row `i` of `arguments` to group `ids[i]`. Nulls are among them.
    ///
    /// # Errors
    /// Whatever is wrong with a value.
    fn update(&mut self, arguments: &[ArrayRef], ids: &[u32], groups: usize) -> Result<()>;

    /// Adds what [`UserState::state`] of another state gave: row `i` to group `ids[i]`.
    ///
    /// # Errors
    /// Whatever is wrong with a row.
    fn merge(&mut self, state: &[ArrayRef], ids: &[u32], groups: usize) -> Result<()>;

    /// Everything that is known, in columns with a row for each group.
    ///
    /// # Errors
    /// Whatever keeps it from being written.
    fn state(&self, groups: usize) -> Result<Vec<ArrayRef>>;

    /// The results, one for each group.
    ///
    /// # Errors
    /// Whatever is wrong with a result.
    fn finish(&self, groups: usize) -> Result<ArrayRef>;

    /// Bytes of memory held.
    fn byte_size(&self) -> usize;
}

/// How the results of any [`UserAggregate`] are read.
#[derive(Debug)]
pub(crate) struct FromOutside;

impl Aggregate for FromOutside {
    fn name(&self) -> &'static str {
        "an aggregate from outside"
    }

    fn summary(&self) -> &'static str {
        "an aggregate from outside"
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        Ok(argument.clone())
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let collection: &UserCollection = collected(from)?;
        let results = collection.finish()?;
        let (returned, promised) = (logical_type(results.data_type()), &finish.reading.data_type);
        if results.len() != collection.groups || returned != logical_type(promised) {
            return Err(Error::internal(format!(
                "{} gave {} results of {returned} for {} groups, promised {promised}",
                collection.aggregate.name(),
                results.len(),
                collection.groups
            ))
            .hint("mend the aggregate: a result for each group, of the type it returns"));
        }
        let order = UInt32Array::from(finish.order.to_vec());
        Ok(cast(&take(&results, &order, None)?, promised)?)
    }
}

/// An empty collection of `aggregate`.
pub(super) fn start(
    aggregate: &Arc<dyn UserAggregate>,
    arguments: &[&Argument],
) -> Box<dyn Collection> {
    let types = arguments.iter().map(|argument| argument.data_type.clone());
    let types: Vec<DataType> = types.collect();
    Box::new(UserCollection {
        state: aggregate.start(&types),
        aggregate: Arc::clone(aggregate),
        types,
        groups: 0,
        failure: None,
    })
}

/// The state of one pane, and what went wrong with it.
#[derive(Debug)]
struct UserCollection {
    aggregate: Arc<dyn UserAggregate>,
    types: Vec<DataType>,
    state: Box<dyn UserState>,
    groups: usize,
    /// The first error of a merge, which appears with the results.
    failure: Option<Error>,
}

impl UserCollection {
    fn named(&self, error: Error) -> Error {
        let message = format!("{}: {}", self.aggregate.name(), error.message());
        match error.hint_text() {
            Some(hint) => Error::new(error.kind(), message).hint(hint),
            None => Error::new(error.kind(), message),
        }
    }

    fn finish(&self) -> Result<ArrayRef> {
        match &self.failure {
            Some(error) => Err(error.clone()),
            None => {
                let finished = self.state.finish(self.groups);
                finished.map_err(|error| self.named(error))
            }
        }
    }

    fn state(&self) -> Result<Vec<ArrayRef>> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        let state = self.state.state(self.groups);
        let state = state.map_err(|error| self.named(error))?;
        match state.iter().all(|column| column.len() == self.groups) {
            true => Ok(state),
            false => Err(Error::internal(format!(
                "{}: the state has no row for each group",
                self.aggregate.name()
            ))),
        }
    }

    fn take_in(&mut self, state: Result<Vec<ArrayRef>>, targets: &[u32]) {
        let groups = self.groups;
        let merged = state.and_then(|state| {
            let (state, targets) = without_left_out(state, targets)?;
            self.state.merge(&state, &targets, groups)
        });
        if let Err(error) = merged {
            let error = self.named(error);
            self.failure.get_or_insert(error);
        }
    }
}

/// The rows of `state` that a merge takes, and where to.
fn without_left_out(state: Vec<ArrayRef>, targets: &[u32]) -> Result<(Vec<ArrayRef>, Vec<u32>)> {
    if !targets.contains(&NO_GROUP) {
        return Ok((state, targets.to_vec()));
    }
    let taken: Vec<bool> = targets.iter().map(|target| *target != NO_GROUP).collect();
    let taken = BooleanArray::from(taken);
    let state: std::result::Result<Vec<ArrayRef>, _> = state
        .iter()
        .map(|column| arrow_select::filter::filter(column, &taken))
        .collect();
    let targets = targets.iter().copied();
    Ok((
        state?,
        targets.filter(|target| *target != NO_GROUP).collect(),
    ))
}

impl Collection for UserCollection {
    fn grow(&mut self, groups: usize) {
        self.groups = groups;
    }

    fn clear(&mut self) {
        let fresh = self.aggregate.start(&self.types);
        *self = UserCollection {
            state: fresh,
            aggregate: Arc::clone(&self.aggregate),
            types: std::mem::take(&mut self.types),
            groups: 0,
            failure: None,
        };
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let mut arguments = Vec::with_capacity(self.types.len());
        for (index, data_type) in self.types.iter().enumerate() {
            let array = rows.column(index).to_arrow(rows.within, work.1)?;
            arguments.push(cast(&array, data_type)?);
        }
        let count = rows.within.count();
        if self.aggregate.by_place() {
            let mut places = Vec::with_capacity(count);
            rows.within
                .for_each(|row| places.push(rows.rows_before + row as u64));
            arguments.push(Arc::new(UInt64Array::from(places)));
        }
        let one_group;
        let ids = match rows.ids.len() == count {
            true => rows.ids,
            false => {
                one_group = vec![0; count];
                &one_group
            }
        };
        let updated = self.state.update(&arguments, ids, self.groups);
        updated.map_err(|error| self.named(error))
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        if let Ok(other) = collected::<UserCollection>(other) {
            self.take_in(other.state(), targets);
        }
    }

    fn byte_size(&self) -> usize {
        self.state.byte_size()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        match self.state().and_then(|state| to_bytes(state, self.groups)) {
            Ok(bytes) => {
                out.u64(1);
                out.blob(&bytes);
            }
            Err(error) => {
                out.u64(0);
                out.blob(error.to_string().as_bytes());
            }
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        self.groups = groups;
        let (whole, bytes) = (from.u64()? == 1, from.blob()?);
        if !whole {
            let error = String::from_utf8_lossy(bytes);
            return Err(Error::corrupt(format!("no state was written: {error}")));
        }
        guard("aggregate state", || {
            let state = from_bytes(bytes)?;
            if state.iter().any(|column| column.len() != groups) {
                return Err(Error::corrupt("a state of other groups"));
            }
            let ids: Vec<u32> = (0..groups as u32).collect();
            self.take_in(Ok(state), &ids);
            self.failure.take().map_or(Ok(()), Err)
        })
    }

    fn copy(&self) -> Box<dyn Collection> {
        let mut copy = UserCollection {
            state: self.aggregate.start(&self.types),
            aggregate: Arc::clone(&self.aggregate),
            types: self.types.clone(),
            groups: self.groups,
            failure: None,
        };
        let ids: Vec<u32> = (0..self.groups as u32).collect();
        copy.take_in(self.state(), &ids);
        Box::new(copy)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Columns as an Arrow IPC stream.
fn to_bytes(state: Vec<ArrayRef>, groups: usize) -> Result<Vec<u8>> {
    let fields = state
        .iter()
        .enumerate()
        .map(|(index, column)| Field::new(index.to_string(), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(groups));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), state, &options)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

fn from_bytes(bytes: &[u8]) -> Result<Vec<ArrayRef>> {
    check_stream(&mut Cursor::new(bytes))?;
    let mut reader = StreamReader::try_new(bytes, None)?;
    let batch = reader.next();
    let batch = batch.ok_or_else(|| Error::corrupt("a state without rows"))??;
    Ok(batch.columns().to_vec())
}
