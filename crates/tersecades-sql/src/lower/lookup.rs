//! Joins with a small table in memory whose key is unique: rows look their partner up, and are
//! still those of the stream, with its event time.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_select::concat::concat_batches;
use datafusion_common::{JoinType, NullEquality};
use datafusion_expr::{Expr, Join};
use tersecades_columnar::error::Result;
use tersecades_engine::aggregate::call;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::plan::LookupTable;
use tersecades_engine::stream::Stream;

use super::Lowering;
use super::rows::{Column, Reach, Rows, free_name, type_of};

/// Most rows of a table that rows are looked up in.
const LOOKUP_ROWS_MAX: usize = 1 << 20;

/// The name of the key in the table of a lookup.
const KEY: &str = "key";

impl Lowering<'_> {
    /// Lowers a join, to a lookup where that gives the same rows.
    ///
    /// # Errors
    /// What [`Lowering::join`] says.
    pub(super) fn join_or_lookup(&self, join: &Join) -> Result<Rows> {
        let plain = join.join_type == JoinType::Inner
            && join.filter.is_none()
            && join.null_equality == NullEquality::NullEqualsNothing;
        if let ([(left, right)], true) = (join.on.as_slice(), plain)
            && let Some(table) = self.unique_table(join, right)?
            && let Some(rows) = self.looked_up(join, left, table)?
        {
            return Ok(rows);
        }
        self.join(join)
    }

    /// The right side with its key, where it is small, in memory, and no key comes twice.
    fn unique_table(&self, join: &Join, key: &Expr) -> Result<Option<Stream>> {
        let right = self.plan(&join.right)?;
        let rows = right.stream.rows_in_memory();
        if rows.is_none_or(|rows| rows > LOOKUP_ROWS_MAX) {
            return Ok(None);
        }
        let schema = join.right.schema();
        let mut columns = vec![(KEY.to_owned(), right.lowerer(schema)?.typed_value(key)?)];
        for index in 0..schema.fields().len() {
            columns.push((inside(index), right.value(index)?.clone()));
        }
        let table = right.stream.project(columns);
        let counts = ["count", "count_distinct"].map(|name| call(name, col(KEY)).alias(name));
        for batch in table.clone().aggregate(counts).run()? {
            let batch = batch?;
            let count = |index| batch.column(index).as_primitive::<Int64Type>().value(0);
            if count(0) != count(1) {
                return Ok(None);
            }
        }
        Ok(Some(table))
    }

    /// The rows of the left side with those of `table`; `None` where they are no longer those of
    /// a table, or the key is no column of them.
    fn looked_up(&self, join: &Join, key: &Expr, table: Stream) -> Result<Option<Rows>> {
        let left = self.plan(&join.left)?;
        let key = left.lowerer(join.left.schema())?.typed_value(key)?;
        let (stream, columns) = (left.stream.schema()?, table.schema()?);
        let same = type_of(&key, &stream)? == *columns.field(0).data_type();
        let Expression::Column(key) = &key else {
            return Ok(None);
        };
        if !same || left.reach != Reach::Table {
            return Ok(None);
        }
        let mut shown: Vec<(String, String)> = Vec::new();
        for (index, field) in join.right.schema().fields().iter().enumerate() {
            let name = free_name(field.name(), |name| {
                stream.column_with_name(name).is_some()
                    || shown.iter().any(|(_, known)| known == name)
            });
            shown.push((inside(index), name));
        }
        let batches = table.run()?.collect::<Result<Vec<_>>>()?;
        let schema = batches.first().map_or(columns, |batch| batch.schema());
        let table = Arc::new(LookupTable {
            name: key.clone(),
            rows: concat_batches(&schema, &batches)?,
        });
        let pairs: Vec<(&str, &str)> = shown.iter().map(|(name, new)| (&**name, &**new)).collect();
        let added = shown
            .iter()
            .map(|(_, name)| Column::Value(col(name.as_str())));
        Ok(Some(Rows {
            columns: left.columns.iter().cloned().chain(added).collect(),
            stream: left.stream.lookup_join(&table, (key, KEY), &pairs),
            time: left.time,
            reach: left.reach,
        }))
    }
}

/// The name of a column in the table of a lookup.
fn inside(index: usize) -> String {
    format!("column_{index}")
}
