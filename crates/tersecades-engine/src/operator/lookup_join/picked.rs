//! A column of the table as it is picked from.

use std::sync::Arc;

use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

/// Values in lanes as narrow as they allow: rows are picked here and there, from as near the core
/// as the column is small.
#[derive(Debug)]
pub(super) struct Picked {
    /// All but what lies in lanes.
    values: Values,
    /// What lanes are counted from.
    least: u64,
    lanes: Lanes,
}

#[derive(Debug)]
enum Lanes {
    Bytes(Vec<u8>),
    Halves(Vec<u16>),
    Words(Vec<u32>),
    Longs(Vec<u64>),
}

impl Picked {
    pub(super) fn of(mut values: Values) -> Self {
        let keys = std::mem::take(&mut values.keys);
        let least = keys.iter().copied().min().unwrap_or(0);
        let greatest = keys.iter().copied().max().unwrap_or(0);
        let lanes = keys.iter().map(|key| key - least);
        let lanes = match greatest - least {
            0..=0xff => Lanes::Bytes(lanes.map(|lane| lane as u8).collect()),
            0x100..=0xffff => Lanes::Halves(lanes.map(|lane| lane as u16).collect()),
            0x1_0000..=0xffff_ffff => Lanes::Words(lanes.map(|lane| lane as u32).collect()),
            _ => Lanes::Longs(lanes.collect()),
        };
        Picked {
            values,
            least,
            lanes,
        }
    }

    /// The values at `rows`.
    pub(super) fn pick(&self, rows: &[u32], out: &mut Values) {
        let Picked {
            values,
            least,
            lanes,
        } = self;
        out.reset(values.physical);
        out.dictionary = values.dictionary.as_ref().map(Arc::clone);
        match (values.physical, lanes) {
            (Physical::Wide, _) => out
                .wide
                .extend(rows.iter().map(|row| values.wide[*row as usize])),
            (_, Lanes::Bytes(lanes)) => pick(lanes, *least, rows, &mut out.keys),
            (_, Lanes::Halves(lanes)) => pick(lanes, *least, rows, &mut out.keys),
            (_, Lanes::Words(lanes)) => pick(lanes, *least, rows, &mut out.keys),
            (_, Lanes::Longs(lanes)) => pick(lanes, *least, rows, &mut out.keys),
        }
        if !values.validity.is_empty() {
            out.validity.fill(rows.len(), true);
            for (index, row) in rows.iter().enumerate() {
                out.validity.set(index, values.validity.get(*row as usize));
            }
        }
    }
}

fn pick<L: Copy + Into<u64>>(lanes: &[L], least: u64, rows: &[u32], out: &mut Vec<u64>) {
    let key = |row: &u32| least + Into::<u64>::into(lanes[*row as usize]);
    out.extend(rows.iter().map(key));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_picked_is_what_was_there_at_every_width() {
        for step in [0, 1, 300, 70_000, 1 << 60] {
            let mut values = Values::default();
            values
                .keys
                .extend((0..16u64).map(|row| u64::MAX - row * step));
            let (expected, mut out) = (values.keys.clone(), Values::default());
            let rows = [3, 0, 15, 3];
            Picked::of(values).pick(&rows, &mut out);
            assert_eq!(out.keys, rows.map(|row| expected[row as usize]), "{step}");
        }
    }
}
