//! Containers beside stock tools, and of real files.

use super::*;

/// The Python that the tests use, or none, said loudly.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("TERSECADES_PYTHON").map(PathBuf::from);
    if python.is_none() {
        eprintln!("SKIPPED: TERSECADES_PYTHON is not set");
    }
    python
}

/// What a command makes of bytes.
fn piped(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).unwrap());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{command:?}: {said}"
        );
        output.stdout
    })
}

/// Reads standard input with Python's own libraries in every way they have.
const STOCK_ZLIB: &str = "
import sys, zlib, gzip, io
data = sys.stdin.buffer.read()
whole = gzip.decompress(data)
assert gzip.open(io.BytesIO(data)).read() == whole
one = zlib.decompressobj(wbits=31)
assert one.decompress(data) + one.flush() == whole and one.eof
raw = zlib.decompressobj(wbits=-15)
assert raw.decompress(data[10:]) + raw.flush() == whole
sys.stdout.buffer.write(whole)
";

#[test]
fn stock_tools_read_whole_containers() {
    let cases = [
        bytes_of(1, 300_000, 8),
        bytes_of(0, 70_000, 8),
        bytes_of(3, 1, 1),
        Vec::new(),
    ];
    for bytes in cases {
        let zlib = pack(&bytes, &PackOptions::default()).unwrap();
        if let Some(python) = python() {
            let read = piped(Command::new(python).args(["-c", STOCK_ZLIB]), &zlib);
            assert!(read == bytes);
        }
        match Command::new("gzip").arg("--version").output() {
            Ok(_) => assert!(piped(Command::new("gzip").arg("-dc"), &zlib) == bytes),
            Err(_) => eprintln!("SKIPPED: there is no gzip here"),
        }
        let options = PackOptions {
            dictionary: Vec::new(),
            ..PackOptions::of(LAYOUTS[1])
        };
        let mut zstd = Packer::new(Vec::new(), options).unwrap();
        zstd.push(&bytes).unwrap();
        let zstd = zstd.finish().unwrap().0;
        let read = zstd::stream::decode_all(zstd.as_slice()).unwrap();
        assert!(read == bytes);
        if let Some(python) = python() {
            let lz4 = pack(&bytes, &PackOptions::of(find_layout("lz4").unwrap())).unwrap();
            let program = "
import sys, pyarrow as pa
data = sys.stdin.buffer.read()
sys.stdout.buffer.write(pa.CompressedInputStream(pa.BufferReader(data), 'lz4').read())";
            assert!(piped(Command::new(python).args(["-c", program]), &lz4) == bytes);
        }
    }
}

#[test]
fn a_trained_dictionary_pays_in_small_frames() {
    let letters = bytes_of(0, 3_000 * 9, 17);
    let word = |it: u64| {
        let place = (it.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize % 3_000;
        letters[9 * place..9 * place + 9]
            .iter()
            .map(|byte| b'a' + byte % 26)
    };
    let bytes: Vec<u8> = (0..400_000).flat_map(word).collect();
    let options = PackOptions::of(find_layout("zstd").unwrap());
    let trained = pack(&bytes, &options).unwrap();
    let mut plain = Packer::new(Vec::new(), options.clone()).unwrap();
    plain.push(&bytes).unwrap();
    let plain = plain.finish().unwrap().0;
    assert!(
        trained.len() * 100 < plain.len() * 95,
        "{} {}",
        trained.len(),
        plain.len()
    );
    let trained = PackedBytes::from_bytes(trained).unwrap();
    assert!(!trained.dictionary().is_empty());
    check_reads(&trained, &bytes, 1_234_567, 10_000);
    let none = PackedBytes::from_bytes(pack(&bytes_of(0, 600_000, 3), &options).unwrap()).unwrap();
    assert!(none.dictionary().is_empty());
}

#[test]
fn a_long_index_takes_several_members() {
    let bytes = bytes_of(2, 3_000_000, 1);
    let options = PackOptions {
        partition: Some(256),
        level: Some(1),
        ..PackOptions::default()
    };
    let packed = pack(&bytes, &options).unwrap();
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(packed.as_slice())
        .read_to_end(&mut plain)
        .unwrap();
    assert!(plain == bytes);
    let packed = PackedBytes::from_bytes(packed).unwrap();
    assert_eq!(packed.partitions(), 11_719);
    check_reads(&packed, &bytes, 2_999_000, 1_000);
}

#[test]
fn a_partition_with_two_bytes_more_is_a_whole_stream() {
    let bytes = bytes_of(1, 50_000, 8);
    let packed = packed(LAYOUTS[0], 16_384, &bytes);
    let mut stored = Vec::new();
    for at in 0..packed.partitions() {
        let partition = packed.read_stored(at, &mut stored).unwrap();
        stored.extend_from_slice(&[3, 0]);
        let mut raw = Vec::new();
        flate2::read::DeflateDecoder::new(stored.as_slice())
            .read_to_end(&mut raw)
            .unwrap();
        assert_eq!(
            raw,
            bytes[partition.raw.start as usize..partition.raw.end as usize]
        );
    }
}

/// A file of the data sets, or none, said loudly.
fn data(name: &str) -> Option<PathBuf> {
    let path = Path::new(&std::env::var_os("TERSECADES_DATA").unwrap_or_default()).join(name);
    if !path.is_file() {
        eprintln!("SKIPPED: TERSECADES_DATA has no {name}");
        return None;
    }
    Some(path)
}

#[test]
fn real_files_come_back_at_every_boundary() {
    for name in [
        "canterbury/canterbury.tar.gz",
        "storage34/slices.tar.gz",
        "silesia_files/xml.zip",
    ] {
        let Some(path) = data(name) else { continue };
        let mut bytes = std::fs::read(path).unwrap();
        if name.ends_with(".gz") {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(bytes.as_slice())
                .read_to_end(&mut plain)
                .unwrap();
            bytes = plain;
        }
        bytes.truncate(4 << 20);
        for layout in LAYOUTS {
            let packed = pack(&bytes, &PackOptions::of(*layout)).unwrap();
            let recursive = PackedBytes::from_bytes(packed.clone()).unwrap();
            let recursive = recursive.with_phrase_maps(256 << 10);
            let packed = PackedBytes::from_bytes(packed).unwrap();
            packed.verify().unwrap();
            for at in 0..packed.partitions() {
                let start = packed.partition(at).unwrap().raw.start as usize;
                check_reads(&packed, &bytes, start.saturating_sub(1_500), 4_096);
                check_reads(&recursive, &bytes, start.saturating_sub(3), 100);
            }
            assert!(packed.read_range(0..u64::MAX).unwrap() == bytes);
            println!(
                "{name} {}: {} of {}",
                layout.name(),
                packed.stored_len(),
                bytes.len()
            );
        }
    }
}
