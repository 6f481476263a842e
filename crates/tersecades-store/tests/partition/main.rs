//! Containers of partitions against the bytes they were made of and against stock tools.

#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

mod gzip;
mod stock;

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use tersecades_columnar::error::ErrorKind;
use tersecades_store::partition::phrase::Extraction;
use tersecades_store::partition::{
    LAYOUTS, Layout, PARTITION_MAX, PackOptions, PackedBytes, Packer, concat, find_layout, open,
    pack,
};

/// Bytes of a kind: noise, text, numbers, one byte, mixtures.
fn bytes_of(kind: u8, length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    match kind % 5 {
        0 => (0..length).map(|_| next() as u8).collect(),
        1 => {
            let words = [
                "probe ",
                "slow ",
                "error 7\n",
                "cluster-12/node ",
                "ok;",
                "the ",
            ];
            let mut text = Vec::new();
            while text.len() < length {
                text.extend_from_slice(words[next() as usize % words.len()].as_bytes());
            }
            text.truncate(length);
            text
        }
        2 => (0..length as u64)
            .map(|it| (it * 37 / 1_000) as u8)
            .collect(),
        3 => vec![b'x'; length],
        _ => (0..length)
            .map(|it| {
                if it / 3_000 % 2 == 0 {
                    next() as u8
                } else {
                    (it % 7) as u8
                }
            })
            .collect(),
    }
}

fn packed(layout: &'static dyn Layout, partition: usize, bytes: &[u8]) -> PackedBytes {
    let options = PackOptions {
        partition: Some(partition),
        ..PackOptions::of(layout)
    };
    PackedBytes::from_bytes(pack(bytes, &options).unwrap()).unwrap()
}

fn check_reads(packed: &PackedBytes, bytes: &[u8], from: usize, length: usize) {
    let end = bytes.len().min(from + length);
    let expected = bytes.get(from..end).unwrap_or(&[]);
    let mut buffer = vec![0xAA; length];
    let count = packed.read_at(from as u64, &mut buffer).unwrap();
    assert_eq!(
        &buffer[..count],
        expected,
        "{packed:?} from {from}, {length} bytes"
    );
    assert!(buffer[count..].iter().all(|byte| *byte == 0xAA));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_range_of_any_bytes_comes_back(
        kind in 0u8..5,
        length in 0usize..60_000,
        seed in any::<u64>(),
        partition in prop::sample::select(vec![256usize, 1_000, 4_096, 16_384, 65_536]),
        reads in prop::collection::vec((0usize..60_100, 0usize..20_000), 1..12),
    ) {
        let bytes = bytes_of(kind, length, seed);
        for layout in LAYOUTS {
            let plain = packed(*layout, partition, &bytes);
            prop_assert_eq!(plain.len(), length as u64);
            let recursive = packed(*layout, partition, &bytes).with_phrase_maps(1 << 20);
            for (from, length) in &reads {
                check_reads(&plain, &bytes, *from, *length);
                check_reads(&recursive, &bytes, *from, length % 700);
            }
            for at in 0..plain.partitions() {
                let raw = plain.partition(at).unwrap().raw;
                for from in [raw.start.saturating_sub(1), raw.start, raw.end - 1, raw.end] {
                    check_reads(&plain, &bytes, from as usize, 2);
                    check_reads(&recursive, &bytes, from as usize, 2);
                }
            }
            let whole: Vec<u8> = plain.iter().flat_map(|raw| raw.unwrap()).collect();
            prop_assert_eq!(&whole, &bytes);
            prop_assert_eq!(plain.read_range(0..u64::MAX).unwrap(), bytes.clone());
        }
    }

    #[test]
    fn phrases_are_those_of_the_library(
        kind in 0u8..5,
        length in 1usize..40_000,
        seed in any::<u64>(),
        level in 0i32..10,
        reads in prop::collection::vec((0usize..40_000, 1usize..3_000), 1..12),
    ) {
        let bytes = bytes_of(kind, length, seed);
        for name in ["zlib", "lz4"] {
            let layout = find_layout(name).unwrap();
            let level = level.clamp(*layout.levels().start(), *layout.levels().end());
            let mut stored = Vec::new();
            layout.encoder(level, &[]).unwrap().encode(&bytes, &mut stored).unwrap();
            let map = layout.phrases(&stored, length).unwrap().unwrap();
            let mut extraction = Extraction::default();
            let mut whole = vec![0; length];
            prop_assert!(extraction.extract(&map, 0, &mut whole));
            prop_assert_eq!(&whole, &bytes);
            whole.fill(0);
            prop_assert!(map.decode(&mut whole));
            prop_assert_eq!(&whole, &bytes);
            for (from, count) in &reads {
                let from = from % length;
                let count = (*count).min(length - from);
                let mut out = vec![0; count];
                prop_assert!(extraction.extract(&map, from, &mut out));
                prop_assert_eq!(&out[..], &bytes[from..from + count]);
            }
            prop_assert!(!extraction.extract(&map, length, &mut [0]));
            prop_assert_eq!(map.phrase_of(length - 1) + 1, map.copies() + map.literal_count());
            // Another length than the stream's is refused.
            prop_assert!(layout.phrases(&stored, length + 1).is_err());
            prop_assert!(length == 1 || layout.phrases(&stored, length - 1).is_err());
        }
    }
}

#[test]
fn streams_seek_as_files_do() {
    let bytes = bytes_of(1, 100_000, 3);
    let packed = packed(LAYOUTS[0], 4_096, &bytes);
    let mut reader = packed.reader_of(1_000..90_000);
    let mut part = vec![0; 10_000];
    reader.read_exact(&mut part).unwrap();
    assert_eq!(part, bytes[1_000..11_000]);
    assert_eq!(reader.stream_position().unwrap(), 10_000);
    assert_eq!(reader.seek(SeekFrom::Current(-9_999)).unwrap(), 1);
    reader.read_exact(&mut part).unwrap();
    assert_eq!(part, bytes[1_001..11_001]);
    assert_eq!(reader.seek(SeekFrom::End(-5)).unwrap(), 88_995);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, bytes[89_995..90_000]);
    assert!(reader.seek(SeekFrom::Current(-100_000)).is_err());
}

#[test]
fn threads_and_pieces_of_input_never_change_a_byte() {
    let bytes = bytes_of(1, 3_000_000, 5);
    for layout in LAYOUTS {
        let options = PackOptions::of(*layout);
        let mut alone = Packer::new(Vec::new(), options.clone()).unwrap();
        alone.push(&bytes).unwrap();
        let alone = alone.finish().unwrap().0;
        let mut many = Packer::new(
            Vec::new(),
            PackOptions {
                threads: 3,
                ..options
            },
        )
        .unwrap();
        bytes
            .chunks(77_777)
            .for_each(|piece| many.write_all(piece).unwrap());
        let (many, summary) = many.finish().unwrap();
        assert!(alone == many, "{layout:?}");
        assert_eq!(summary.file_len, many.len() as u64);
        assert_eq!(summary.raw_len, bytes.len() as u64);
    }
}

#[test]
fn readers_of_several_threads_share_a_container() {
    let bytes = bytes_of(1, 400_000, 9);
    let packed = packed(LAYOUTS[0], 4_096, &bytes).with_phrase_maps(1 << 16);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (packed, bytes) = (&packed, &bytes);
            scope.spawn(move || {
                for read in 0..300 {
                    let from = (thread * 7_919 + read * 1_301) % 400_000;
                    check_reads(packed, bytes, from, 100 + read * 10);
                }
            });
        }
    });
}

#[test]
fn partitions_move_as_they_are() {
    let (first, second) = (bytes_of(1, 50_000, 1), bytes_of(4, 33_333, 2));
    for name in ["zlib", "lz4"] {
        let layout = find_layout(name).unwrap();
        let parts = [
            packed(layout, 4_096, &first),
            packed(layout, 1_000, &second),
        ];
        let (joined, summary) = concat(&parts, Vec::new()).unwrap();
        let joined = PackedBytes::from_bytes(joined).unwrap();
        assert_eq!(
            summary.partitions,
            parts[0].partitions() + parts[1].partitions()
        );
        let whole = [first.clone(), second.clone()].concat();
        assert_eq!(joined.read_range(0..u64::MAX).unwrap(), whole);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for at in 0..joined.partitions() {
            joined.read_stored(at, &mut ours).unwrap();
            match at.checked_sub(parts[0].partitions()) {
                None => parts[0].read_stored(at, &mut theirs).unwrap(),
                Some(at) => parts[1].read_stored(at, &mut theirs).unwrap(),
            };
            assert_eq!(ours, theirs);
        }
        let mut mixed = Packer::new(Vec::new(), PackOptions::of(layout)).unwrap();
        mixed.push(b"new bytes, then old ones: ").unwrap();
        mixed.append(&parts[1], 3..5).unwrap();
        mixed.push(b" and new ones").unwrap();
        let mixed = PackedBytes::from_bytes(mixed.finish().unwrap().0).unwrap();
        let expected = [
            b"new bytes, then old ones: ",
            &second[3_000..5_000],
            b" and new ones",
        ];
        assert_eq!(mixed.read_range(0..u64::MAX).unwrap(), expected.concat());
        let other = LAYOUTS.iter().find(|it| it.name() != name).unwrap();
        let mut other = Packer::new(Vec::new(), PackOptions::of(*other)).unwrap();
        let refused = other.append(&parts[0], 0..1).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn damage_is_found_and_named_or_does_no_harm() {
    let bytes = bytes_of(1, 3_000, 4);
    for layout in LAYOUTS {
        let options = PackOptions {
            partition: Some(1_000),
            ..PackOptions::of(*layout)
        };
        let whole = pack(&bytes, &options).unwrap();
        let mut found = 0;
        let first = PackedBytes::from_bytes(whole.clone()).unwrap();
        first.verify().unwrap();
        for bit in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let verified = PackedBytes::from_bytes(damaged.clone()).and_then(|it| it.verify());
            assert!(verified.is_err(), "{layout:?} bit {bit}");
            match PackedBytes::from_bytes(damaged).and_then(|it| it.read_range(0..u64::MAX)) {
                Ok(read) => assert_eq!(read, bytes, "{layout:?} bit {bit}"),
                Err(error) => {
                    found += 1;
                    assert!(!error.message().is_empty());
                }
            }
        }
        assert!(
            found > 6 * whole.len(),
            "{layout:?}: {found} of {}",
            8 * whole.len()
        );
        for cut in 0..whole.len() {
            assert!(
                PackedBytes::from_bytes(&whole[..cut]).is_err(),
                "{layout:?} cut at {cut}"
            );
        }
        let other = packed(*layout, 1_000, &bytes);
        let place = other.partition(1).unwrap();
        let at = whole.len() - other.stored_len() as usize;
        let head = layout.framing().head().len();
        assert!(at > head);
        let mut damaged = whole.clone();
        damaged[head + place.stored.start as usize + 5] ^= 1;
        let damaged = PackedBytes::from_bytes(damaged).unwrap();
        assert_eq!(damaged.read_range(0..1_000).unwrap(), bytes[..1_000]);
        assert_eq!(damaged.read_range(2_000..3_000).unwrap(), bytes[2_000..]);
        let error = damaged.read_range(900..1_001).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("partition 1"), "{error}");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let zlib = find_layout("zlib").unwrap();
    for partition in [0, 255, PARTITION_MAX + 1] {
        let options = PackOptions {
            partition: Some(partition),
            ..PackOptions::of(zlib)
        };
        assert!(pack(b"x", &options).is_err());
    }
    let level = PackOptions {
        level: Some(10),
        ..PackOptions::of(zlib)
    };
    assert!(
        pack(b"x", &level)
            .unwrap_err()
            .to_string()
            .contains("0 to 9")
    );
    let dictionary = PackOptions {
        dictionary: vec![1; 100],
        ..PackOptions::of(zlib)
    };
    assert!(pack(b"x", &dictionary).is_err());
    assert!(
        find_layout("gzip")
            .unwrap_err()
            .to_string()
            .contains("zlib, zstd, lz4")
    );
    assert!(concat::<std::fs::File, _>(&[], Vec::new()).is_err());
    let missing = open("/nowhere/at/all.tcz").unwrap_err();
    assert!(missing.to_string().contains("/nowhere/at/all.tcz"));
}
