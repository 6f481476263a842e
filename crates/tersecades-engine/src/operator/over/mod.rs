//! `over`: for each row a value computed of the rows around it, in an order inside its partition.
//!
//! ```text
//! rows, kept encoded ──sort by partition, order──▶ partitions ▶ peers ▶ frame of each row
//!                                                      └─▶ ranks, shifted rows, frame aggregates
//! ```
//! Rows come out in the order of partition and order; those that are equal in both as they came.

mod aggregate;
mod arranged;
mod frame;
mod rank;
mod variance;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use tersecades_columnar::error::{Error, Result};

use crate::expression::Expression;
use crate::frame::Scope;
use crate::runtime::Interrupt;
use crate::runtime::on_thread::on_threads;
use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::leading::{COUNT_MAX, Leading, Ties};
use super::row::group::GroupKeys;
use super::row::kept::KeptRows;
use super::row::keys::SortOrder;
use super::row::shape::{give, weave};
use super::row::{RowInput, RowOperator, RowOperatorPlan};
use super::sort::{SortKeys, describe_order};

use arranged::{Arranged, Portion, Spread};
pub use frame::{Bound, Frame, Units};
use frame::{Frames, Partition};
use rank::{numbers, shares};
use variance::{variance_of, variances};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "over",
    summary: "ranks, neighbours and running aggregates of rows in an order, partition by partition",
};

/// What is computed for each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverFunction {
    /// Its number in the partition, from 1.
    RowNumber,
    /// The number of the first of its peers.
    Rank,
    /// The number of its group of peers.
    DenseRank,
    /// The share of other rows that stand before its peers.
    PercentRank,
    /// The share of rows that stand before or among its peers.
    CumulativeShare,
    /// Which of so many parts of equal size it is in.
    Tile(u64),
    /// The value so many rows earlier, later when negative.
    Shift(i64),
    /// The value of the so manieth row of its frame.
    Nth(u64),
    /// The value of the last row of its frame.
    Last,
    /// How many values, or rows without an argument, its frame holds.
    Count,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// Their variance, of a sample or a population, or its root.
    Variance {
        /// Whether it is divided by one less than their number.
        sample: bool,
        /// Whether it is the standard deviation.
        root: bool,
    },
    /// The least of them.
    Min,
    /// The greatest of them.
    Max,
}

/// A column to be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverCall {
    /// What it is.
    pub function: OverFunction,
    /// The column it is computed of.
    pub argument: Option<String>,
    /// For shifted rows, the column that stands in where there are not so many.
    pub default: Option<String>,
    /// Which rows around each are taken.
    pub frame: Frame,
    /// Its name.
    pub output: String,
}

/// What to compute over which partitions and order.
#[derive(Debug, Clone, PartialEq)]
pub struct Over {
    /// Columns that are equal in a partition; null equals null.
    pub partition: Vec<String>,
    /// The order in it, the most significant expression first.
    pub order: Vec<(Expression, SortOrder)>,
    /// What is computed.
    pub calls: Vec<OverCall>,
}

impl RowOperatorPlan for Over {
    fn describe(&self) -> String {
        let calls: Vec<String> = self.calls.iter().map(describe_call).collect();
        format!(
            "over partition [{}] by [{}]: {}",
            self.partition.join(", "),
            describe_order(&self.order),
            calls.join(", ")
        )
    }

    fn reorders(&self) -> bool {
        true
    }

    fn keeps_windows(&self) -> bool {
        false
    }

    fn before_filter(&self, condition: &Expression) -> Option<Arc<dyn RowOperatorPlan>> {
        let looks_back = |call: &OverCall| match call.function {
            OverFunction::RowNumber | OverFunction::Rank | OverFunction::DenseRank => true,
            OverFunction::Shift(by) => by >= 0,
            _ => false,
        };
        if !self.calls.iter().all(looks_back) {
            return None;
        }
        let leading = |call: &OverCall| {
            let ties = match call.function {
                OverFunction::RowNumber => Ties::Apart,
                OverFunction::Rank => Ties::Together,
                OverFunction::DenseRank => Ties::Dense,
                _ => return None,
            };
            let count = usize::try_from(condition.most_of(&call.output)?).ok()?;
            (1..=COUNT_MAX).contains(&count).then_some((count, ties))
        };
        let (count, ties) = self
            .calls
            .iter()
            .filter_map(leading)
            .min_by_key(|(count, _)| *count)?;
        let is_key = |by: &Expression| {
            by.as_column()
                .is_some_and(|by| self.partition.iter().any(|key| key == by))
        };
        let by = self.order.iter().filter(|(by, _)| !is_key(by));
        Some(Arc::new(Leading {
            keys: self.partition.clone(),
            by: by.cloned().collect(),
            count,
            ties,
        }))
    }

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        let by = SortKeys::bind(&self.order, &input.schema)?;
        let groups = GroupKeys::bind(&self.partition, &input.schema)?;
        let orders = self.order.iter().map(|(_, order)| *order);
        let scope = Scope::of_schema(&input.schema);
        let mut fields = input.schema.fields().to_vec();
        let mut bound = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            let call = BoundCall::bind(call, &scope)?;
            if scope.find(&call.output).is_ok() {
                let message = format!("there is a column `{}` already", call.output);
                return Err(Error::invalid(message).hint("give the result another name"));
            }
            fields.push(Arc::new(Field::new(
                &call.output,
                call.data_type.clone(),
                true,
            )));
            bound.push(call);
        }
        Ok(Box::new(Around {
            schema: Arc::new(Schema::new(fields)),
            input: Arc::clone(&input.schema),
            rows: KeptRows::new(&input.schema)?,
            arranged: Arranged::new(groups, by, orders),
            spread: None,
            range: RangeOrder::bind(self, &scope)?,
            calls: bound,
            threads: 1,
            interrupt: Interrupt::default(),
        }))
    }
}

fn describe_call(call: &OverCall) -> String {
    let argument = call.argument.as_deref().unwrap_or("");
    format!(
        "{:?}({argument}) {} as {}",
        call.function, call.frame, call.output
    )
}

/// The one column that frames by distance are measured in.
struct RangeOrder {
    slot: usize,
    descending: bool,
}

impl RangeOrder {
    /// The column, where some frame needs it.
    fn bind(over: &Over, scope: &Scope) -> Result<Option<Self>> {
        if !over.calls.iter().any(|call| call.frame.needs_distance()) {
            return Ok(None);
        }
        let [(Expression::Column(name), order)] = over.order.as_slice() else {
            return Err(
                Error::unsupported("RANGE with a distance needs one ORDER BY column")
                    .hint("order by the time alone, or use ROWS"),
            );
        };
        let (data_type, slot) = scope.find(name)?;
        let known = data_type.is_integer()
            || matches!(data_type, DataType::Timestamp(..) | DataType::Date32);
        match known {
            true => Ok(Some(RangeOrder {
                slot,
                descending: order.descending,
            })),
            false => Err(
                Error::unsupported(format!("RANGE with a distance in {data_type}"))
                    .hint("order by a time or a whole number, or use ROWS"),
            ),
        }
    }
}

struct BoundCall {
    function: OverFunction,
    argument: Option<usize>,
    default: Option<usize>,
    frame: Frame,
    output: String,
    data_type: DataType,
}

impl BoundCall {
    fn bind(call: &OverCall, scope: &Scope) -> Result<Self> {
        let find = |name: &Option<String>| -> Result<Option<(DataType, usize)>> {
            let Some(name) = name else {
                return Ok(None);
            };
            let (data_type, slot) = scope.find(name)?;
            Ok(Some((data_type.clone(), slot)))
        };
        let (argument, default) = (find(&call.argument)?, find(&call.default)?);
        let of_argument = || {
            argument
                .as_ref()
                .map(|(data_type, _)| data_type.clone())
                .ok_or_else(|| Error::invalid(format!("{:?} needs an argument", call.function)))
        };
        use OverFunction as F;
        match call.function {
            F::Nth(0) => {
                return Err(Error::invalid("row 0 of a frame").hint("its rows count from 1"));
            }
            F::Tile(0) => {
                return Err(Error::invalid("rows in 0 parts").hint("ask for 1 part or more"));
            }
            _ => {}
        }
        let data_type = match call.function {
            F::RowNumber | F::Rank | F::DenseRank | F::Tile(_) | F::Count => DataType::Int64,
            F::PercentRank | F::CumulativeShare => DataType::Float64,
            F::Shift(_) | F::Nth(_) | F::Last | F::Min | F::Max => of_argument()?,
            F::Sum => crate::aggregate::find("sum")?.result_type(&of_argument()?)?,
            F::Mean => crate::aggregate::find("mean")?.result_type(&of_argument()?)?,
            F::Variance { sample, root } => {
                variance_of(sample, root)?.result_type(&of_argument()?)?
            }
        };
        Ok(BoundCall {
            function: call.function,
            argument: argument.map(|(_, slot)| slot),
            default: default.map(|(_, slot)| slot),
            frame: call.frame,
            output: call.output.clone(),
            data_type,
        })
    }
}

struct Around {
    schema: SchemaRef,
    input: SchemaRef,
    rows: KeptRows,
    arranged: Arranged,
    /// At the end of the stream, the partitions that have not come out.
    spread: Option<Spread>,
    range: Option<RangeOrder>,
    calls: Vec<BoundCall>,
    /// So many portions are worked out at once.
    threads: usize,
    interrupt: Interrupt,
}

impl Around {
    fn keep(&mut self, rows: RecordBatch) -> Result<()> {
        let kept = rows.clone();
        let keep = || self.rows.push(kept).map(|_| ());
        self.arranged.push(&rows, self.threads, keep)
    }

    /// The rows of `portion`, in order, and what is computed of them.
    fn given(&self, portion: Portion<'_>) -> Result<Vec<RecordBatch>> {
        let (positions, partitions) = self.arranged.sort(portion, &self.interrupt)?;
        let mut columns = self.rows.pick_unless(&positions, &self.interrupt)?;
        let given = columns.clone();
        for call in &self.calls {
            self.interrupt.check()?;
            columns.push(self.compute(call, &given, &partitions)?);
        }
        let mut out = Vec::new();
        give(&self.schema, &columns, positions.len(), &mut out)?;
        Ok(out)
    }

    fn compute(
        &self,
        call: &BoundCall,
        columns: &[ArrayRef],
        partitions: &[Partition],
    ) -> Result<ArrayRef> {
        let rows = partitions.last().map_or(0, |last| last.rows.end);
        use OverFunction as F;
        let argument = call.argument.and_then(|slot| columns.get(slot));
        let frames = || {
            let distance = self.range.as_ref();
            let distance = distance.map(|range| (&columns[range.slot], range.descending));
            Frames::new(call.frame, partitions, distance)
        };
        let of_rows = |places: Vec<Option<u32>>| -> Result<ArrayRef> {
            let argument = argument.ok_or_else(|| Error::internal("a value of no column"))?;
            Ok(take(argument, &UInt32Array::from(places), None)?)
        };
        match call.function {
            F::RowNumber | F::Rank | F::DenseRank | F::Tile(_) => Ok(Arc::new(Int64Array::from(
                numbers(call.function, partitions, rows),
            ))),
            F::PercentRank | F::CumulativeShare => Ok(Arc::new(Float64Array::from(shares(
                call.function,
                partitions,
                rows,
            )))),
            F::Shift(by) => {
                let places = shifted(by, partitions, rows);
                match (call.default.and_then(|slot| columns.get(slot)), argument) {
                    (Some(default), Some(argument)) => {
                        let from = places.iter().enumerate().map(|(row, place)| {
                            Some(place.map_or((1, row), |place| (0, place as usize)))
                        });
                        let pieces = vec![Arc::clone(argument), Arc::clone(default)];
                        weave(pieces, &from.collect::<Vec<_>>(), &self.interrupt)
                    }
                    _ => of_rows(places),
                }
            }
            F::Nth(number) => {
                let place = |frame: Range<usize>| {
                    let at = frame.start as u64 + (number - 1);
                    (at < frame.end as u64).then_some(at as u32)
                };
                of_rows(self.interrupt.collect(frames()?.map(place))?)
            }
            F::Last => {
                let place = |frame: Range<usize>| (!frame.is_empty()).then(|| frame.end as u32 - 1);
                of_rows(self.interrupt.collect(frames()?.map(place))?)
            }
            F::Count | F::Sum | F::Mean | F::Min | F::Max => {
                let wanted = (call.function, &call.data_type);
                let frames = self.interrupt.collect(frames()?)?;
                aggregate::over_frames(wanted, argument, &frames, &self.interrupt)
            }
            F::Variance { sample, root } => {
                let argument =
                    argument.ok_or_else(|| Error::internal("a variance of no column"))?;
                let frames = self.interrupt.collect(frames()?)?;
                let wanted = variance_of(sample, root)?;
                variances(wanted, argument, &frames, &self.interrupt)
            }
        }
    }
}

fn shifted(by: i64, partitions: &[Partition], rows: usize) -> Vec<Option<u32>> {
    let mut places = Vec::with_capacity(rows);
    for partition in partitions {
        let inside = partition.rows.start as i128..partition.rows.end as i128;
        places.extend(partition.rows.clone().map(|row| {
            let place = row as i128 - i128::from(by);
            inside.contains(&place).then_some(place as u32)
        }));
    }
    places
}

impl RowOperator for Around {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn interrupt_with(&mut self, interrupt: &Interrupt) {
        self.interrupt = interrupt.clone();
    }

    fn work_on(&mut self, threads: usize) {
        self.threads = threads;
    }

    fn push(&mut self, rows: RecordBatch, _out: &mut Vec<RecordBatch>) -> Result<()> {
        self.keep(rows)
    }

    fn finish(&mut self, out: &mut Vec<RecordBatch>) -> Result<bool> {
        let mut spread = match self.spread.take() {
            Some(spread) => spread,
            None => self.arranged.spread(&self.interrupt)?,
        };
        let portions = spread.next_portions(self.threads.max(1), self.rows.given_rows());
        let given = on_threads(self.threads, portions, |portion| self.given(portion))?;
        out.extend(given.into_iter().flatten());
        if !spread.is_empty() {
            self.spread = Some(spread);
            return Ok(true);
        }
        self.rows = KeptRows::new(&self.input)?;
        self.arranged.clear();
        Ok(false)
    }

    fn byte_size(&self) -> usize {
        let spread = self.spread.as_ref().map_or(0, Spread::byte_size);
        self.rows.byte_size() + self.arranged.byte_size() + spread
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.rows.snapshot(out)
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let batches = self.rows.read(from)?;
        batches.into_iter().try_for_each(|batch| self.keep(batch))
    }
}
