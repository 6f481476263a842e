//! Damaged bytes are refused; forged ones, with right checksums, are refused or safe to use.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tersecades_columnar::error::ErrorKind;
use tersecades_columnar::wire;

use crate::{exercise, samples, written};

/// Bytes of a chunk's header.
const HEADER_BYTES: usize = 192;

/// Forged units per sample and kind of change.
const FORGERIES: usize = 100;

/// Reads `forged` after its checksums were made right; whether it was accepted.
fn survives(name: &str, forged: &mut [u8], what: &str) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        wire::reseal(forged)?;
        wire::read_chunk(forged, None).map(|(chunk, _)| exercise::exercise(&chunk))
    }));
    match outcome {
        Ok(read) => read.is_ok(),
        Err(_) => panic!("{name}: a primitive failed on an accepted chunk after {what}"),
    }
}

/// The bytes that belong to some part, not to padding; forging padding changes nothing.
fn used_bytes(unit: &[u8]) -> Vec<usize> {
    let mut start = HEADER_BYTES;
    let mut used = Vec::new();
    for part in 0..14 {
        let at = 64 + part * 8;
        let length = u64::from_le_bytes(unit[at..at + 8].try_into().unwrap()) as usize;
        used.extend(start..start + length);
        start = (start + length).next_multiple_of(64);
    }
    used
}

#[test]
fn every_flipped_bit_is_noticed() {
    for (name, chunk) in samples::chunks(40) {
        let bytes = written(&chunk);
        let content = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        let checked = content + 4 * content.div_ceil(wire::SLICE_BYTES);
        for at in (0..checked).step_by(3) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(
                wire::read_chunk(&damaged, None).is_err(),
                "{name}: byte {at}"
            );
        }
    }
}

#[test]
fn every_cut_is_noticed() {
    for (name, chunk) in samples::chunks(100) {
        let bytes = written(&chunk);
        for length in (0..bytes.len()).step_by(7) {
            let error = wire::read_chunk(&bytes[..length], None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {length} bytes");
        }
    }
    let mut bytes = Vec::new();
    wire::write_batch(&samples::batch(10), &mut bytes).unwrap();
    for length in (0..bytes.len()).step_by(97) {
        assert!(
            wire::read_batch(&bytes[..length]).is_err(),
            "batch: {length} bytes"
        );
    }
    bytes.push(0);
    assert!(wire::read_batch(&bytes).is_err());
}

#[test]
fn forged_headers_are_refused_or_safe() {
    for (name, chunk) in samples::chunks(130) {
        let bytes = written(&chunk);
        for bit in 0..HEADER_BYTES * 8 {
            let mut forged = bytes.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            survives(&name, &mut forged, &format!("flipping header bit {bit}"));
        }
    }
}

#[test]
fn forged_batches_are_refused_or_safe() {
    let mut bytes = Vec::new();
    let batch = samples::batch(70);
    wire::write_batch(&batch, &mut bytes).unwrap();
    let directory = 64 + 16 * batch.columns().len();
    let mut accepted = 0;
    for bit in 0..directory * 8 {
        let mut forged = bytes.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let read = wire::reseal(&mut forged).and_then(|()| wire::read_batch(&forged));
        if let Ok(read) = read {
            assert_eq!(read.rows(), batch.rows());
            assert_eq!(read.columns().len(), batch.columns().len(), "bit {bit}");
            accepted += 1;
        }
    }
    // Nullable or not, and how names are cut, cannot be checked against anything.
    assert!(
        accepted < 6 * batch.columns().len(),
        "{accepted} forgeries accepted"
    );
}

#[test]
fn forged_parts_are_refused_or_safe() {
    let mut accepted = 0;
    for (sample, (name, chunk)) in samples::chunks(1_100).into_iter().enumerate() {
        let bytes = written(&chunk);
        let used = used_bytes(&bytes);
        for round in 0..FORGERIES {
            let noise = |index: usize| samples::noise(sample * 7_919 + round * 31 + index) as usize;
            let mut forged = bytes.clone();
            // The first sections are short and steer the rest: half of the changes go there.
            let near = if round % 2 == 0 {
                used.len()
            } else {
                used.len().min(300)
            };
            for change in 0..1 + noise(0) % 3 {
                let at = used[noise(1 + change) % near.max(1)];
                match noise(5 + change) % 3 {
                    0 => forged[at] ^= 1 << (noise(9) % 8),
                    1 => forged[at] = [0, 1, 0x7F, 0x80, 0xFF][noise(9) % 5],
                    _ => forged[at] = noise(10) as u8,
                }
            }
            let what = format!("forgery {round}");
            accepted += usize::from(survives(&name, &mut forged, &what));
        }
    }
    assert!(
        accepted > 0,
        "no forgery got past validation: the primitives were not tried"
    );
}

#[test]
fn short_bytes_cannot_claim_much() {
    let (_, chunk) = samples::chunks(3).swap_remove(1);
    let mut forged = written(&chunk);
    forged[12..16].copy_from_slice(&(1u32 << 24).to_le_bytes());
    wire::reseal(&mut forged).unwrap();
    assert!(wire::read_chunk(&forged, None).is_err());
    forged[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    wire::reseal(&mut forged).unwrap();
    assert!(wire::read_chunk(&forged, None).is_err());
}

#[test]
fn a_newer_version_is_named() {
    let (_, chunk) = samples::chunks(3).swap_remove(0);
    let mut bytes = written(&chunk);
    bytes[4] = 2;
    let error = wire::read_chunk(&bytes, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 2"));
}
