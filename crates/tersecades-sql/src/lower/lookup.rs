//! Joins with a small table whose key is unique, in memory or a file that says how many rows it
//! has: rows look their partner up, and are still those of the stream, with its event time.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use datafusion_common::{JoinType, NullEquality};
use datafusion_expr::{Expr, Join};
use tersecades_columnar::error::Result;
use tersecades_columnar::types::logical_type;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::plan::LookupTable;
use tersecades_engine::stream::Stream;

use super::Lowering;
use super::join::{Inputs, joined, key};
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
        let ([on], true) = (join.on.as_slice(), plain) else {
            return self.join(join);
        };
        let inputs = self.inputs(join)?;
        let mut on = on.clone();
        key::exact(&mut on, join);
        key::reach(&mut on, join, false);
        match self.looked_up(join, &on, &inputs)? {
            Some(rows) => Ok(rows),
            None => joined(join, inputs),
        }
    }

    /// The left rows with those of the right side; `None` where the left ones are no longer those
    /// of a table, the key is no column of them, or the right side is no table to look up in.
    fn looked_up(&self, join: &Join, on: &(Expr, Expr), inputs: &Inputs) -> Result<Option<Rows>> {
        let left = &inputs.left;
        if left.reach != Reach::Table || !inputs.right.pending.is_empty() {
            return Ok(None);
        }
        let Expression::Column(key) = left.lowerer(join.left.schema())?.typed_value(&on.0)? else {
            return Ok(None);
        };
        let Some(right) = self.unique_table(join, &inputs.right, &on.1)? else {
            return Ok(None);
        };
        let stream = left.stream.schema()?;
        let key_type = type_of(&col(key.as_str()), &stream)?;
        if key_type != right.key_type()? {
            return Ok(None);
        }
        // Equal keys are the same value, but for floats: -0 and 0.
        let shared = !key_type.is_floating();
        let mut shown: Vec<(&str, String)> = Vec::new();
        let mut columns = left.columns.clone();
        for (inside, field) in right.columns.iter().zip(join.right.schema().fields()) {
            if shared && *inside == right.key {
                columns.push(Column::Value(col(key.as_str())));
                continue;
            }
            let name = free_name(field.name(), |name| {
                stream.column_with_name(name).is_some()
                    || shown.iter().any(|(_, known)| known == name)
            });
            columns.push(Column::Value(col(name.as_str())));
            shown.push((inside, name));
        }
        let pairs: Vec<(&str, &str)> = shown.iter().map(|(name, new)| (*name, &**new)).collect();
        let found_by = (key.as_str(), right.key.as_str());
        let stream = left.stream.clone();
        Ok(Some(Rows {
            columns,
            stream: stream.lookup_join(&right.table, found_by, &pairs),
            time: left.time.clone(),
            reach: left.reach,
            pending: left.pending.clone(),
        }))
    }

    /// The right side of a join with its key, where it is known to be small, and no key comes
    /// twice.
    fn unique_table(&self, join: &Join, right: &Rows, key: &Expr) -> Result<Option<Unique>> {
        // What is read here stays as it is for all runs of the query.
        let rows = match (self.runs_once, right.stream.begins_again()) {
            (true, _) => right.stream.rows_known(),
            (false, true) => right.stream.rows_in_memory(),
            (false, false) => None,
        };
        if rows.is_none_or(|rows| rows > LOOKUP_ROWS_MAX) {
            return Ok(None);
        }
        let schema = join.right.schema();
        let key = right.lowerer(schema)?.typed_value(key)?;
        let columns: Result<Vec<&Expression>> = (0..schema.fields().len())
            .map(|index| right.value(index))
            .collect();
        let columns = columns?;
        let unique = match as_it_is(&right.stream, &key, &columns) {
            Some(unique) => unique,
            None => {
                let stream = (self.with_options)(right.stream.clone());
                match computed(stream, key, &columns)? {
                    Some(unique) => unique,
                    None => return Ok(None),
                }
            }
        };
        Ok(unique.table.keyed(&unique.key).is_ok().then_some(unique))
    }
}

/// A table to look up in.
struct Unique {
    table: Arc<LookupTable>,
    /// The column that rows are found by.
    key: String,
    /// A column for each field of the right side.
    columns: Vec<String>,
}

impl Unique {
    fn key_type(&self) -> Result<DataType> {
        let schema = self.table.rows.schema();
        Ok(logical_type(schema.field_with_name(&self.key)?.data_type()))
    }
}

/// The table that `stream` reads, indexed once for all queries; `None` where the key or a column
/// is none of its own.
fn as_it_is(stream: &Stream, key: &Expression, columns: &[&Expression]) -> Option<Unique> {
    let name = |value: &Expression| match value {
        Expression::Column(name) => Some(name.clone()),
        _ => None,
    };
    Some(Unique {
        key: name(key)?,
        columns: columns
            .iter()
            .map(|value| name(value))
            .collect::<Option<_>>()?,
        table: stream.lookup_table()?,
    })
}

/// The rows of `stream` with these columns, computed for this query; `None` where they have become
/// too many.
fn computed(stream: Stream, key: Expression, columns: &[&Expression]) -> Result<Option<Unique>> {
    let name = |(index, value): (usize, &&Expression)| match **value == key {
        true => KEY.to_owned(),
        false => inside(index),
    };
    let names: Vec<String> = columns.iter().enumerate().map(name).collect();
    let values = columns.iter().copied().cloned();
    let named = names.iter().cloned().zip(values);
    let named = named.filter(|(name, _)| name != KEY);
    let named = std::iter::once((KEY.to_owned(), key.clone())).chain(named);
    let stream = stream.project(named);
    let schema = stream.schema()?;
    let (mut batches, mut rows) = (Vec::new(), 0);
    for batch in stream.run()? {
        let batch = batch?;
        rows += batch.num_rows();
        if rows > LOOKUP_ROWS_MAX {
            return Ok(None);
        }
        batches.push(batch);
    }
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    Ok(Some(Unique {
        table: Arc::new(LookupTable::new(
            "table",
            concat_batches(&schema, &batches)?,
        )),
        key: KEY.to_owned(),
        columns: names,
    }))
}

/// The name of a column in the table of a lookup.
fn inside(index: usize) -> String {
    format!("column_{index}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use arrow_schema::SchemaRef;
    use tersecades_columnar::error::Result;
    use tersecades_engine::expression::col;
    use tersecades_engine::runtime::Keep;
    use tersecades_engine::runtime::ingest::Origin;
    use tersecades_engine::source::table::{MemoryTable, Table};
    use tersecades_engine::stream::Stream;

    use crate::Session;

    /// A table that counts how often a plan asks for its rows.
    struct Asked(MemoryTable, Arc<AtomicUsize>);

    impl Table for Asked {
        fn schema(&self) -> SchemaRef {
            self.0.schema()
        }

        fn rows_in_memory(&self) -> Option<usize> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.rows_in_memory()
        }

        fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.open(columns)
        }
    }

    fn numbers(name: &str, values: &[i64]) -> RecordBatch {
        let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        RecordBatch::try_from_iter([(name, values)]).unwrap()
    }

    fn count_of(stream: Stream) -> i64 {
        let batches = stream.run().unwrap().collect::<Result<Vec<_>>>().unwrap();
        let count = batches[0].column(0).as_any().downcast_ref::<Int64Array>();
        count.unwrap().value(0)
    }

    #[test]
    fn a_join_with_a_range_that_is_being_kept_reads_it_anew_in_each_run() {
        let rows = [numbers("k", &[1]), numbers("k", &[2]), numbers("k", &[3])];
        let kept = Stream::from_batches(rows[0].schema(), rows.to_vec());
        let kept = kept.event_time(col("k"), Duration::ZERO);
        let mut running = kept.keep(Keep::Bytes(1 << 20)).run().unwrap();
        running.step().unwrap();
        let range = Stream::from_retained(running.retained().unwrap());
        let mut session = Session::default();
        session.register_stream("kept", range, None).unwrap();
        let asked = numbers("k", &[1, 2, 3]);
        let asked = Arc::new(MemoryTable::new(asked.schema(), vec![asked]));
        session.register("asked", asked, None).unwrap();
        let joined = "SELECT count(*) AS n FROM asked a JOIN kept b ON a.k = b.k";
        let planned = session.stream(joined).unwrap();
        while running.step().unwrap() {}
        assert_eq!(count_of(session.stream(joined).unwrap()), 3);
        assert_eq!(count_of(planned), 3);
    }

    #[test]
    fn a_chain_of_joins_that_are_no_lookups_is_lowered_once() {
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let rows = RecordBatch::try_from_iter([("k", keys)]).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let table = Asked(MemoryTable::new(rows.schema(), vec![rows]), asked.clone());
        let mut session = Session::default();
        session.register("t", Arc::new(table), None).unwrap();
        let joins = 14;
        let join = |it: usize| format!(" JOIN t AS b{it} ON a.k + {it} = b{it}.k + {it}");
        let joins_text: String = (0..joins).map(join).collect();
        let text = format!("SELECT count(*) AS c FROM t AS a{joins_text}");
        let batches = session.stream(&text).unwrap().run().unwrap();
        let batches = batches.collect::<Result<Vec<_>>>().unwrap();
        let count = batches[0].column(0).as_any().downcast_ref::<Int64Array>();
        assert_eq!(count.unwrap().value(0), 3);
        assert!(asked.load(Ordering::Relaxed) < 20 * joins, "{asked:?}");
    }
}
