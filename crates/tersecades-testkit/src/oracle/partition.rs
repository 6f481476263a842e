//! Partitions: rows of several sources that are in order each by itself.

use super::Flow;

/// What a partition does besides sending rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It sends nothing any more.
    Ends,
    /// It has been silent for so long that it is not waited for until it sends again.
    Idles,
}

/// Which partition each arriving row is of, and when partitions end and fall silent.
#[derive(Debug, Clone, Default)]
pub struct Partitioned {
    /// The partition of each row, in order of arrival.
    pub of_rows: Vec<usize>,
    /// What partitions do, each before the row of that number, in order.
    pub events: Vec<(usize, usize, Event)>,
    /// How many partitions there are.
    pub count: usize,
}

/// How far a partition has come.
#[derive(Clone, Default)]
struct Partition {
    newest: Option<i128>,
    ended: bool,
    idle: bool,
}

/// The newest time that partitions agree on: the least of those that are waited for, and the
/// newest of all when none is.
fn agreed(partitions: &[Partition]) -> Option<i128> {
    let waited_for = || partitions.iter().filter(|p| !p.ended && !p.idle);
    match waited_for().count() {
        0 => partitions.iter().map(|p| p.newest).max().flatten(),
        _ => waited_for().map(|p| p.newest).min().flatten(),
    }
}

/// Gives every row the watermark of its partitions: what they agree on, less the lateness; it
/// never goes back.
pub(crate) fn judge(flow: &mut Flow, partitioned: &Partitioned, lateness_ns: i128) {
    let mut partitions = vec![Partition::default(); partitioned.count];
    let mut reached: Option<i128> = None;
    let mut settle = |partitions: &[Partition]| {
        reached = reached.max(agreed(partitions).map(|agreed| agreed - lateness_ns));
        reached
    };
    let mut events = partitioned.events.iter().peekable();
    for row in &mut flow.rows {
        row.watermark_ns = settle(&partitions);
        while let Some((_, index, event)) = events.next_if(|(before, ..)| *before <= row.arrival) {
            match event {
                Event::Ends => partitions[*index].ended = true,
                Event::Idles => partitions[*index].idle = true,
            }
            row.watermark_ns = settle(&partitions);
        }
        let own = &mut partitions[partitioned.of_rows[row.arrival]];
        own.idle = false;
        own.newest = own.newest.max(row.time_ns);
    }
}
