//! What is special to compressed bytes: claims, units that are kept as they are, levels.

use super::lz4::Lz4;
use super::snappy::Snappy;
use super::zstd::Zstd;
use super::*;

fn noise(count: usize) -> Vec<u8> {
    let mut bits = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        (bits >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn check_units<C: Compressor>() {
    let mut encoder = C::encoder(None).unwrap();
    let mut decoder = C::decoder().unwrap();
    let inputs = [
        Vec::new(),
        vec![7],
        vec![0; 100_000],
        noise(70_000),
        [noise(900), vec![1; 5_000], noise(900)].concat(),
    ];
    for input in &inputs {
        let mut unit = Vec::new();
        C::compress(&mut encoder, input, &mut unit).unwrap();
        let mut back = vec![1; input.len()];
        assert!(C::decompress(&mut decoder, &unit, &mut back).is_some());
        assert_eq!(back, *input, "{}", C::NAME);
        back.push(0);
        assert!(C::decompress(&mut decoder, &unit, &mut back).is_none());
        if let Some(short) = input.len().checked_sub(1) {
            assert!(C::decompress(&mut decoder, &unit, &mut back[..short]).is_none());
        }
        for cut in 0..unit.len().min(50) {
            let _ = C::decompress(&mut decoder, &unit[..cut], &mut back);
        }
    }
}

#[test]
fn units_hold_exactly_what_was_put_in() {
    check_units::<Lz4>();
    check_units::<Snappy>();
    check_units::<Zstd>();
}

#[test]
fn what_does_not_shrink_or_shrinks_too_well_is_kept_as_it_is() {
    let mut encoder = Zstd::encoder(None).unwrap();
    for (input, kept) in [
        (noise(10_000), true),
        (vec![0; HELD_BYTES], false),
        (vec![0; HELD_BYTES + HELD_TIMES], true),
    ] {
        let mut unit = Vec::new();
        add_unit::<Zstd>(&mut encoder, &input, &mut unit).unwrap();
        assert_eq!(unit.len() == input.len(), kept);
    }
    assert!(may_hold(0, HELD_BYTES) && !may_hold(HELD_BYTES / HELD_TIMES, 2 * HELD_BYTES));
}

#[test]
fn levels_are_whole_and_in_range() {
    for level in [-7.0, 1.0, 22.0] {
        assert!(Zstd::encoder(Some(level)).is_ok());
    }
    for level in [2.5, 23.0, f64::NAN, f64::INFINITY] {
        assert!(Zstd::encoder(Some(level)).is_err());
    }
}
