//! `AND` and `OR` inside of DataFusion's expressions, each part asked of the rows that are open.
//!
//! ```text
//! s                               ''       '7'      null
//! s <> ''                         false    true     unknown    fails for no row: asked first
//! CAST(s AS INTEGER) > 5          –        true     unknown    asked of two rows
//! ```
//! DataFusion asks both sides of all rows unless few are open, so that a cast fails on rows that do
//! not count.

use std::fmt;
use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, or_kleene};
use arrow_array::{Array as _, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Schema};
use datafusion_common::Result;
use datafusion_common::cast::as_boolean_array;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_expr::expressions::{
    BinaryExpr, CaseExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::function::compare::EXACTLY;
use crate::function::float::{CANONICAL_FLOAT, is_comparison};

type Part = Arc<dyn PhysicalExpr>;

/// `AND` or `OR` of parts that may fail.
#[derive(Debug, PartialEq, Eq, Hash)]
struct InTurn {
    op: Operator,
    parts: Vec<Part>,
}

/// `expr`, in which what may fail is asked of those rows alone that `AND` and `OR` leave open: what
/// cannot fail comes first, the others as they are written.
///
/// # Errors
/// What making the expression anew says.
pub(crate) fn asked_in_turn(expr: Part) -> Result<Part> {
    let turned = expr.transform_down(|part| {
        let Some(op) = logic_of(&part) else {
            return Ok(Transformed::no(part));
        };
        if !may_fail(&part) {
            return Ok(Transformed::new(part, false, TreeNodeRecursion::Jump));
        }
        let mut parts = Vec::new();
        add_parts(&part, op, &mut parts);
        let (unsure, sure): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(may_fail);
        let joined = |a: Part, b: Part| -> Part { Arc::new(BinaryExpr::new(a, op, b)) };
        let sure = sure.into_iter().reduce(joined);
        let parts = sure.into_iter().chain(unsure).collect();
        let turned: Part = Arc::new(InTurn { op, parts });
        Ok(Transformed::yes(turned))
    });
    Ok(turned?.data)
}

/// The operator of `AND` and `OR`.
fn logic_of(expr: &Part) -> Option<Operator> {
    let op = *expr.downcast_ref::<BinaryExpr>()?.op();
    matches!(op, Operator::And | Operator::Or).then_some(op)
}

fn add_parts(expr: &Part, op: Operator, parts: &mut Vec<Part>) {
    match expr.downcast_ref::<BinaryExpr>() {
        Some(binary) if *binary.op() == op => {
            add_parts(binary.left(), op, parts);
            add_parts(binary.right(), op, parts);
        }
        _ => parts.push(Arc::clone(expr)),
    }
}

/// Whether computing `expr` may fail for some values; of arithmetic, casts and functions nothing
/// else is known.
fn may_fail(expr: &Part) -> bool {
    !is_total(expr) || expr.children().into_iter().any(may_fail)
}

/// Whether `expr` by itself fails for no values.
fn is_total(expr: &Part) -> bool {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return logic_of(expr).is_some() || is_comparison(*binary.op());
    }
    if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
        return [EXACTLY, CANONICAL_FLOAT].contains(&call.fun().name());
    }
    expr.is::<Column>()
        || expr.is::<Literal>()
        || expr.is::<NotExpr>()
        || expr.is::<IsNullExpr>()
        || expr.is::<IsNotNullExpr>()
        || expr.is::<InListExpr>()
        || expr.is::<LikeExpr>()
        || expr.is::<CaseExpr>()
}

impl InTurn {
    /// The rows that no part has settled.
    fn open_rows(&self, joined: &BooleanArray) -> BooleanArray {
        let settled = match self.op {
            Operator::Or => joined.values().clone(),
            _ => !joined.values(),
        };
        let settled = match joined.nulls() {
            Some(nulls) => &settled & nulls.inner(),
            None => settled,
        };
        BooleanArray::new(!&settled, None)
    }
}

impl fmt::Display for InTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts.iter().map(|part| format!("({part})")).collect();
        write!(f, "{}", parts.join(&format!(" {} ", self.op)))
    }
}

impl PhysicalExpr for InTurn {
    fn data_type(&self, _schema: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _schema: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let mut joined = BooleanArray::from(vec![self.op == Operator::And; rows]);
        for part in &self.parts {
            let open = self.open_rows(&joined);
            if !open.has_true() {
                break;
            }
            let truths = part.evaluate_selection(batch, &open)?.into_array(rows)?;
            let truths = as_boolean_array(&truths)?;
            joined = match self.op {
                Operator::Or => or_kleene(&joined, truths)?,
                _ => and_kleene(&joined, truths)?,
            };
        }
        Ok(ColumnarValue::Array(Arc::new(joined)))
    }

    fn children(&self) -> Vec<&Part> {
        self.parts.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, parts: Vec<Part>) -> Result<Part> {
        let op = self.op;
        Ok(Arc::new(InTurn { op, parts }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, StringArray};
    use datafusion_physical_expr::expressions::{cast, col};

    use super::*;

    /// Rows of each pair of truths, the second as text.
    fn truths() -> RecordBatch {
        let all = [Some(true), Some(false), None];
        let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b)));
        let (a, b): (Vec<_>, Vec<_>) = pairs.unzip();
        let texts = b.iter().map(|b| b.map(|b| b.to_string()));
        let a: ArrayRef = Arc::new(BooleanArray::from(a));
        let b: ArrayRef = Arc::new(texts.collect::<StringArray>());
        RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap()
    }

    #[test]
    fn parts_in_turn_are_as_true_as_all_at_once() {
        let batch = truths();
        let schema = batch.schema();
        let a = || col("a", &schema).unwrap();
        let b = || cast(col("b", &schema).unwrap(), &schema, DataType::Boolean).unwrap();
        for op in [Operator::And, Operator::Or] {
            for (left, right) in [(a(), b()), (b(), a()), (b(), b())] {
                let both: Part = Arc::new(BinaryExpr::new(left, op, right));
                let turned = asked_in_turn(Arc::clone(&both)).unwrap();
                assert!(turned.is::<InTurn>() && !both.is::<InTurn>());
                let found = [both, turned].map(|expr| {
                    let found = expr.evaluate(&batch).unwrap();
                    found.into_array(batch.num_rows()).unwrap()
                });
                assert_eq!(*found[0], *found[1], "{op}");
            }
        }
    }

    #[test]
    fn rows_that_are_settled_are_asked_nothing_else() {
        let batch = truths();
        let schema = batch.schema();
        let a = col("a", &schema).unwrap();
        let number = cast(col("b", &schema).unwrap(), &schema, DataType::Int32).unwrap();
        let number: Part = Arc::new(IsNullExpr::new(number));
        let is_known = Arc::new(IsNotNullExpr::new(col("b", &schema).unwrap()));
        for parts in [
            [Arc::clone(&number), is_known.clone() as Part],
            [is_known as Part, number],
        ] {
            let [left, right] = parts;
            let either: Part = Arc::new(BinaryExpr::new(left, Operator::Or, right));
            let both = Arc::new(BinaryExpr::new(Arc::clone(&a), Operator::And, either));
            let turned = asked_in_turn(both).unwrap().evaluate(&batch).unwrap();
            let turned = turned.into_array(batch.num_rows()).unwrap();
            assert_eq!(*turned, **batch.column(0));
        }
    }
}
