//! Seeded event times: how a stream moves through time, and how it fails to.

use tersecades_columnar::types::Value;

use crate::random::Random;

/// How event times move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeShape {
    /// Ascending, with ties.
    InOrder,
    /// Out of order within the lateness.
    Jittered,
    /// Some rows are later than the lateness allows.
    Late,
    /// On the edges of windows, several rows each.
    Edges,
    /// From before the epoch to after it.
    Negative,
    /// Jumps over many windows, forwards and a little back.
    Gaps,
    /// Thousands of years ahead.
    FarFuture,
    /// Next to an end of the 64 bits that times have.
    Ends,
    /// Some rows without time.
    Nulls,
}

/// Every shape.
pub const TIME_SHAPES: &[TimeShape] = &[
    TimeShape::InOrder,
    TimeShape::Jittered,
    TimeShape::Late,
    TimeShape::Edges,
    TimeShape::Negative,
    TimeShape::Gaps,
    TimeShape::FarFuture,
    TimeShape::Ends,
    TimeShape::Nulls,
];

/// What the times of a stream depend on, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct TimeStream {
    /// How times move.
    pub shape: TimeShape,
    /// Average distance between rows.
    pub step: i64,
    /// Distance between window edges.
    pub window: i64,
    /// How late rows may be.
    pub lateness: i64,
    /// Where time starts, but for shapes that say it themselves.
    pub origin: i64,
}

/// `rows` event times.
pub fn times(stream: TimeStream, rows: usize, random: &mut Random) -> Vec<Value> {
    let TimeStream {
        shape,
        step,
        window,
        lateness,
        origin,
    } = stream;
    let mut clock = match shape {
        TimeShape::Negative => -(rows as i64 / 2) * step,
        TimeShape::FarFuture => 4_000_000_000_000,
        TimeShape::Ends => {
            let reach = rows as i64 * 2 * step + lateness.max(0) + random.between(0, 4 * window);
            match random.one_in(2) {
                true => i64::MAX - reach,
                false => i64::MIN + reach,
            }
        }
        _ => origin + random.between(0, 1_000_000),
    };
    let mut times = Vec::with_capacity(rows);
    for _ in 0..rows {
        clock += random.between(0, 2 * step);
        let back = random.between(0, lateness.max(0));
        times.push(Value::from(match shape {
            TimeShape::InOrder | TimeShape::Negative | TimeShape::FarFuture => clock,
            TimeShape::Jittered | TimeShape::Ends => clock - back,
            TimeShape::Late if random.one_in(8) => clock - lateness - random.between(0, 4 * window),
            TimeShape::Late => clock - back,
            TimeShape::Edges => clock.div_euclid(window) * window + random.between(-1, 1),
            TimeShape::Gaps => {
                if random.one_in(50) {
                    clock += window * random.between(10, 1000);
                }
                clock - back
            }
            TimeShape::Nulls if random.one_in(6) => {
                times.push(Value::Null);
                continue;
            }
            TimeShape::Nulls => clock - back,
        }));
    }
    times
}
