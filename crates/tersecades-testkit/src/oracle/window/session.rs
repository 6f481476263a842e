//! Sessions: lists of rows, of which a row joins all that have a row close to it.

use std::time::Duration;

use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::super::order::order_rows;
use super::super::{Answer, Flow, Traveller, tick_ns};
use super::aligned::length;
use super::{Group, Span, keys_of, same_keys, ticks_of};

/// Rows and their times.
struct Session {
    keys: Vec<Value>,
    rows: Vec<(i128, Traveller)>,
}

impl Session {
    fn span(&self, gap: i128) -> Span {
        let times = || self.rows.iter().map(|(time, _)| *time);
        let (first, last) = (times().min(), times().max());
        (first.unwrap_or_default(), last.unwrap_or_default() + gap)
    }
}

/// Sessions by their end, then start, then key.
pub(super) fn groups(
    flow: &Flow,
    gap: Duration,
    keys: &[usize],
    result: &mut Answer,
) -> Result<Vec<Group>> {
    let gap = length(gap, tick_ns(flow.unit))?;
    let mut sessions: Vec<Session> = Vec::new();
    for row in &flow.rows {
        let (time, watermark) = ticks_of(flow, row);
        let mut joined = Session {
            keys: keys_of(row, keys),
            rows: vec![(time, row.clone())],
        };
        let (joining, apart): (Vec<Session>, Vec<Session>) =
            sessions.into_iter().partition(|session| {
                let is_open = watermark.is_none_or(|watermark| session.span(gap).1 > watermark);
                let mut times = session.rows.iter().map(|(other, _)| (other - time).abs());
                is_open
                    && same_keys(&session.keys, &joined.keys)
                    && times.any(|distance| distance < gap)
            });
        sessions = apart;
        if joining.is_empty() && watermark.is_some_and(|watermark| time + gap <= watermark) {
            result.late.push(row.arrival);
            continue;
        }
        for session in joining {
            joined.rows.extend(session.rows);
        }
        sessions.push(joined);
    }
    sessions.sort_by(|a, b| {
        let ((first, last), (other, end)) = (a.span(gap), b.span(gap));
        let spans = (last, first).cmp(&(end, other));
        spans.then_with(|| order_rows(&a.keys, &b.keys))
    });
    let groups = sessions.into_iter().map(|session| Group {
        span: Some(session.span(gap)),
        keys: session.keys,
        rows: session.rows.into_iter().map(|(_, row)| row).collect(),
    });
    Ok(groups.collect())
}
