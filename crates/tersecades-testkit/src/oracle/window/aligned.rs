//! Windows whose boundaries all groups share: a row is in every one that holds its time.

use std::time::Duration;

use tersecades_columnar::error::{Error, Result};
use tersecades_engine::window::{Shape, Window};

use super::super::order::order_rows;
use super::super::{Answer, Flow, Traveller, tick_ns};
use super::calendar::Calendar;
use super::{Group, Span, keys_of, same_keys, ticks_of};

/// The windows that hold each time, in ticks.
enum Windows {
    Global,
    /// `[k * slide + offset, k * slide + offset + size)`.
    Hop {
        size: i128,
        slide: i128,
        offset: i128,
    },
    /// `[k * size + offset, k * size + offset + i * step)` for `i * step` up to `size`.
    Cumulate {
        size: i128,
        step: i128,
        offset: i128,
    },
    Calendar(Calendar),
}

/// A duration in ticks.
pub(super) fn ticks(duration: Duration, tick: i128) -> Result<i128> {
    let nanos =
        i128::try_from(duration.as_nanos()).map_err(|_| Error::invalid("a window is too long"))?;
    match nanos % tick {
        0 => Ok(nanos / tick),
        _ => Err(Error::invalid("a window is no whole number of ticks")),
    }
}

/// A duration in ticks, longer than zero.
pub(super) fn length(duration: Duration, tick: i128) -> Result<i128> {
    match ticks(duration, tick)? {
        0 => Err(Error::invalid("a window must be longer than zero")),
        ticks => Ok(ticks),
    }
}

impl Windows {
    fn of(window: &Window, tick: i128) -> Result<Self> {
        let offset = ticks(window.offset, tick)?;
        Ok(match window.shape {
            Shape::Tumble { size } => Windows::Hop {
                size: length(size, tick)?,
                slide: length(size, tick)?,
                offset,
            },
            Shape::Hop { size, slide } => Windows::Hop {
                size: length(size, tick)?,
                slide: length(slide, tick)?,
                offset,
            },
            Shape::Cumulate { size, step } => Windows::Cumulate {
                size: length(size, tick)?,
                step: length(step, tick)?,
                offset,
            },
            Shape::Calendar { unit, zone } => {
                Windows::Calendar(Calendar::new(unit, zone, window.offset, tick))
            }
            _ => Windows::Global,
        })
    }

    /// All windows that hold `time`, ascending.
    fn holding(&self, time: i128) -> Vec<Span> {
        let mut spans = Vec::new();
        match self {
            Windows::Global => spans.push((i128::MIN, i128::MAX)),
            Windows::Hop {
                size,
                slide,
                offset,
            } => {
                let mut start = (time - offset).div_euclid(*slide) * slide + offset;
                while start + size > time {
                    spans.push((start, start + size));
                    start -= slide;
                }
            }
            Windows::Cumulate { size, step, offset } => {
                let start = (time - offset).div_euclid(*size) * size + offset;
                let ends = (1..=size / step).map(|i| start + i * step);
                spans.extend(ends.filter(|end| *end > time).map(|end| (start, end)));
            }
            Windows::Calendar(calendar) => spans.push(calendar.holding(time)),
        }
        spans.sort();
        spans
    }
}

/// One row in one of its windows.
struct Member {
    span: Span,
    group: Group,
}

/// Every row in each of its windows that is still open when it arrives, by window, then by key.
pub(super) fn groups(
    flow: &Flow,
    window: &Window,
    keys: &[usize],
    result: &mut Answer,
) -> Result<Vec<Group>> {
    let windows = Windows::of(window, tick_ns(flow.unit))?;
    let global = matches!(windows, Windows::Global);
    let mut members = Vec::new();
    for row in &flow.rows {
        let (time, watermark) = ticks_of(flow, row);
        let holding = windows.holding(time);
        if holding.is_empty() {
            result.skipped_rows += 1;
            continue;
        }
        let is_open = |span: &&Span| global || watermark.is_none_or(|watermark| span.1 > watermark);
        let open: Vec<&Span> = holding.iter().filter(is_open).collect();
        if open.is_empty() {
            result.late.push(row.arrival);
        }
        for span in open {
            members.push(Member {
                span: *span,
                group: Group {
                    span: (!global).then_some(*span),
                    keys: keys_of(row, keys),
                    rows: vec![row.clone()],
                },
            });
        }
    }
    members.sort_by(|a, b| {
        let spans = a.span.cmp(&b.span);
        spans.then_with(|| order_rows(&a.group.keys, &b.group.keys))
    });
    let mut groups: Vec<Group> = Vec::new();
    for member in members {
        let rows: Vec<Traveller> = member.group.rows;
        match groups.last_mut() {
            Some(last)
                if last.span == member.group.span && same_keys(&last.keys, &member.group.keys) =>
            {
                last.rows.extend(rows);
            }
            _ => groups.push(Group {
                rows,
                ..member.group
            }),
        }
    }
    Ok(groups)
}
