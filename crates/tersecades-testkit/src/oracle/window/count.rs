//! Windows of so many rows: the rows of each key, cut into pieces.

use super::super::order::order_rows;
use super::super::{Flow, Traveller, tick_ns};
use super::{Group, Span, keys_of, same_keys};

/// Full windows in the order of their last rows, then the others by key.
pub(super) fn groups(flow: &Flow, rows: u64, keys: &[usize]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for row in &flow.rows {
        let key = keys_of(row, keys);
        let filling = groups
            .iter_mut()
            .find(|group| (group.rows.len() as u64) < rows && same_keys(&group.keys, &key));
        match filling {
            Some(group) => group.rows.push(row.clone()),
            None => groups.push(Group {
                span: None,
                keys: key,
                rows: vec![row.clone()],
            }),
        }
    }
    for group in &mut groups {
        group.span = span(flow, &group.rows);
        // Windows of rows order them by arrival alone.
        group.rows.iter_mut().for_each(|row| row.time_ns = Some(0));
    }
    let (mut full, mut rest): (Vec<Group>, Vec<Group>) = groups
        .into_iter()
        .partition(|group| group.rows.len() as u64 == rows);
    full.sort_by_key(|group| group.rows.last().map(|row| row.arrival));
    rest.sort_by(|a, b| order_rows(&a.keys, &b.keys));
    full.extend(rest);
    full
}

/// From the least event time to just after the greatest.
fn span(flow: &Flow, rows: &[Traveller]) -> Option<Span> {
    let times = || {
        let times = rows.iter().filter_map(|row| row.time_ns);
        times.map(|time| time.div_euclid(tick_ns(flow.unit)))
    };
    Some((times().min()?, times().max()? + 1))
}
