//! Damaged bytes are refused; forged ones, with right checksums, are refused or safe to use.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, UInt8Array};
use tersecades_columnar::error::ErrorKind;
use tersecades_columnar::wire;

use crate::{exercise, samples, written};

/// Bytes of a chunk's header.
const HEADER_BYTES: usize = 192;

/// Parts of a chunk, the first section and the first chunk inside among them.
const PARTS: usize = 14;
const SECTION: usize = 2;
const INNER: usize = 10;

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

/// Where the parts of a unit lie.
fn parts(unit: &[u8]) -> Vec<Range<usize>> {
    let mut start = HEADER_BYTES;
    let parts = (0..PARTS).map(|part| {
        let at = 64 + part * 8;
        let length = u64::from_le_bytes(unit[at..at + 8].try_into().unwrap()) as usize;
        let range = start..start + length;
        start = range.end.next_multiple_of(64);
        range
    });
    parts.collect()
}

/// The bytes that belong to some part, not to padding; forging padding changes nothing.
fn used_bytes(unit: &[u8]) -> Vec<usize> {
    parts(unit).into_iter().flatten().collect()
}

/// The content of `unit` with `bytes` as part `part`.
fn with_part(unit: &[u8], part: usize, bytes: &[u8]) -> Vec<u8> {
    let mut content = unit[..HEADER_BYTES].to_vec();
    for (index, range) in parts(unit).into_iter().enumerate() {
        let bytes = if index == part { bytes } else { &unit[range] };
        content[64 + index * 8..][..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        content.extend_from_slice(bytes);
        content.resize(content.len().next_multiple_of(64), 0);
    }
    let length = content.len() as u64;
    content[40..48].copy_from_slice(&length.to_le_bytes());
    content
}

/// The content of `unit` with `more` behind what part `part` holds.
fn lengthened(unit: &[u8], part: usize, more: &[u8]) -> Vec<u8> {
    let held = &unit[parts(unit)[part].clone()];
    with_part(unit, part, &[held, more].concat())
}

/// Reads `content` under right checksums; the message with which it is refused.
fn refusal(content: &[u8]) -> Option<String> {
    let checksums = 4 * content.len().div_ceil(wire::SLICE_BYTES);
    let mut unit = content.to_vec();
    unit.resize(content.len() + checksums.next_multiple_of(64), 0);
    wire::reseal(&mut unit).unwrap();
    wire::read_chunk(&unit, None).err().map(|error| {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        error.to_string()
    })
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
fn parts_with_more_than_they_need_are_refused() {
    for (name, chunk) in samples::chunks(1_100) {
        let bytes = written(&chunk);
        // All but the name of a time zone, which may be any.
        for part in 1..PARTS {
            for more in [&[0][..], &[0; 64]] {
                let refused = refusal(&lengthened(&bytes, part, more)).is_some();
                assert!(refused, "{name}: {} bytes more in part {part}", more.len());
            }
        }
        let inner = &bytes[parts(&bytes)[INNER].clone()];
        for part in (1..PARTS).filter(|_| !inner.is_empty()) {
            let forged = with_part(&bytes, INNER, &lengthened(inner, part, &[0; 64]));
            assert!(refusal(&forged).is_some(), "{name}: part {part} inside");
        }
    }
}

#[test]
fn patches_in_front_of_the_first_block_are_refused() {
    // The patch that is lost is no end, which statistics would tell.
    let odd = |row: usize| [9, 3, 12][row / 300 % 3];
    let rows = (0..2_000).map(|row| if row % 300 == 0 { odd(row) } else { 7 });
    let array: ArrayRef = Arc::new(UInt8Array::from_iter_values(rows));
    for (scheme, starts) in [("constant", SECTION + 1), ("patched", SECTION)] {
        let bytes = written(&samples::encode(scheme, Arc::clone(&array)));
        let mut held = bytes[parts(&bytes)[starts].clone()].to_vec();
        assert_eq!(refusal(&with_part(&bytes, starts, &held)), None, "{scheme}");
        assert_eq!(held[..4], [0; 4], "{scheme}");
        held[0] = 1;
        let refused = refusal(&with_part(&bytes, starts, &held));
        assert!(refused.is_some(), "{scheme}: a patch is in no block");
    }
}

#[test]
fn truth_values_beyond_one_are_refused() {
    let array: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    let mut bytes = written(&samples::encode("plain", array));
    for (largest, read) in [(1, true), (2, false), (255, false)] {
        bytes[32] = largest;
        let forged = with_part(&bytes, SECTION, &[1, 0, largest]);
        assert_eq!(refusal(&forged).is_none(), read, "{largest}");
    }
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
