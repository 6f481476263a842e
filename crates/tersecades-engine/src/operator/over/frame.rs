//! Frames: which rows around each row of a sorted partition an aggregate takes.

use std::fmt;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::error::{Error, Result};

/// What the distances of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// Rows.
    Rows,
    /// Groups of rows that are equal in the order.
    Groups,
    /// Units of the one column of the order; nanoseconds for times.
    Range,
}

/// One end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The first row of the partition.
    First,
    /// The current row; but for rows, with its peers.
    Current,
    /// So far behind the current row, before it when negative.
    Shifted(i128),
    /// The last row of the partition.
    Last,
}

/// Which rows around each are taken, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// What distances count.
    pub units: Units,
    /// The first.
    pub start: Bound,
    /// The last.
    pub end: Bound,
}

impl Frame {
    /// All rows of the partition.
    pub const PARTITION: Frame = Frame {
        units: Units::Rows,
        start: Bound::First,
        end: Bound::Last,
    };

    /// Whether it is measured in the values of a column.
    pub(super) fn needs_distance(&self) -> bool {
        let far = |bound| matches!(bound, Bound::Shifted(_));
        self.units == Units::Range && (far(self.start) || far(self.end))
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?} {:?} to {:?}", self.units, self.start, self.end)
    }
}

/// Sorted rows of one partition, and its groups of equal ones.
#[derive(Debug, Clone)]
pub(super) struct Partition {
    pub(super) rows: Range<usize>,
    pub(super) peers: Vec<Range<usize>>,
}

/// The frame of each row, in order.
pub(super) struct Frames<'p> {
    frame: Frame,
    partitions: std::slice::Iter<'p, Partition>,
    current: Option<&'p Partition>,
    row: usize,
    /// The group of peers of the row.
    group: usize,
    /// Values of the order that distances are measured in; none for null.
    distance: Option<Vec<Option<i128>>>,
}

impl<'p> Frames<'p> {
    /// Frames over `partitions`, with the sorted column that distances are measured in and whether
    /// it descends.
    pub(super) fn new(
        frame: Frame,
        partitions: &'p [Partition],
        distance: Option<(&ArrayRef, bool)>,
    ) -> Result<Self> {
        let distance = match distance.filter(|_| frame.needs_distance()) {
            Some((column, descending)) => Some(measured(column, descending)?),
            None => None,
        };
        let mut partitions = partitions.iter();
        Ok(Frames {
            frame,
            current: partitions.next(),
            partitions,
            row: 0,
            group: 0,
            distance,
        })
    }

    /// The row at which a bound stands; behind it for the end of a frame.
    fn place(&self, bound: Bound, partition: &Partition, is_end: bool) -> usize {
        let Range { start, end } = partition.rows;
        let peers = &partition.peers[self.group];
        let of_peers = |peers: &Range<usize>| if is_end { peers.end } else { peers.start };
        match (bound, self.frame.units) {
            (Bound::First, _) => start,
            (Bound::Last, _) => end,
            (Bound::Current, Units::Rows) => self.row + usize::from(is_end),
            (Bound::Current, _) => of_peers(peers),
            (Bound::Shifted(by), Units::Rows) => {
                let place = self.row as i128 + by + i128::from(is_end);
                place.clamp(start as i128, end as i128) as usize
            }
            (Bound::Shifted(by), Units::Groups) => {
                let group = self.group as i128 + by;
                match usize::try_from(group) {
                    Ok(group) => partition.peers.get(group).map_or(end, of_peers),
                    Err(_) => start,
                }
            }
            (Bound::Shifted(by), Units::Range) => self.by_distance(by, partition, is_end),
        }
    }

    fn by_distance(&self, by: i128, partition: &Partition, is_end: bool) -> usize {
        let peers = &partition.peers[self.group];
        let Some(values) = &self.distance else {
            return peers.start;
        };
        // Nulls are near each other alone.
        let Some(here) = values[self.row] else {
            return if is_end { peers.end } else { peers.start };
        };
        let rows = &values[partition.rows.clone()];
        let first = rows.partition_point(|value| value.is_none() && rows[0].is_none());
        let filled = rows[first..].partition_point(Option::is_some);
        let filled = &rows[first..first + filled];
        let wanted = here + by;
        let inside = filled.partition_point(|value| match (value, is_end) {
            (Some(value), true) => *value <= wanted,
            (Some(value), false) => *value < wanted,
            (None, _) => false,
        });
        partition.rows.start + first + inside
    }
}

/// Values in the direction of the order; times in nanoseconds.
fn measured(column: &ArrayRef, descending: bool) -> Result<Vec<Option<i128>>> {
    let tick = match column.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        DataType::Date32 => 86_400_000_000_000,
        DataType::UInt64 => {
            return Err(Error::unsupported("RANGE with a distance in UInt64")
                .hint("cast it: ORDER BY CAST(x AS BIGINT)"));
        }
        _ => 1,
    };
    let whole = match column.data_type() {
        DataType::Date32 => cast(&cast(column, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(column, &DataType::Int64)?,
    };
    let values = whole.as_primitive::<Int64Type>();
    let sign: i128 = if descending { -1 } else { 1 };
    let value = |row: usize| {
        let value = i128::from(values.value(row)) * tick * sign;
        values.is_valid(row).then_some(value)
    };
    Ok((0..values.len()).map(value).collect())
}

impl Iterator for Frames<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let mut partition = self.current?;
        if self.row == partition.rows.end {
            partition = self.partitions.next()?;
            self.current = Some(partition);
            self.group = 0;
        }
        if self.row == partition.peers[self.group].end {
            self.group += 1;
        }
        let start = self.place(self.frame.start, partition, false);
        let end = self.place(self.frame.end, partition, true);
        self.row += 1;
        Some(start..end.max(start))
    }
}
