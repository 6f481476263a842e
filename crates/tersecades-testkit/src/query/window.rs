//! Seeded windows, keys and aggregates.

use std::time::Duration;

use arrow_schema::DataType;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::plan::{AggregateCall, Step};
use tersecades_engine::window::{
    CalendarUnit, Shape, Tz, Window, count, cumulate, global, hop, session, tumble,
};

use super::expression::condition;
use super::scope::{Column, Scope};
use super::{Pace, aggregate};
use crate::random::Random;

/// The first window of a query.
pub(super) fn aggregate(scope: &mut Scope, pace: Pace, random: &mut Random) -> Step {
    let window = match pace.calendar {
        Some((unit, zone, _)) => calendar(unit, zone, random),
        None => any(pace, random),
    };
    windowed(scope, window, true, pace, random)
}

fn calendar(unit: CalendarUnit, zone: Tz, random: &mut Random) -> Window {
    let window = Window::from(Shape::Calendar { unit, zone });
    match random.one_in(3) {
        true => window.offset(Duration::from_secs(60) * random.below(24 * 60) as u32),
        false => window,
    }
}

/// A window of any kind but the calendar's.
fn any(pace: Pace, random: &mut Random) -> Window {
    let (size, slide) = (pace.duration(pace.size), pace.duration(pace.slide));
    let window = match random.below(9) {
        0 => return global(),
        1 => return session(pace.duration(random.between(1, pace.size))),
        2 => return count(*random.pick(&[1, 2, 3, 7, 50, 1_000])),
        3 | 4 => cumulate(size * *random.pick(&[1, 2, 3, 10]), size),
        _ if size == slide => tumble(size),
        _ => hop(size, slide),
    };
    let offset = match random.below(30) {
        0..9 => pace.duration(random.between(0, 3 * pace.slide)),
        9 => Duration::from_secs(1 << 32) - pace.duration(random.between(0, 3 * pace.slide)),
        _ => Duration::ZERO,
    };
    window.offset(offset)
}

/// A window over the windows before it, if it was windows.
pub(super) fn aggregate_again(scope: &mut Scope, pace: Pace, random: &mut Random) -> Step {
    let timed = scope.columns.iter().any(|c| c.name == "window_start");
    if !timed {
        let window = *random.pick(&[global(), count(3)]);
        return windowed(scope, window, false, pace, random);
    }
    let slide = pace.slide * random.between(1, 4);
    let window = match random.below(6) {
        0 | 1 => tumble(pace.duration(slide)),
        2 | 3 => hop(pace.duration(slide * 3), pace.duration(slide)),
        4 => any(pace, random),
        _ => match pace.calendar {
            Some((unit, zone, _)) => calendar(unit, zone, random),
            None => session(pace.duration(slide)),
        },
    };
    windowed(scope, window, true, pace, random)
}

fn windowed(
    scope: &mut Scope,
    window: Window,
    timed: bool,
    pace: Pace,
    random: &mut Random,
) -> Step {
    let time = DataType::Timestamp(pace.unit, None);
    let mut keys: Vec<Column> = Vec::new();
    let fit = |c: &Column| c.exact && !c.name.starts_with("window_");
    let fitting: Vec<Column> = scope.that(fit).into_iter().cloned().collect();
    for _ in 0..random.below(4).min(fitting.len()) {
        let key = random.pick(&fitting);
        if keys.iter().all(|known| known.name != key.name) {
            keys.push(key.clone());
        }
    }
    let mut next = Scope {
        columns: Vec::new(),
    };
    if timed && window.reads_time() {
        next.add("window_start", time.clone());
        next.add("window_end", time);
    }
    next.columns.extend(keys.iter().cloned());
    let mut aggregates = Vec::new();
    let fewest = usize::from(keys.is_empty() || !random.one_in(8));
    for index in 0..fewest * (1 + random.below(5)) {
        let free = |name: &String| keys.iter().all(|key| key.name != *name);
        let names = [format!("a{index}"), format!("b{index}")];
        let output = names.into_iter().find(free).unwrap_or_default();
        let (mut call, column) = call(scope, output, random);
        if random.one_in(4) && !scope.exact().columns.is_empty() {
            call.filter = Some(condition(&scope.exact(), 1, random));
        }
        aggregates.push(call);
        next.columns.extend(column.is_reusable().then_some(column));
    }
    *scope = next;
    let keys = keys.into_iter().map(|key| key.name).collect();
    Step::Aggregate {
        window,
        keys,
        aggregates,
    }
}

/// One aggregate that keeps more than a fold does, if the columns allow, and what it makes.
fn collected(scope: &Scope, output: &str, random: &mut Random) -> Option<(AggregateCall, Column)> {
    let exact = scope.that(|column| column.exact);
    let numeric = |column: &Column| column.data_type.is_numeric();
    let ordering = |column: &Column| {
        let text = matches!(column.data_type, DataType::Utf8 | DataType::Binary);
        column.exact && !text
    };
    let (function, argument, by) = match random.below(4) {
        0 => ("count_distinct", pick(&exact, random)?, None),
        1 => ("median", pick(&scope.that(numeric), random)?, None),
        2 => ("quantile", pick(&scope.that(numeric), random)?, None),
        _ => {
            let by = pick(&scope.that(ordering), random)?;
            let function = *random.pick(&["arg_min", "arg_max", "arg_min_last", "arg_max_last"]);
            (function, random.pick(&scope.columns), Some(by))
        }
    };
    let (data_type, exact) = match function {
        "count_distinct" => (DataType::Int64, true),
        "median" | "quantile" => (DataType::Float64, false),
        _ => (argument.data_type.clone(), argument.exact),
    };
    let fractions = [0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0];
    let call = AggregateCall {
        function: function.to_owned(),
        argument: Some(col(argument.name.clone())),
        by: by.map(|by| col(by.name.clone())),
        parameter: (function == "quantile").then(|| *random.pick(&fractions)),
        output: output.to_owned(),
        ..AggregateCall::default()
    };
    let column = Column {
        name: output.to_owned(),
        data_type,
        exact,
        tame: argument.tame || function == "count_distinct",
        samples: Vec::new(),
    };
    Some((call, column))
}

fn pick<'a>(columns: &[&'a Column], random: &mut Random) -> Option<&'a Column> {
    (!columns.is_empty()).then(|| *random.pick(columns))
}

/// One aggregate and the column it makes.
fn call(scope: &Scope, output: String, random: &mut Random) -> (AggregateCall, Column) {
    let made = match random.below(3) {
        0 => collected(scope, &output, random),
        1 => aggregate::any(scope, &output, random),
        _ => None,
    };
    if let Some(made) = made {
        return made;
    }
    let (function, argument, data_type, exact) = choose(scope, random);
    let tame = true;
    let column = Column {
        name: output.clone(),
        data_type,
        exact,
        tame,
        samples: Vec::new(),
    };
    let column = Column {
        tame: is_still_tame(&function, &column, scope, &argument),
        ..column
    };
    (
        AggregateCall {
            function,
            argument,
            output,
            ..AggregateCall::default()
        },
        column,
    )
}

/// A function, its argument, the type of its result and whether that is exact.
fn choose(scope: &Scope, random: &mut Random) -> (String, Option<Expression>, DataType, bool) {
    let summable = scope.that(Column::is_summable);
    let ordered = scope.that(|column| column.data_type != DataType::Binary);
    let spread = scope.that(|column| {
        let float_or_integer = column.data_type.is_integer() || column.data_type.is_floating();
        float_or_integer && (column.tame || column.data_type.is_integer())
    });
    let counted = |function: &str, argument: Option<Expression>| {
        (function.to_owned(), argument, DataType::Int64, true)
    };
    match random.below(8) {
        0 if !scope.columns.is_empty() => {
            counted("count", Some(col(random.pick(&scope.columns).name.clone())))
        }
        1 if !scope.exact().columns.is_empty() => {
            counted("count_if", Some(condition(&scope.exact(), 1, random)))
        }
        2 | 3 if !summable.is_empty() => {
            let column = *random.pick(&summable);
            let exact = column.exact && !column.data_type.is_floating();
            (
                "sum".to_owned(),
                Some(col(column.name.clone())),
                sum_type(&column.data_type),
                exact,
            )
        }
        4 | 5 if !ordered.is_empty() => {
            let column = *random.pick(&ordered);
            let function = random.pick(&["min", "max"]).to_string();
            (
                function,
                Some(col(column.name.clone())),
                column.data_type.clone(),
                column.exact,
            )
        }
        6 | 7 if !spread.is_empty() => {
            let functions = [
                "mean",
                "variance",
                "variance_population",
                "stddev",
                "stddev_population",
            ];
            let argument = col(random.pick(&spread).name.clone());
            (
                random.pick(&functions).to_string(),
                Some(argument),
                DataType::Float64,
                false,
            )
        }
        _ => counted("count", None),
    }
}

/// The smallest of wild values is as wild as they are.
fn is_still_tame(
    function: &str,
    column: &Column,
    scope: &Scope,
    argument: &Option<Expression>,
) -> bool {
    if !matches!(function, "min" | "max") {
        return column.tame;
    }
    let name = argument.iter().flat_map(Expression::columns).next();
    scope
        .columns
        .iter()
        .any(|known| Some(known.name.as_str()) == name && known.tame)
}

pub(super) fn sum_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal128(_, scale) => DataType::Decimal128(38, *scale),
        unsigned if unsigned.is_unsigned_integer() => DataType::UInt64,
        float if float.is_floating() => DataType::Float64,
        _ => DataType::Int64,
    }
}
