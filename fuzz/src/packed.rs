//! Packed files and their partitions.

use tersecades_store::partition::phrase::Extraction;
use tersecades_store::partition::{
    LAYOUTS, Layout, PackOptions, PackedBytes, find_layout, pack, reseal,
};

/// Bytes that are read of what a container claims to hold.
const READ_MAX: u64 = 1 << 20;

/// Bytes of the longest partition that is tried.
const PARTITION: usize = 1 << 16;

/// Containers: as they are, and with the checksums of index and footer made right.
///
/// # Panics
/// Where a reader does, or two ways to read disagree.
pub fn read_packed(input: &[u8]) {
    read(input);
    let mut sealed = input.to_vec();
    if reseal(&mut sealed).is_ok() {
        read(&sealed);
    }
}

fn read(input: &[u8]) {
    let Ok(packed) = PackedBytes::from_bytes(input) else {
        return;
    };
    let recursive = PackedBytes::from_bytes(input).map(|it| it.with_phrase_maps(1 << 16));
    let whole = packed.read_range(0..READ_MAX);
    for from in [0, packed.len() / 2, packed.len().saturating_sub(3)] {
        let mut bytes = [0; 50];
        let Ok(count) = packed.read_at(from, &mut bytes) else {
            continue;
        };
        if let (Ok(whole), true) = (&whole, from + 50 <= READ_MAX) {
            let from = (from as usize).min(whole.len());
            assert_eq!(&whole[from..from + count], &bytes[..count]);
        }
        let mut again = [0; 50];
        if let Ok(Ok(found)) = recursive.as_ref().map(|it| it.read_at(from, &mut again)) {
            assert_eq!((found, &again[..found]), (count, &bytes[..count]));
        }
    }
}

/// A partition: the layout's number, the length of what it stands for, its bytes.
///
/// # Panics
/// Where a decoder does, or what the phrases say differs from what the library decodes.
pub fn read_phrases(input: &[u8]) {
    let Some((&[number, low, high], stored)) = input.split_first_chunk() else {
        return;
    };
    let layout = LAYOUTS[usize::from(number) % LAYOUTS.len()];
    let raw_len = usize::from(u16::from_le_bytes([low, high])).clamp(1, PARTITION);
    let mut raw = vec![0; raw_len];
    let Ok(mut decoder) = layout.decoder(&[]) else {
        return;
    };
    let decoded = decoder.decode(stored, &mut raw);
    let Ok(Some(map)) = layout.phrases(stored, raw_len) else {
        return;
    };
    assert_eq!(decoded, Ok(()), "the phrases are whole");
    let mut phrases = vec![0; raw_len];
    assert!(map.decode(&mut phrases));
    assert!(phrases == raw);
    let mut extraction = Extraction::default();
    assert!(extraction.extract(&map, 0, &mut phrases));
    assert!(phrases == raw);
    let (from, mut some) = (raw_len / 2, vec![0; raw_len.min(40) / 2]);
    assert!(extraction.extract(&map, from, &mut some));
    assert_eq!(some, raw[from..from + some.len()]);
}

fn text() -> Vec<u8> {
    let line = |it: u32| {
        format!(
            "{{\"id\":{},\"kind\":\"{}\"}}\n",
            it * 7_919 % 1_000,
            it % 5
        )
    };
    (0..150).map(line).collect::<String>().into_bytes()
}

/// Containers of every layout.
pub(crate) fn containers() -> Vec<Vec<u8>> {
    let container = |layout: &&'static dyn Layout| {
        let options = PackOptions {
            partition: Some(1_000),
            ..PackOptions::of(*layout)
        };
        pack(&text(), &options).unwrap_or_default()
    };
    LAYOUTS.iter().map(container).collect()
}

/// Partitions of every layout, for deflate with every kind of block.
pub(crate) fn partitions() -> Vec<Vec<u8>> {
    let cases = [
        ("zlib", 0),
        ("zlib", 1),
        ("zlib", 6),
        ("zstd", 3),
        ("lz4", 1),
    ];
    let mut partitions = Vec::new();
    for (name, level) in cases {
        let Ok(layout) = find_layout(name) else {
            continue;
        };
        for length in [20, 3_000] {
            let raw = &text()[..length];
            let number = LAYOUTS.iter().position(|it| it.name() == name);
            let mut partition = vec![number.unwrap_or(0) as u8];
            partition.extend_from_slice(&(length as u16).to_le_bytes());
            let encoder = layout.encoder(level, &[]);
            let done = encoder.and_then(|mut encoder| encoder.encode(raw, &mut partition));
            partitions.extend(done.is_ok().then_some(partition));
        }
    }
    partitions
}
