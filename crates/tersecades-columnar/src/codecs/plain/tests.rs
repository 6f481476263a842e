//! What the conformance suite does not ask of plain values.

use arrow_array::Int64Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::*;
use crate::encoder::ColumnEncoder;

#[test]
fn arrays_come_in_and_go_out_without_a_copy() {
    let array: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5_000));
    let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
    encoder.pin(crate::registry::by_id(0).unwrap());
    let chunk = encoder.encode_new(&array).unwrap();
    let all = Selection::all(chunk.rows());
    let out = chunk.to_arrow(&all, &mut Work::default()).unwrap();
    let address = |array: &ArrayRef| array.as_primitive::<Int64Type>().values().as_ptr();
    let Lanes::U64(lanes) = lanes(&chunk) else {
        panic!("eight bytes a lane");
    };
    assert_eq!(lanes.as_ptr().cast::<i64>(), address(&array));
    assert_eq!(address(&out), address(&array));
}

#[test]
fn a_piece_that_is_read_again_keeps_no_more_than_itself() {
    let long: ArrayRef = Arc::new(Int64Array::from_iter_values(0..500_000));
    let array = long.slice(70_000, 5_000);
    for (reads, is_copied) in [(1.0, false), (2.0, true)] {
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        let mut goal = Goal::default();
        goal.uses.reads = reads;
        encoder.aim(goal);
        encoder.pin(crate::registry::by_id(0).unwrap());
        let chunk = encoder.encode_new(&array).unwrap();
        assert_eq!(chunk.body.array.is_none(), is_copied, "{reads} reads");
        let all = Selection::all(chunk.rows());
        let out = chunk.to_arrow(&all, &mut Work::default()).unwrap();
        assert_eq!(&out, &array);
    }
}
