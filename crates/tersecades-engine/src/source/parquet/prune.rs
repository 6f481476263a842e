//! Row groups that a query wants nothing of, by the ends of their columns in the footer.

use arrow_schema::{DataType, Field};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use crate::source::passing::{Failing, Passing};
use crate::source::zone::Ends;

use super::group::leaf_of;

const MS_PER_DAY: i128 = 86_400_000;

/// The row groups of a file that may have rows which pass, in order.
pub(super) fn groups(metadata: &ArrowReaderMetadata, passing: &Passing) -> Vec<usize> {
    let groups = metadata.metadata().row_groups().iter().enumerate();
    groups
        .filter(|(_, group)| !is_ruled_out(metadata, group, passing))
        .map(|(place, _)| place)
        .collect()
}

/// The row groups with rows, by the ends of a column; `None` where one has nulls, or does not say.
pub(super) fn ends_of(metadata: &ArrowReaderMetadata, column: &str) -> Option<Vec<Ends>> {
    let (position, field) = metadata.schema().fields().find(column)?;
    let leaf = leaf_of(metadata.parquet_schema(), position)?;
    let groups = metadata.metadata().row_groups().iter();
    let groups = groups.filter(|group| group.num_rows() > 0);
    let parts = groups.map(|group| {
        let statistics = group.column(leaf).statistics()?;
        let (low, high) = ends(field, statistics)?;
        let rows = u64::try_from(group.num_rows()).ok()?;
        (statistics.null_count_opt() == Some(0)).then_some(Ends { rows, low, high })
    });
    parts.collect()
}

fn is_ruled_out(
    metadata: &ArrowReaderMetadata,
    group: &RowGroupMetaData,
    passing: &Passing,
) -> bool {
    if passing.tests.is_empty() || passing.failing != Failing::Nothing {
        return false;
    }
    let fields = metadata.schema().fields().iter().enumerate();
    fields.into_iter().any(|(position, field)| {
        let ends = leaf_of(metadata.parquet_schema(), position)
            .and_then(|leaf| group.column(leaf).statistics())
            .and_then(|statistics| ends(field, statistics));
        ends.is_some_and(|(low, high)| passing.rules_out(field, low, high))
    })
}

/// The least and the greatest value, if the writer said so in the order of the type.
pub(super) fn ends(field: &Field, statistics: &Statistics) -> Option<(i128, i128)> {
    if statistics.is_min_max_deprecated() {
        return None;
    }
    let is_short = matches!(statistics, Statistics::Int32(_));
    let (low, high) = match statistics {
        Statistics::Int32(found) => (i64::from(*found.min_opt()?), i64::from(*found.max_opt()?)),
        Statistics::Int64(found) => (*found.min_opt()?, *found.max_opt()?),
        _ => return None,
    };
    let value = |stored: i64| match field.data_type() {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => i128::from(stored as u32),
        DataType::UInt64 => i128::from(stored.cast_unsigned()),
        // Days, which are read as milliseconds.
        DataType::Date64 if is_short => i128::from(stored) * MS_PER_DAY,
        _ => i128::from(stored),
    };
    Some((value(low), value(high)))
}
