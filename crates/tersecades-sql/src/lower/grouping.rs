//! `GROUPING SETS`, `ROLLUP` and `CUBE`: one group-by for each set, one after the other.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::{Aggregate, EmptyRelation, Expr, GroupingSet};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::stream::Stream;

use super::Lowering;
use super::aggregate::distinct_keys;
use super::constant::empty;
use super::literal::typed;
use super::rows::{Column, Reach, Rows, type_of, unique_names};
use crate::drawn::check_reads;
use crate::error::of_datafusion;

impl Lowering<'_> {
    /// Lowers a group-by of several sets.
    ///
    /// # Errors
    /// What lowering each of them says.
    pub(super) fn grouping_sets(&self, plan: &Aggregate, sets: &GroupingSet) -> Result<Rows> {
        let keys = distinct_keys(&plan.group_expr)?;
        let names = unique_names(&plan.schema);
        let GroupingSet::GroupingSets(sets) = sets else {
            return Err(Error::internal("ROLLUP and CUBE are not written out"));
        };
        if sets.len() > 1 {
            check_reads(&plan.input, "GROUPING SETS, ROLLUP or CUBE")?;
        }
        let mut streams = Vec::with_capacity(sets.len());
        for set in sets {
            streams.push(self.grouping_set(plan, (&keys, set), &names)?);
        }
        Ok(Rows {
            stream: Stream::union(streams)?,
            columns: names
                .into_iter()
                .map(|name| Column::Value(col(name)))
                .collect(),
            time: None,
            reach: Reach::Other,
            pending: Vec::new(),
        })
    }

    /// The group-by of one set, with nulls for the keys that it leaves out.
    fn grouping_set(
        &self,
        plan: &Aggregate,
        (keys, set): (&[&Expr], &[Expr]),
        names: &[String],
    ) -> Result<Stream> {
        let one = Aggregate::try_new(
            Arc::clone(&plan.input),
            set.to_vec(),
            plan.aggr_expr.clone(),
        );
        let rows = match set.is_empty() && plan.aggr_expr.is_empty() {
            // All rows are one group, also where there are none.
            true => empty(&EmptyRelation {
                produce_one_row: true,
                schema: Arc::new(DFSchema::empty()),
            })?,
            false => self.aggregate(&one.map_err(|error| of_datafusion(&error))?)?,
        };
        let set = distinct_keys(set)?;
        let schema: &DFSchema = &plan.schema;
        let given = rows.stream.schema()?;
        let value_as = |value: Expression, index: usize| -> Result<Expression> {
            let wanted = logical_type(schema.field(index).data_type());
            match type_of(&value, &given)? == wanted {
                true => Ok(value),
                false => Ok(value.cast(wanted)),
            }
        };
        let mut columns = Vec::with_capacity(names.len());
        let mut left_out = 0u64;
        for (index, key) in keys.iter().enumerate() {
            left_out <<= 1;
            let value = match set.iter().position(|known| known == key) {
                Some(place) => rows.value(place)?.clone(),
                None => {
                    left_out |= 1;
                    null(logical_type(schema.field(index).data_type()))?
                }
            };
            columns.push((names[index].clone(), value_as(value, index)?));
        }
        let id = keys.len();
        let number = typed(&ScalarValue::UInt64(Some(left_out)));
        let number = number.ok_or_else(|| Error::internal("a number is no constant"))?;
        columns.push((names[id].clone(), value_as(number, id)?));
        for call in 0..plan.aggr_expr.len() {
            let (from, to) = (set.len() + call, id + 1 + call);
            columns.push((names[to].clone(), value_as(rows.value(from)?.clone(), to)?));
        }
        Ok(rows.stream.project(columns))
    }
}

/// The constant null as a column of `data_type`.
///
/// # Errors
/// `Unsupported` for types that the engine has no constants of.
pub(super) fn null(data_type: DataType) -> Result<Expression> {
    let null = ScalarValue::try_from(&data_type).map_err(|error| of_datafusion(&error))?;
    typed(&null).ok_or_else(|| {
        Error::unsupported(format!("a group that is null in a column of {data_type}"))
            .hint("cast it to text or a number")
    })
}
