//! Groups and runs of panes against sorted ranks, whatever lies outside of lanes.

use super::place::place;
use super::*;

/// Ranks of which some lie far off on both sides, around a start and of a width.
fn ranks(start: u64, width: u64, off_every: u64) -> (Vec<u32>, Vec<u64>) {
    let mut seed = start ^ width;
    let mut random = || {
        seed = seed
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        seed >> 33
    };
    let pairs = (0..30_000).map(|_| {
        // Groups of very different sizes.
        let id = (random() % 300).min(random() % 4_000) as u32;
        let inside = start + random() % width;
        let rank = match (random() % off_every, random() % 2) {
            (0, 0) => start - random() % start.max(1),
            (0, _) => start + random() % 4_000_000,
            _ => inside,
        };
        (id, rank)
    });
    pairs.unzip()
}

fn check<T: Narrow<u16>>(ids: &[u32], ranks: &[u64], narrow: bool) {
    let lanes: Vec<T> = ranks.iter().map(|rank| T::truncate(*rank)).collect();
    let groups = ids.iter().max().map_or(0, |id| *id as usize + 1);
    let mut counts = vec![0; groups];
    ids.iter().for_each(|id| counts[*id as usize] += 1);
    for counts in [&[][..], &counts] {
        check_grouped(&Grouped::new(ids, &lanes, counts), (ids, &lanes), narrow);
    }
}

fn check_grouped<T: Narrow<u16>>(grouped: &Grouped<T>, (ids, lanes): (&[u32], &[T]), narrow: bool) {
    assert_eq!(matches!(grouped, Grouped::Narrow { .. }), narrow);
    let groups = ids.iter().max().unwrap() + 2;
    for id in 0..groups {
        let own = ids.iter().zip(lanes).filter(|(of, _)| **of == id);
        let mut own: Vec<T> = own.map(|(_, rank)| *rank).collect();
        own.sort_unstable();
        assert_eq!(grouped.count(id), own.len());
        for index in 0..own.len() {
            let mut places = Places::default();
            places.indices = vec![index, own.len() - 1, own.len() / 2];
            places.found = vec![[T::default(); 2]; 3];
            grouped.read(id, &mut places);
            let at = |index: usize| [own[index], own[(index + 1).min(own.len() - 1)]];
            let expected = [at(index), at(own.len() - 1), at(own.len() / 2)];
            assert_eq!(places.found, expected, "group {id}, {index}");
        }
        let mut each = Vec::new();
        grouped.each(id, |rank| each.push(rank));
        each.sort_unstable();
        assert_eq!(each, own, "group {id}");
    }
}

#[test]
fn runs_of_several_panes_are_one_group() {
    for (starts, width, alike) in [
        ([1_000, 1_400, 2_000], 3_000, true),
        ([1_000, 100_000, 2_000], 3_000, false),
        ([1_000, 1_400, 2_000], 1_000_000, true),
    ] {
        let panes = starts.map(|start| {
            let (ids, ranks) = ranks(start, width, 50);
            let lanes: Vec<u32> = ranks.iter().map(|rank| *rank as u32).collect();
            (Grouped::new(&ids, &lanes, &[]), ids, lanes)
        });
        let bases = panes.each_ref().map(|(grouped, ..)| grouped.base());
        assert_eq!(bases.iter().all(|base| *base == bases[0]), alike);
        let mut scratch = Scratch::default();
        for id in 0..310 {
            let of_pane = |(_, ids, lanes): &(_, Vec<u32>, Vec<u32>)| {
                let own = ids.iter().zip(lanes).filter(|(of, _)| **of == id);
                own.map(|(_, rank)| *rank).collect::<Vec<u32>>()
            };
            let mut own: Vec<u32> = panes.iter().flat_map(of_pane).collect();
            own.sort_unstable();
            let all = [0.0, 0.01, 0.5, 0.99, 1.0];
            for fractions in [&all[..], &all[2..3], &[]] {
                let runs = panes.iter().map(|(grouped, ..)| (grouped, id));
                let found: Vec<([u32; 2], f64)> = scratch.between(runs, fractions).collect();
                let fractions = fractions.iter().filter(|_| !own.is_empty());
                let expected = fractions.map(|fraction| {
                    let (index, share) = place(own.len(), *fraction);
                    ([own[index], own[(index + 1).min(own.len() - 1)]], share)
                });
                assert!(expected.eq(found), "group {id}");
            }
        }
    }
}

#[test]
fn groups_hold_their_ranks_in_order_whatever_lies_outside() {
    for start in [0, 1, 70_000, u64::from(u32::MAX) - 5_000_000] {
        for (width, off_every, narrow) in [
            (1, 100, true),
            (2_000, 30, true),
            (65_534, 1_000, true),
            (3_000_000, 100, false),
        ] {
            let (ids, ranks) = ranks(start, width, off_every);
            check::<u32>(&ids, &ranks, narrow);
            check::<u64>(&ids, &ranks, narrow);
        }
    }
    check::<u64>(&[0, 5], &[0, u64::MAX], false);
    check::<u64>(&[7], &[u64::MAX], true);
}

#[test]
fn ends_of_the_type_lie_outside_of_lanes_that_start_at_the_other_end() {
    let near_zero = |rank: u64| if rank.is_multiple_of(17) { !0 } else { rank };
    for mirrored in [0, u64::MAX] {
        let ranks: Vec<u64> = (0..4_000).map(|rank| near_zero(rank) ^ mirrored).collect();
        let ids: Vec<u32> = (0..4_000).map(|row| row % 7).collect();
        check::<u32>(&ids, &ranks, true);
        check::<u64>(&ids, &ranks, true);
    }
}
