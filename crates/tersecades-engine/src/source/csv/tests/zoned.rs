//! Times in columns that have a time zone.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampSecondType;
use arrow_array::{ArrayRef, TimestampSecondArray};
use arrow_schema::{DataType, TimeUnit};

use super::super::field::{Cell, FieldKind};
use crate::expression::cast_time;

fn parse(data_type: DataType, text: &str) -> Cell {
    let kind = FieldKind::new(&data_type, None).unwrap();
    kind.parse(text).unwrap()
}

#[test]
fn a_zoned_column_reads_plain_times_by_its_clocks() {
    let seconds = |zone: &str, text: &str| {
        let column = DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
        parse(column, text)
    };
    assert_eq!(seconds("UTC", "1970-01-01 00:01"), Cell::Int(60));
    let instant = Cell::Int(60 - 3600);
    for zone in ["UTC", "Europe/Berlin", "-05:00"] {
        assert_eq!(seconds(zone, "1970-01-01 00:01+01:00"), instant, "{zone}");
    }
    assert_eq!(seconds("Europe/Berlin", "1970-01-01 00:01"), instant);
    assert_eq!(seconds("+01:00", "1970-01-01 00:01"), instant);
    assert_eq!(seconds("Europe/Berlin", "1970-01-01"), Cell::Int(-3600));
}

#[test]
fn plain_times_are_those_that_casts_give() {
    let (local, zoned) = (
        DataType::Timestamp(TimeUnit::Second, None),
        DataType::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into())),
    );
    // Half hours around both changes of clocks, among them times that are twice and never.
    for day in ["2024-03-30", "2024-03-31", "2024-10-26", "2024-10-27"] {
        for half_hour in 0..48 {
            let text = format!("{day} {:02}:{}0", half_hour / 2, half_hour % 2 * 3);
            let Cell::Int(plain) = parse(local.clone(), &text) else {
                panic!("{text}");
            };
            let plain: ArrayRef = Arc::new(TimestampSecondArray::from(vec![plain]));
            let cast = cast_time(&plain, &zoned).unwrap();
            let cast = cast.as_primitive::<TimestampSecondType>().value(0);
            assert_eq!(parse(zoned.clone(), &text), Cell::Int(cast), "{text}");
        }
    }
}
