//! Partitions: rows of several sources that are in order each by itself.

use super::{Flow, Traveller};

/// Which partition each arriving row is of, and when partitions end.
#[derive(Debug, Clone, Default)]
pub struct Partitioned {
    /// The partition of each row, in order of arrival.
    pub of_rows: Vec<usize>,
    /// Partitions that end, each before the row of that number.
    pub ends: Vec<(usize, usize)>,
    /// How many partitions there are.
    pub count: usize,
}

/// Gives every row the watermark of its partitions: the least of the newest times of those that
/// have not ended, less the lateness; it never goes back.
pub(crate) fn judge(flow: &mut Flow, partitioned: &Partitioned, lateness_ns: i128) {
    let mut newest: Vec<Option<i128>> = vec![None; partitioned.count];
    let mut ended = vec![false; partitioned.count];
    let mut reached: Option<i128> = None;
    let mut ends = partitioned.ends.iter().peekable();
    let mut settle = |newest: &[Option<i128>], ended: &[bool]| {
        let holding = newest.iter().zip(ended).filter(|(_, ended)| !**ended);
        let least = match holding.clone().count() {
            0 => newest.iter().max().copied().flatten(),
            _ => holding.map(|(newest, _)| *newest).min().flatten(),
        };
        reached = reached.max(least.map(|least| least - lateness_ns));
        reached
    };
    let mut rows: Vec<&mut Traveller> = flow.rows.iter_mut().collect();
    for row in &mut rows {
        let mut watermark = settle(&newest, &ended);
        while let Some((_, partition)) = ends.next_if(|(before, _)| *before <= row.arrival) {
            ended[*partition] = true;
            watermark = settle(&newest, &ended);
        }
        row.watermark_ns = watermark;
        let own = &mut newest[partitioned.of_rows[row.arrival]];
        *own = (*own).max(row.time_ns);
    }
}
