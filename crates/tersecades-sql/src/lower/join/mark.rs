//! Mark joins: each left row, and whether it has a pair; for `IN` and `EXISTS` beside `OR`.
//!
//! They are the rows that have a pair, marked true, and those that have none, marked false.

use arrow_schema::DataType;
use datafusion_common::JoinType;
use datafusion_expr::Join;
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::expression::{col, lit};
use tersecades_engine::stream::Stream;

use super::Lowering;
use crate::drawn::check_reads;
use crate::lower::rows::{Column, Reach, Rows, unique_names};

impl Lowering<'_> {
    /// Lowers a mark join.
    ///
    /// # Errors
    /// `Unsupported` for `NOT IN`, whose answer may be neither true nor false.
    pub(super) fn mark_join(&self, join: &Join) -> Result<Rows> {
        if join.join_type == JoinType::RightMark || join.null_aware {
            return Err(Error::unsupported("NOT IN with a subquery beside OR")
                .hint("write it as a condition of WHERE, joined by AND"));
        }
        for side in [&join.left, &join.right] {
            check_reads(side, "IN or EXISTS beside OR")?;
        }
        let names = unique_names(&join.schema);
        let Some((mark, shown)) = names.split_last() else {
            return Err(Error::internal("a mark join without a mark"));
        };
        let parts = [(JoinType::LeftSemi, 1), (JoinType::LeftAnti, 0)];
        let mut streams = Vec::with_capacity(parts.len());
        for (join_type, value) in parts {
            let part = Join {
                join_type,
                schema: join.left.schema().clone(),
                ..join.clone()
            };
            let rows = self.join(&part)?.spread()?;
            let mut columns = Vec::with_capacity(names.len());
            for (index, name) in shown.iter().enumerate() {
                columns.push((name.clone(), rows.value(index)?.clone()));
            }
            columns.push((mark.clone(), lit(value).cast(DataType::Boolean)));
            streams.push(rows.stream.project(columns));
        }
        Ok(Rows {
            stream: Stream::union(streams)?,
            columns: names
                .iter()
                .map(|name| Column::Value(col(name.as_str())))
                .collect(),
            time: None,
            reach: Reach::Other,
            pending: Vec::new(),
        })
    }
}
