//! Seeded queries, valid by construction: filters, projections, look-ups, windows, aggregates.
//!
//! What could make an answer depend on the order of additions or on rounding is left out: sums
//! that leave their type, sums over infinities, filters on and groups of rounded results.

pub mod expression;
pub mod scope;

mod aggregate;
mod function;
mod window;

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use tersecades_columnar::types::Value;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::plan::{EventTime, LookupTable, Query, Step};
use tersecades_engine::window::{CALENDAR_UNITS, CalendarUnit, Tz};

use crate::data::column::small;
use crate::data::stream::TIME;
use crate::data::{Stream, TIME_SHAPES, TimeShape, TimeStream, random_stream, to_batches};
use crate::oracle::order::order;
use crate::oracle::tick_ns;
use crate::random::Random;
use crate::trial::smaller::{columns_of, without_column};

use expression::{computed, condition};
use scope::Scope;

/// Ticks of the windows of one query, and what follows from them.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Unit of the event time.
    pub unit: TimeUnit,
    /// Length of the windows.
    pub size: i64,
    /// Distance between their starts.
    pub slide: i64,
    /// How late rows may be.
    pub lateness: i64,
    /// The calendar that windows follow, if they do, and a second near which clocks change.
    pub calendar: Option<(CalendarUnit, Tz, i64)>,
}

impl Pace {
    /// A length of time in ticks.
    pub fn duration(self, ticks: i64) -> Duration {
        Duration::from_nanos(ticks.unsigned_abs() * tick_ns(self.unit) as u64)
    }
}

/// The query and the stream that `seed` names.
pub fn random_query(seed: u64) -> (Query, Stream) {
    let mut random = Random::new(seed);
    let pace = pace(&mut random);
    let (query_time, stream) = timed_stream(pace, &mut random);
    let mut scope = Scope::of_stream(&stream);
    let mut steps = Vec::new();
    for _ in 0..random.below(3) {
        steps.push(match random.below(4) {
            0 => project(&mut scope, &mut random),
            1 => look_up(&mut scope, &mut random),
            _ => Step::Filter(condition(&scope, 3, &mut random)),
        });
    }
    steps.push(window::aggregate(&mut scope, pace, &mut random));
    if random.one_in(3) {
        if random.one_in(2) && !scope.exact().columns.is_empty() {
            steps.push(Step::Filter(condition(&scope.exact(), 1, &mut random)));
        }
        steps.push(window::aggregate_again(&mut scope, pace, &mut random));
    }
    let query = Query {
        event_time: query_time,
        steps,
    };
    let stream = trimmed(stream, &query, &mut random);
    (query, stream)
}

/// The stream without most of the columns that `query` does not name: a case costs what its
/// columns cost.
fn trimmed(mut stream: Stream, query: &Query, random: &mut Random) -> Stream {
    let named = columns_of(query);
    for index in (1..stream.schema.fields().len()).rev() {
        let is_named = named.contains(stream.schema.field(index).name());
        if !is_named && !random.one_in(9) {
            stream = without_column(&stream, index);
        }
    }
    stream
}

/// Zones, and seconds at which their clocks change.
const CLOCK_CHANGES: &[(Tz, i64)] = &[
    (Tz::Europe__Berlin, 1_711_846_800),
    (Tz::Europe__Berlin, 1_729_990_800),
    (Tz::America__New_York, 1_710_054_000),
    (Tz::America__Sao_Paulo, 1_541_300_400),
    (Tz::America__St_Johns, 1_289_097_060),
    (Tz::Pacific__Apia, 1_325_239_200),
    (Tz::Australia__Lord_Howe, 1_712_415_600),
    (Tz::Asia__Kolkata, 0),
    (Tz::UTC, -86_400),
];

/// A stream of some rows a day.
fn calendar_pace(random: &mut Random) -> Pace {
    let (_, unit) = *random.pick(CALENDAR_UNITS);
    let (zone, second) = *random.pick(CLOCK_CHANGES);
    let (unit_of_time, ticks) = *random.pick(&[
        (TimeUnit::Second, 1),
        (TimeUnit::Millisecond, 1_000),
        (TimeUnit::Microsecond, 1_000_000),
    ]);
    let size = 86_400 * ticks;
    Pace {
        unit: unit_of_time,
        size,
        slide: size,
        lateness: if random.one_in(3) {
            0
        } else {
            random.between(0, 3 * size)
        },
        calendar: Some((unit, zone, second)),
    }
}

fn pace(random: &mut Random) -> Pace {
    if random.one_in(7) {
        return calendar_pace(random);
    }
    let units = [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
        TimeUnit::Nanosecond,
    ];
    let size = *random.pick(&[1, 2, 7, 10, 60, 100, 3_600]);
    let slide = match random.below(4) {
        0 | 1 => size,
        2 => (size / random.between(1, 10)).max(1),
        _ => size * random.between(1, 4) + random.between(0, 3),
    };
    let lateness = if random.one_in(3) {
        0
    } else {
        random.between(0, 3 * size)
    };
    Pace {
        unit: *random.pick(&units),
        size,
        slide,
        lateness,
        calendar: None,
    }
}

fn timed_stream(pace: Pace, random: &mut Random) -> (EventTime, Stream) {
    let time_type = match random.one_in(3) {
        true => DataType::Int64,
        false => DataType::Timestamp(pace.unit, None),
    };
    let shape = match random.one_in(4) {
        true => TimeShape::Late,
        false => *random.pick(TIME_SHAPES),
    };
    let times = TimeStream {
        shape: match (shape, pace.calendar) {
            // No calendar reaches so far.
            (TimeShape::Ends, Some(_)) => TimeShape::Negative,
            (shape, _) => shape,
        },
        step: (pace.size / random.between(1, 30)).max(1),
        window: pace.slide,
        lateness: pace.lateness,
        origin: pace.calendar.map_or(0, |(_, _, second)| {
            let ticks = 1_000_000_000 / tick_ns(pace.unit) as i64;
            (second - random.between(0, 20 * 86_400)) * ticks
        }),
    };
    let rows = *random.pick(&[0, 1, 12, 40, 40, 100, 100, 100, 300, 300, 300, 1_500]);
    let stream = random_stream(&time_type, times, rows, random);
    let expression = match (&time_type, random.one_in(2)) {
        (DataType::Int64, true) => Expression::EpochTime(Box::new(col(TIME)), pace.unit),
        _ => col(TIME),
    };
    let lateness = pace.duration(pace.lateness);
    (
        EventTime {
            expression,
            unit: pace.unit,
            lateness,
        },
        stream,
    )
}

fn project(scope: &mut Scope, random: &mut Random) -> Step {
    let mut list = Vec::new();
    let mut next = Vec::new();
    for column in &scope.columns {
        if random.one_in(4) {
            continue;
        }
        let mut column = column.clone();
        let from = col(column.name.clone());
        if random.one_in(3) {
            column.name = format!("renamed_{}", column.name);
        }
        column.name = unused(column.name, &list);
        list.push((column.name.clone(), from));
        next.push(column);
    }
    for index in 0..random.below(3) {
        let name = unused(format!("computed_{}_{index}", scope.columns.len()), &list);
        let (column, expression) = computed(scope, &name, random);
        list.push((name, expression));
        next.push(column);
    }
    if list.is_empty() {
        let column = scope.columns[0].clone();
        list.push((column.name.clone(), col(column.name.clone())));
        next.push(column);
    }
    scope.columns = next;
    Step::Project(list)
}

/// `name`, or one like it that no column of `list` has.
fn unused(mut name: String, list: &[(String, Expression)]) -> String {
    while list.iter().any(|(known, _)| *known == name) {
        name.push('_');
    }
    name
}

/// A look-up by a column of the stream; a filter when none is fit to be a key.
fn look_up(scope: &mut Scope, random: &mut Random) -> Step {
    let types = [
        DataType::Int8,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt16,
        DataType::Utf8,
        DataType::Date32,
    ];
    let data_type = random.pick(&types).clone();
    let Some(key) = scope
        .columns
        .iter()
        .find(|c| c.data_type == data_type)
        .cloned()
    else {
        return Step::Filter(condition(scope, 2, random));
    };
    let mut keys: Vec<Value> = key.samples.iter().take(30).cloned().collect();
    keys.extend((0..5).map(|number| small(&data_type, 90 + number)));
    keys.sort_by(order);
    keys.dedup_by(|a, b| order(a, b).is_eq());
    let rows = keys.into_iter().map(|key| {
        let label = if random.one_in(5) {
            Value::Null
        } else {
            small(&DataType::Utf8, 7)
        };
        vec![key, label, Value::from(random.between(-5, 5))]
    });
    let rows: Vec<Vec<Value>> = rows.collect();
    let fields = [
        ("id", data_type),
        ("label", DataType::Utf8),
        ("weight", DataType::Int32),
    ];
    let fields: Vec<Field> = fields
        .map(|(name, data_type)| Field::new(name, data_type, true))
        .to_vec();
    let batch = to_batches(&Arc::new(Schema::new(fields)), &rows, rows.len()).remove(0);
    let mut suffix = scope.columns.len();
    let names = |suffix| (format!("label_{suffix}"), format!("weight_{suffix}"));
    let known = |name: String| scope.columns.iter().any(|column| column.name == name);
    while known(names(suffix).0) || known(names(suffix).1) {
        suffix += 1;
    }
    let (label, weight) = names(suffix);
    scope.add(&label, DataType::Utf8);
    scope.add(&weight, DataType::Int32);
    Step::LookupJoin {
        table: Arc::new(LookupTable::new("table", batch)),
        stream_key: key.name,
        table_key: "id".to_owned(),
        columns: vec![("label".to_owned(), label), ("weight".to_owned(), weight)],
        prepared: Arc::default(),
    }
}
