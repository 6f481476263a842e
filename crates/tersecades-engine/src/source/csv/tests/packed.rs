//! Text that is packed, and names that say so.

use super::*;

#[test]
fn packed_files_are_read_and_cut_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = b"n\tt\n".to_vec();
    (0..5000).for_each(|row| text.extend(format!("{row}\tx{}\n", row * 7919 % 1013).bytes()));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&text).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&text[..], 1).unwrap();
    for (name, bytes) in [("a.tsv", &text), ("a.tsv.gz", &gzip), ("a.csv.zst", &zstd)] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let batches = read_all(&mut *open(&path, &SourceOptions::default()).unwrap()).unwrap();
        assert_eq!(
            batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
            5000,
            "{name}"
        );
        if bytes == &text {
            continue;
        }
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let read = open(&path, &SourceOptions::default()).and_then(|mut s| read_all(&mut *s));
        let error = read.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(error.context().file, Some(path.display().to_string()));
    }
}

#[test]
fn only_the_name_of_a_file_says_that_tabs_separate_its_fields() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("old.tsv.d");
    std::fs::create_dir(&inner).unwrap();
    for (name, fields) in [("a.csv", 2), ("a.tsv.csv", 2), ("A.TSV", 1)] {
        let path = inner.join(name);
        std::fs::write(&path, "a;b\n1;2\n").unwrap();
        let source = open(&path, &SourceOptions::default()).unwrap();
        assert_eq!(source.schema().fields().len(), fields, "{name}");
    }
}

#[test]
fn one_line_without_an_end_is_split_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.csv");
    std::fs::write(&path, "a;b;c").unwrap();
    let source = open(&path, &SourceOptions::default()).unwrap();
    assert_eq!(source.schema().fields().len(), 3);
}

#[test]
fn a_name_that_promises_packing_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("a.csv.gz", &b"x\x8b\x08 garbage"[..]),
        ("b.csv.gz", b"\x1f"),
        ("c.csv.zst", b"(\xb5/"),
        ("d.csv.gz", b"a,b\n1,2\n"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = crate::source::open(&path, &SourceOptions::default());
        let error = error.err().unwrap();
        assert!(error.message().contains("not packed by"), "{name}: {error}");
    }
    let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
    let packed = zstd::encode_all(&b"a,b\n1,2\n"[..], 1).unwrap();
    for format in ["csv", "csv.zst"] {
        let path = folder.path().join("skippable").with_extension(format);
        std::fs::write(&path, [&skippable[..], &packed].concat()).unwrap();
        let mut opened = open(&path, &SourceOptions::default()).unwrap();
        let batch = opened.next().unwrap().unwrap();
        assert_eq!(
            (names(&batch).join(" "), batch.num_rows()),
            ("a b".to_owned(), 1)
        );
    }
}

#[test]
fn what_lies_behind_members_of_gzip_is_more_of_them_or_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let member = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let two = [member("a,b\n1,2\n"), member("3,4\n")].concat();
    for (behind, is_read) in [
        (&b""[..], true),
        (&[0; 700], true),
        (b"#!/bin/sh", false),
        (b"\0\0\0x", false),
    ] {
        let path = folder.path().join("a.csv.gz");
        std::fs::write(&path, [&two[..], behind].concat()).unwrap();
        let opened = open(&path, &SourceOptions::default());
        let read = opened.and_then(|mut source| read_all(&mut *source));
        match is_read {
            true => assert_eq!(read.unwrap()[0].num_rows(), 2, "{behind:?}"),
            false => {
                let error = read.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                assert!(error.message().contains("lie behind the end"), "{error}");
            }
        }
    }
}
