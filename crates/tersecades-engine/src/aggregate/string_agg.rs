//! `string_agg`: the texts of each group in one, with a separator between them.
//!
//! ```text
//! rows as they come: text, order, place        sorted by order, then by place
//!     b 2 10 │ a 1 11 │ null 1 12 │ c 2 13 ──▶ a,b,c
//! ```
//! The place of a row in its stream decides between rows that are equal in the order, and about all
//! where none is asked for: texts stand alike whatever the number of threads.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, ListArray, StringArray, UInt32Array, new_empty_array};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_row::Rows;
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat;
use arrow_select::filter::filter;
use arrow_select::take::take;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;

use super::{UserAggregate, UserState};
use crate::expression::Expression;
use crate::operator::row::keys::{RowKeys, SortOrder};
use crate::plan::AggregateCall;

/// A call of `string_agg` in the making.
///
/// # Examples
/// ```
/// use tersecades_engine::aggregate::string_agg::StringAgg;
/// use tersecades_engine::expression::col;
/// use tersecades_engine::operator::row::keys::SortOrder;
///
/// let by_price = [(col("price"), SortOrder::DESCENDING)];
/// let call = StringAgg::new(", ").order_by(by_price).of(col("city"));
/// assert_eq!(call.output, "string_agg(city)");
/// ```
#[derive(Debug, Clone)]
pub struct StringAgg {
    separator: String,
    order: Vec<(Expression, SortOrder)>,
    distinct: bool,
}

impl StringAgg {
    /// All texts with `separator` between them, in the order of their rows.
    pub fn new(separator: impl Into<String>) -> Self {
        StringAgg {
            separator: separator.into(),
            order: Vec::new(),
            distinct: false,
        }
    }

    /// The same in this order, the most significant expression first.
    pub fn order_by(mut self, order: impl IntoIterator<Item = (Expression, SortOrder)>) -> Self {
        self.order = order.into_iter().collect();
        self
    }

    /// Each different text once, where it comes first.
    pub fn distinct(mut self) -> Self {
        self.distinct = true;
        self
    }

    /// The aggregate of the column `argument` of texts.
    pub fn of(self, argument: Expression) -> AggregateCall {
        let output = format!("string_agg({argument})");
        let (by, orders): (Vec<Expression>, Vec<SortOrder>) = self.order.into_iter().unzip();
        let once = if self.distinct { " distinct" } else { "" };
        let mut name = format!("string_agg {:?}{once}", self.separator);
        orders
            .iter()
            .for_each(|order| name.push_str(&format!(" {order}")));
        let joined = Joined {
            name,
            separator: self.separator,
            orders,
            distinct: self.distinct,
        };
        let arguments = std::iter::once(argument).chain(by);
        AggregateCall::user(Arc::new(joined), arguments).alias(output)
    }
}

/// What stands between texts, and how rows are ordered.
#[derive(Debug, Clone)]
struct Joined {
    /// All that tells it from others.
    name: String,
    separator: String,
    orders: Vec<SortOrder>,
    distinct: bool,
}

impl UserAggregate for Joined {
    fn name(&self) -> &str {
        &self.name
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments.first().map(logical_type) {
            Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Null) => Ok(DataType::Utf8),
            Some(other) => Err(Error::schema(format!("string_agg needs text, got {other}"))
                .hint("cast it to text")),
            None => Err(super::needs_argument("string_agg")),
        }
    }

    fn by_place(&self) -> bool {
        true
    }

    fn start(&self, arguments: &[DataType]) -> Box<dyn UserState> {
        let order = arguments.iter().skip(1).map(logical_type);
        let types = std::iter::once(DataType::LargeUtf8).chain(order);
        Box::new(Texts {
            joined: self.clone(),
            types: types.chain([DataType::UInt64]).collect(),
            pieces: Vec::new(),
        })
    }
}

/// Texts, what orders them and the places of all rows of a pane.
#[derive(Debug)]
struct Texts {
    joined: Joined,
    types: Vec<DataType>,
    /// Columns of these types, and the group of each row.
    pieces: Vec<(Vec<ArrayRef>, Vec<u32>)>,
}

impl Texts {
    /// All rows in one piece.
    fn whole(&self) -> Result<(Vec<ArrayRef>, Vec<u32>)> {
        let columns = self.types.iter().enumerate().map(|(index, data_type)| {
            let empty = new_empty_array(data_type);
            let parts = self.pieces.iter().filter_map(|(piece, _)| piece.get(index));
            let parts: Vec<&dyn Array> = std::iter::once(&*empty)
                .chain(parts.map(|part| &**part))
                .collect();
            Ok(concat(&parts)?)
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let ids: Vec<u32> = self
            .pieces
            .iter()
            .flat_map(|(_, ids)| ids)
            .copied()
            .collect();
        match i32::try_from(ids.len()) {
            Ok(_) => Ok((columns, ids)),
            Err(_) => Err(too_long(&format!("{} rows", ids.len()))),
        }
    }

    fn join(&self, texts: impl Iterator<Item = impl AsRef<str>>) -> String {
        let mut joined = String::new();
        for (index, text) in texts.enumerate() {
            if index > 0 {
                joined.push_str(&self.joined.separator);
            }
            joined.push_str(text.as_ref());
        }
        joined
    }
}

fn too_long(what: &str) -> Error {
    Error::limit(format!("string_agg joins {what} at once"))
        .hint("use shorter windows: those of one hold at most 2^31 rows and bytes")
}

impl UserState for Texts {
    fn update(&mut self, arguments: &[ArrayRef], ids: &[u32], _groups: usize) -> Result<()> {
        let mut columns = Vec::with_capacity(self.types.len());
        for (column, data_type) in arguments.iter().zip(&self.types) {
            columns.push(cast(column, data_type)?);
        }
        let mut ids = ids.to_vec();
        if let Some(valid) = columns.first().and_then(|texts| texts.logical_nulls()) {
            let kept = valid.into_inner().into();
            columns = columns
                .iter()
                .map(|column| Ok(filter(column, &kept)?))
                .collect::<Result<_>>()?;
            let mut rows = kept.values().iter();
            ids.retain(|_| rows.next() == Some(true));
        }
        self.pieces.push((columns, ids));
        Ok(())
    }

    fn merge(&mut self, state: &[ArrayRef], ids: &[u32], _groups: usize) -> Result<()> {
        let lists = state.iter().map(|column| column.as_list_opt::<i32>());
        let lists: Option<Vec<&ListArray>> = lists.collect();
        let lists = lists.filter(|lists| {
            let mut types = lists.iter().map(|list| list.values().data_type());
            let mut offsets = lists.windows(2);
            types.by_ref().eq(&self.types)
                && offsets.all(|two| matches!(two, [a, b] if a.offsets() == b.offsets()))
        });
        let Some((lists, first)) = lists
            .as_ref()
            .and_then(|lists| Some((lists, lists.first()?)))
        else {
            return Err(Error::corrupt("a state of other texts"));
        };
        let lengths = ids.iter().zip(first.offsets().lengths());
        let ids = lengths.flat_map(|(id, length)| std::iter::repeat_n(*id, length));
        let (start, end) = (first.offsets().first(), first.offsets().last());
        let (start, end) = (
            start.map_or(0, |at| *at as usize),
            end.map_or(0, |at| *at as usize),
        );
        let columns = lists
            .iter()
            .map(|list| list.values().slice(start, end - start));
        self.pieces.push((columns.collect(), ids.collect()));
        Ok(())
    }

    fn state(&self, groups: usize) -> Result<Vec<ArrayRef>> {
        let (columns, ids) = self.whole()?;
        let mut rows: Vec<u32> = (0..ids.len() as u32).collect();
        rows.sort_by_key(|row| ids[*row as usize]);
        let rows = UInt32Array::from(rows);
        let mut lengths = vec![0usize; groups];
        ids.iter().for_each(|id| lengths[*id as usize] += 1);
        let offsets: OffsetBuffer<i32> = OffsetBuffer::from_lengths(lengths);
        let lists = columns.iter().map(|column| {
            let field = Field::new_list_field(column.data_type().clone(), true);
            let values = take(column, &rows, None)?;
            let list = ListArray::try_new(Arc::new(field), offsets.clone(), values, None)?;
            Ok(Arc::new(list) as ArrayRef)
        });
        lists.collect()
    }

    fn finish(&self, groups: usize) -> Result<ArrayRef> {
        let (columns, ids) = self.whole()?;
        let [texts, order @ .., places] = columns.as_slice() else {
            return Err(Error::internal("string_agg has no texts"));
        };
        let (texts, places) = (
            texts.as_string::<i64>(),
            places.as_primitive::<UInt64Type>(),
        );
        let types = order.iter().map(|column| column.data_type().clone());
        let keys: Option<Rows> = match order.is_empty() {
            true => None,
            false => {
                let orders = self.joined.orders.iter().copied();
                Some(RowKeys::new(types.zip(orders))?.of(order)?)
            }
        };
        let key = |row: usize| keys.as_ref().map(|keys| keys.row(row));
        let mut rows: Vec<usize> = (0..ids.len()).collect();
        rows.sort_unstable_by(|a, b| {
            let of_group = ids[*a].cmp(&ids[*b]).then_with(|| key(*a).cmp(&key(*b)));
            let placed = || places.value(*a).cmp(&places.value(*b));
            let of_text = || texts.value(*a).cmp(texts.value(*b));
            of_group.then_with(placed).then_with(of_text)
        });
        let (mut results, mut bytes) = (vec![None; groups], 0usize);
        for group in rows.chunk_by(|a, b| ids[*a] == ids[*b]) {
            let mut seen = HashSet::new();
            let group_texts = group.iter().map(|row| texts.value(*row));
            let text = match self.joined.distinct {
                true => self.join(group_texts.filter(|text| seen.insert(*text))),
                false => self.join(group_texts),
            };
            bytes += text.len();
            let id = group.first().map_or(0, |row| ids[*row] as usize);
            results[id] = Some(text);
        }
        match i32::try_from(bytes) {
            Ok(_) => Ok(Arc::new(StringArray::from(results))),
            Err(_) => Err(too_long(&format!("{bytes} bytes"))),
        }
    }

    fn byte_size(&self) -> usize {
        let sizes = self.pieces.iter().map(|(columns, ids)| {
            let arrays = columns.iter().map(|array| array.get_array_memory_size());
            arrays.sum::<usize>() + ids.len() * size_of::<u32>()
        });
        sizes.sum()
    }
}
