//! gzip files of others, read in the middle.

use std::sync::Arc;

use flate2::{Compression, GzBuilder, write::GzEncoder};
use tersecades_store::partition::{Gzip, open_gzip};

use super::*;

fn compressed(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn opened(bytes: &[u8]) -> Gzip<Arc<[u8]>> {
    Gzip::new(Arc::from(bytes)).unwrap()
}

/// Ranges all over `length` bytes, in no order, and two that follow each other.
fn ranges(length: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    let somewhere = (0..60u64).map(move |turn| {
        let start = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (length + 1);
        start..start + turn * turn * 20
    });
    somewhere.chain([
        0..length,
        5..9,
        9..70_000,
        70_000..140_001,
        length..length + 9,
    ])
}

#[test]
fn any_range_of_a_gzip_file_is_read() {
    let text = bytes_of(1, 5_000_000, 8);
    let noise = bytes_of(0, 3_000_000, 8);
    let named = {
        let builder = GzBuilder::new()
            .filename("name")
            .comment("why")
            .extra(vec![7; 300]);
        let mut encoder = builder.write(Vec::new(), Compression::best());
        encoder.write_all(&text).unwrap();
        encoder.finish().unwrap()
    };
    let members = [
        compressed(&text, 1),
        compressed(b"", 6),
        compressed(&noise, 6),
        vec![0; 513],
    ];
    let cases = [
        (text.clone(), compressed(&text, 6)),
        (text.clone(), named),
        (noise.clone(), compressed(&noise, 0)),
        ([text.as_slice(), &noise].concat(), members.concat()),
        (Vec::new(), compressed(b"", 6)),
    ];
    for (raw, file) in cases {
        let made = opened(&file);
        assert_eq!(made.len(), raw.len() as u64);
        let index = made.index_bytes().unwrap();
        let kept = Gzip::with_index(Arc::<[u8]>::from(file), &index).unwrap();
        for range in ranges(made.len()) {
            let end = raw.len().min(range.end as usize);
            let expected = &raw[end.min(range.start as usize)..end];
            assert!(
                made.read_range(range.clone()).unwrap() == expected,
                "{range:?}"
            );
            assert!(
                kept.read_range(range.clone()).unwrap() == expected,
                "{range:?}"
            );
        }
    }
}

#[test]
fn an_index_is_made_once_and_told_from_those_of_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = bytes_of(1, 3_000_000, 8);
    std::fs::write(path("a.gz"), compressed(&text, 6)).unwrap();
    std::fs::write(path("b.gz"), compressed(&text[1..], 6)).unwrap();
    let index = path("a.index");
    open_gzip(&path("a.gz"), Some(&index)).unwrap();
    let written = std::fs::read(&index).unwrap();
    assert!(written.len() < 100_000, "{}", written.len());
    let again = open_gzip(&path("a.gz"), Some(&index)).unwrap();
    assert!(again.read_range(2_500_000..2_500_100).unwrap() == text[2_500_000..2_500_100]);
    let error = open_gzip(&path("b.gz"), Some(&index)).unwrap_err();
    assert!(error.to_string().contains("a.index"), "{error}");
    for bit in (0..written.len() * 8).step_by(977) {
        let mut damaged = written.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let source: Arc<[u8]> = Arc::from(std::fs::read(path("a.gz")).unwrap());
        assert!(Gzip::with_index(source, &damaged).is_err(), "bit {bit}");
    }
}

#[test]
fn damage_to_a_gzip_file_is_found_when_its_index_is_made() {
    let text = bytes_of(1, 6_000, 8);
    let file = compressed(&text, 6);
    for length in 0..file.len() {
        assert!(
            Gzip::new(Arc::<[u8]>::from(&file[..length])).is_err(),
            "{length} bytes"
        );
    }
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(read) = Gzip::new(Arc::<[u8]>::from(damaged)) {
            // The time in the header, or a code that no byte needs.
            assert!(read.read_range(0..read.len()).unwrap() == text, "bit {bit}");
        }
    }
    assert!(Gzip::new(Arc::<[u8]>::from(b"no gzip file at all".as_slice())).is_err());
}

#[test]
fn bytes_behind_the_last_member_are_told_by_their_place() {
    let file = compressed(&bytes_of(1, 6_000, 8), 6);
    let length = file.len();
    let long = [b'x'; 5_000];
    for (behind, zeros, said) in [
        (b"m".as_slice(), 0, "byte, at offset {at}, is"),
        (b"more", 0, "4 bytes, at offset {at}, are"),
        (b"\x1fmore", 0, "5 bytes, at offset {at}, are"),
        (&long, 0, "5000 bytes, at offset {at}, are"),
        (b"more", 300, "4 bytes, at offset {at}, are"),
    ] {
        let whole = [file.as_slice(), &vec![0; zeros], behind].concat();
        let error = Gzip::new(Arc::<[u8]>::from(whole)).unwrap_err();
        let at = length + zeros;
        let said = said.replace("{at}", &at.to_string());
        let said = format!("the last {said} no gzip member");
        assert_eq!(error.message(), said);
        assert!(
            error
                .hint_text()
                .unwrap()
                .contains(&format!("head -c {at} "))
        );
    }
    // The start of another member.
    for cut in [1, 2, 9, 40] {
        let whole = [file.as_slice(), &file[..cut]].concat();
        let error = Gzip::new(Arc::<[u8]>::from(whole)).unwrap_err();
        assert!(error.message().contains("ends inside a member"), "{error}");
    }
}

#[test]
fn containers_that_are_cut_are_no_gzip_files_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let text = bytes_of(1, 100_000, 8);
    let packed = pack(&text, &PackOptions::default()).unwrap();
    for (name, bytes, is_ours) in [
        ("packed", &packed[..packed.len() - 1], true),
        ("packed", &packed[..packed.len() / 2], true),
        ("few.tcz", &packed[..100], true),
        ("other", &compressed(&text, 6)[..2_000], false),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = open_gzip(&path, None).unwrap_err();
        assert_eq!(
            error.message().contains("its index is missing"),
            is_ours,
            "{error}"
        );
        assert_eq!(
            error.hint_text().unwrap().contains("pack it again"),
            is_ours,
            "{error}"
        );
        assert!(error.context().file.as_ref().unwrap().ends_with(name));
    }
}
