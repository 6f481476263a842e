//! Where rows stand in their partitions: numbers, ranks, tiles and shares.

use super::OverFunction;
use super::frame::Partition;

/// What is counted for each row: its number, its rank, or its tile.
pub(super) fn numbers(function: OverFunction, partitions: &[Partition], rows: usize) -> Vec<i64> {
    let mut numbers = Vec::with_capacity(rows);
    for partition in partitions {
        let first = partition.rows.start;
        let total = partition.rows.len() as u64;
        for (group, peers) in partition.peers.iter().enumerate() {
            numbers.extend(peers.clone().map(|row| match function {
                OverFunction::Rank => (peers.start - first) as i64 + 1,
                OverFunction::DenseRank => group as i64 + 1,
                OverFunction::Tile(tiles) => tile((row - first) as u64, total, tiles),
                _ => (row - first) as i64 + 1,
            }));
        }
    }
    numbers
}

/// The tile of `row`: the first `total % tiles` tiles hold one row more than the others.
fn tile(row: u64, total: u64, tiles: u64) -> i64 {
    let (size, larger) = (total / tiles, total % tiles);
    let in_larger = larger * (size + 1);
    let tile = match row < in_larger {
        true => row / (size + 1),
        false => larger + (row - in_larger) / size.max(1),
    };
    tile as i64 + 1
}

/// Which share of the rows of its partition stands before the peers of each row, or with them.
pub(super) fn shares(function: OverFunction, partitions: &[Partition], rows: usize) -> Vec<f64> {
    let mut shares = Vec::with_capacity(rows);
    for partition in partitions {
        let (first, total) = (partition.rows.start, partition.rows.len());
        for peers in &partition.peers {
            let share = match function {
                OverFunction::PercentRank if total > 1 => {
                    (peers.start - first) as f64 / (total - 1) as f64
                }
                OverFunction::PercentRank => 0.0,
                _ => (peers.end - first) as f64 / total as f64,
            };
            shares.extend(peers.clone().map(|_| share));
        }
    }
    shares
}
