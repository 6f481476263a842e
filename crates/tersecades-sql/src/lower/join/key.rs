//! Keys of joins in types that hold those of both sides, where the common one of DataFusion does
//! not.

use arrow_schema::DataType;
use datafusion_expr::{Expr, ExprSchemable, Join, try_cast};

use super::timed::unwidened;
use crate::function::key::{in_nanoseconds, in_scale};
use crate::function::whole::key_beside;
use crate::lower::expression::without_widening;

/// Whole numbers beside floats, of which one is cast to the type of the other, and decimals of
/// scales of which no decimal holds both.
pub(in crate::lower) fn exact((left, right): &mut (Expr, Expr), join: &Join) {
    let schemas = [join.left.schema(), join.right.schema()];
    let own = |key, side: usize| {
        let key = without_widening(key, schemas[side]).ok()?;
        Some((key, key.get_type(schemas[side]).ok()?))
    };
    let (Some((a, a_type)), Some((b, b_type))) = (own(left, 0), own(right, 1)) else {
        return;
    };
    let beside = match a_type.is_floating() == b_type.is_floating() {
        true => in_scale,
        false => key_beside,
    };
    let keys = [beside(a, &a_type, &b_type), beside(b, &b_type, &a_type)];
    if keys.iter().all(Option::is_none) {
        return;
    }
    let [a, b] = [(keys[0].clone(), a), (keys[1].clone(), b)]
        .map(|(key, own)| key.unwrap_or_else(|| own.clone()));
    (*left, *right) = (a, b);
}

/// Brings keys that are times of two units into the finer one. Times that it does not reach become
/// null, as no time of the other side equals them; where `nulls_count`, the keys become decimals.
pub(in crate::lower) fn reach((left, right): &mut (Expr, Expr), join: &Join, nulls_count: bool) {
    let schemas = [join.left.schema(), join.right.schema()];
    let own = (unwidened(left, schemas[0]), unwidened(right, schemas[1]));
    let types = (own.0.get_type(schemas[0]), own.1.get_type(schemas[1]));
    let (Ok(left_type), Ok(right_type)) = types else {
        return;
    };
    let Some(finer) = finer_unit(&left_type, &right_type) else {
        return;
    };
    let reached = |time: &Expr, own: DataType| match own == finer {
        _ if nulls_count => in_nanoseconds(time, &own).unwrap_or_else(|| time.clone()),
        true => time.clone(),
        false => try_cast(time.clone(), finer.clone()),
    };
    (*left, *right) = (reached(own.0, left_type), reached(own.1, right_type));
}

/// The finer of two units of times; `None` where they are one.
fn finer_unit(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType::{Date32, Timestamp};
    Some(match (left, right) {
        (Timestamp(unit, zone), Timestamp(other, same)) if unit != other && zone == same => {
            Timestamp(*unit.max(other), zone.clone())
        }
        (Timestamp(unit, None), Date32) | (Date32, Timestamp(unit, None)) => Timestamp(*unit, None),
        _ => return None,
    })
}
