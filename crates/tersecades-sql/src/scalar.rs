//! DataFusion's scalar expressions as functions of the engine.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, DictionaryArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray, downcast_primitive_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Expr, Volatility};
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;
use tersecades_engine::expression::ScalarFunction;

use crate::error::of_datafusion;
use crate::function::float::compare_exactly;
use crate::in_turn::asked_in_turn;

/// A physical expression over some columns of a plan node.
#[derive(Debug)]
pub(crate) struct PlannedFunction {
    text: String,
    expression: Arc<dyn PhysicalExpr>,
    /// The columns it reads, as its arguments.
    schema: SchemaRef,
    data_type: DataType,
    /// What the numbers stand for that a choice among texts gives.
    texts: Option<ArrayRef>,
    immutable: bool,
}

impl PlannedFunction {
    /// Plans `expr`, which reads the fields of `schema` at the indices `read`.
    ///
    /// # Errors
    /// What DataFusion says.
    pub(crate) fn new(expr: &Expr, schema: &DFSchema, read: &[usize]) -> Result<Self> {
        let fields = read.iter().map(|index| {
            let (qualifier, field) = schema.qualified_field(*index);
            let data_type = logical_type(field.data_type());
            (
                qualifier.cloned(),
                Arc::new(Field::new(field.name(), data_type, true)),
            )
        });
        let numbered = numbered_choice(expr).filter(|_| !read.is_empty());
        let computed = numbered.as_ref().map_or(expr, |(choice, _)| choice);
        let planned = || -> datafusion_common::Result<_> {
            let input = DFSchema::new_with_metadata(fields.collect(), Default::default())?;
            let mut props = ExecutionProps::new();
            props.mark_start_execution(Arc::new(ConfigOptions::default()));
            let context = PhysicalPlanningContext::default();
            let compared = compare_exactly(computed.clone(), &input)?;
            let expression = create_physical_expr(&compared, &input, &props, &context)?;
            let expression = asked_in_turn(expression)?;
            let schema = Arc::clone(input.inner());
            let data_type = expression.data_type(&schema)?;
            Ok((expression, schema, data_type))
        };
        let (expression, schema, data_type) = planned().map_err(|error| of_datafusion(&error))?;
        let texts = numbered.map(|(_, texts)| Arc::new(StringArray::from(texts)) as ArrayRef);
        Ok(PlannedFunction {
            text: expr.to_string(),
            expression,
            schema,
            data_type: texts
                .as_ref()
                .map_or(logical_type(&data_type), |_| DataType::Utf8),
            texts,
            immutable: is_immutable(expr),
        })
    }

    /// Whether equal arguments give equal results.
    pub(crate) fn depends_on_arguments_alone(&self) -> bool {
        self.immutable
    }

    /// The value of an expression without columns.
    ///
    /// # Errors
    /// What computing it says.
    pub(crate) fn constant(&self) -> Result<ScalarValue> {
        let array = self.evaluate(&[], 1)?;
        ScalarValue::try_from_array(&array, 0).map_err(|error| of_datafusion(&error))
    }

    fn compute(&self, batch: &RecordBatch, rows: usize) -> Result<ArrayRef> {
        let computed = || self.expression.evaluate(batch)?.into_array(rows);
        // Functions of other crates may panic on values nobody tried; an error is enough.
        match catch_unwind(AssertUnwindSafe(computed)) {
            Ok(computed) => computed.map_err(|error| of_datafusion(&error)),
            Err(_) => Err(Error::internal(format!(
                "`{}` failed on some row",
                self.text
            ))),
        }
    }
}

fn is_immutable(expr: &Expr) -> bool {
    let mut immutable = true;
    let walked = expr.apply(|part| {
        if let Expr::ScalarFunction(call) = part {
            immutable &= call.func.signature().volatility != Volatility::Volatile;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    immutable && walked.is_ok()
}

/// A `CASE` that gives nothing but texts as one that gives their numbers, and the texts.
fn numbered_choice(expr: &Expr) -> Option<(Expr, Vec<String>)> {
    let case = match expr {
        Expr::Alias(alias) => return numbered_choice(&alias.expr),
        Expr::Case(case) => case,
        _ => return None,
    };
    let mut texts: Vec<String> = Vec::new();
    let mut number = |result: &Expr| -> Option<Box<Expr>> {
        let Expr::Literal(ScalarValue::Utf8(text), _) = result else {
            return None;
        };
        let known = |text: String| {
            let at = texts.iter().position(|known| *known == text);
            at.unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            })
        };
        let number = text.clone().map(known).map(|number| number as u32);
        Some(Box::new(Expr::Literal(ScalarValue::UInt32(number), None)))
    };
    let mut numbered = case.clone();
    for (_, result) in &mut numbered.when_then_expr {
        *result = number(result)?;
    }
    if let Some(result) = &mut numbered.else_expr {
        *result = number(result)?;
    }
    Some((Expr::Case(numbered), texts))
}

impl ScalarFunction for PlannedFunction {
    fn name(&self) -> &str {
        &self.text
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let mut columns = Vec::with_capacity(arguments.len());
        for (argument, field) in arguments.iter().zip(self.schema.fields()) {
            columns.push(without_holes(cast_to(argument, field.data_type())?));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema: &Arc<Schema> = &self.schema;
        let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
        let computed = self.compute(&batch, rows)?;
        let Some(texts) = &self.texts else {
            return cast_to(&computed, &self.data_type);
        };
        let numbers = cast_to(&computed, &DataType::UInt32)?;
        let numbers = numbers.as_primitive::<UInt32Type>().clone();
        Ok(Arc::new(DictionaryArray::try_new(
            numbers,
            Arc::clone(texts),
        )?))
    }

    fn is_immutable(&self) -> bool {
        self.immutable
    }

    fn is_same(&self, other: &dyn ScalarFunction) -> bool {
        let Some(other) = (other as &dyn Any).downcast_ref::<PlannedFunction>() else {
            return false;
        };
        self.immutable
            && other.immutable
            && self.schema == other.schema
            && self.texts == other.texts
            && self.expression.eq(&other.expression)
    }
}

fn cast_to(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    Ok(cast_with_options(array.as_ref(), to, &options)?)
}

/// The same values over zeros where there is none: what lies under a null may be anything, and
/// functions of other crates compute with it.
fn without_holes(array: ArrayRef) -> ArrayRef {
    if array.null_count() == 0 {
        return array;
    }
    let values: &dyn Array = array.as_ref();
    downcast_primitive_array!(
        values => zeros_for_nulls(values),
        _ => array,
    )
}

fn zeros_for_nulls<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> ArrayRef {
    let values = array.iter().map(Option::unwrap_or_default);
    let values: Vec<T::Native> = values.collect();
    let filled = PrimitiveArray::<T>::new(values.into(), array.nulls().cloned());
    Arc::new(filled.with_data_type(array.data_type().clone()))
}

#[cfg(test)]
mod tests {
    use arrow_array::types::TimestampNanosecondType;
    use arrow_array::{Int64Array, TimestampNanosecondArray};
    use arrow_schema::TimeUnit;
    use datafusion_common::Column;
    use datafusion_expr::{col, lit};

    use super::*;
    use crate::function::FUNCTIONS;

    #[test]
    fn nothing_is_computed_of_what_lies_under_nulls() {
        let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let schema = DFSchema::try_from(Schema::new(vec![Field::new("ts", time, true)])).unwrap();
        let truncate = FUNCTIONS.scalars["date_trunc"].call(vec![lit("month"), col("ts")]);
        let function = PlannedFunction::new(&truncate, &schema, &[0]).unwrap();
        let valid = Some(vec![true, false].into());
        let times = TimestampNanosecondArray::new(vec![86_400_000_000_000, i64::MIN].into(), valid);
        let months = function.evaluate(&[Arc::new(times)], 2).unwrap();
        let months = months.as_primitive::<TimestampNanosecondType>();
        assert_eq!(months.iter().collect::<Vec<_>>(), [Some(0), None]);
    }

    #[test]
    fn values_stay_where_nulls_are_filled() {
        let numbers: ArrayRef = Arc::new(Int64Array::new(
            vec![7, i64::MIN, -7].into(),
            Some(vec![true, false, true].into()),
        ));
        let filled = without_holes(Arc::clone(&numbers));
        assert_eq!(*filled, *numbers);
        assert_eq!(
            filled.to_data().buffers()[0].typed_data::<i64>(),
            [7, 0, -7]
        );
    }

    /// `CASE WHEN a > 2 THEN first WHEN a > 1 THEN NULL WHEN a > 0 THEN 'b' END`.
    fn choice(first: Expr) -> PlannedFunction {
        let field = (None, Arc::new(Field::new("a", DataType::Int64, true)));
        let schema = DFSchema::new_with_metadata(vec![field], Default::default()).unwrap();
        let more_than = |number: i64| {
            let column = Expr::Column(Column::from_name("a"));
            Box::new(column.gt(Expr::Literal(ScalarValue::from(number), None)))
        };
        let text = |text: Option<&str>| {
            let text = text.map(str::to_owned);
            Box::new(Expr::Literal(ScalarValue::Utf8(text), None))
        };
        let choice = Expr::Case(datafusion_expr::Case {
            expr: None,
            when_then_expr: vec![
                (more_than(2), Box::new(first)),
                (more_than(1), text(None)),
                (more_than(0), text(Some("b"))),
            ],
            else_expr: None,
        });
        PlannedFunction::new(&choice, &schema, &[0]).unwrap()
    }

    fn text(text: &str) -> Expr {
        Expr::Literal(ScalarValue::from(text), None)
    }

    #[test]
    fn a_choice_among_texts_gives_codes_of_them() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), Some(2), Some(1), None]));
        for (first, texts) in [("a", vec!["a", "b"]), ("b", vec!["b"])] {
            let chosen = choice(text(first))
                .evaluate(&[Arc::clone(&column)], 4)
                .unwrap();
            let coded = chosen.as_dictionary::<UInt32Type>();
            let found: Vec<_> = coded.values().as_string::<i32>().iter().flatten().collect();
            assert_eq!(found, texts);
            let rows = cast_to(&chosen, &DataType::Utf8).unwrap();
            let rows: Vec<_> = rows.as_string::<i32>().iter().collect();
            assert_eq!(rows, [Some(first), None, Some("b"), None]);
        }
    }

    #[test]
    fn choices_among_other_texts_are_others() {
        let (one, same, other) = (choice(text("a")), choice(text("a")), choice(text("c")));
        assert!(one.is_same(&same));
        assert!(!one.is_same(&other));
    }
}
