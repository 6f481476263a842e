//! The commands `pack` and `cat` as scripts see them.

#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn tersecades(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .args(arguments)
        .output()
        .unwrap()
}

fn good(arguments: &[&str]) -> Output {
    let output = tersecades(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    output
}

fn bad(arguments: &[&str], code: i32, says: &str) {
    let output = tersecades(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(says), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty());
}

fn text() -> Vec<u8> {
    let line = |it: u32| format!("{it:06} node-{} ok\n", it * 7_919 % 97);
    (0..20_000).map(line).collect::<String>().into_bytes()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn zstd_reads_what_is_packed_without_a_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    let line = |n: u64| {
        format!(
            "{n} GET /users/{}/orders?status=open HTTP/1.1 200\n",
            n * n % 9_973
        )
    };
    let text: String = (0..40_000).map(line).collect();
    let log = path(folder.path(), "log");
    fs::write(&log, &text).unwrap();
    let packed = path(folder.path(), "log.zst");
    let options = ["--layout", "zstd", "--no-dictionary"];
    good(&[&["pack", &log, "-o", &packed][..], &options].concat());
    assert_eq!(good(&["cat", &packed]).stdout, text.as_bytes());
    let read = zstd::stream::decode_all(fs::read(&packed).unwrap().as_slice());
    assert_eq!(read.unwrap(), text.as_bytes());
}

#[test]
fn files_are_packed_and_read_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let (log, text) = (path(folder.path(), "log"), text());
    fs::write(&log, &text).unwrap();
    for layout in ["zlib", "zstd", "lz4"] {
        let packed = path(folder.path(), &format!("log.{layout}"));
        let options = ["--layout", layout, "--partition", "8KiB", "--threads", "2"];
        let made = good(&[&["pack", &log, "-o", &packed][..], &options].concat());
        assert!(made.stdout.is_empty());
        let said = String::from_utf8(made.stderr).unwrap();
        assert!(
            said.contains("partitions") && said.contains(&packed),
            "{said}"
        );
        assert_eq!(good(&["cat", &packed]).stdout, text);
        for (range, expected) in [
            ("1000:2000", &text[1_000..2_000]),
            ("8KiB:8193", &text[8_192..8_193]),
            (":10", &text[..10]),
            ("300000:", &text[300_000..]),
            ("5:5", &[]),
        ] {
            assert_eq!(
                good(&["cat", &packed, "--range", range]).stdout,
                expected,
                "{range}"
            );
        }
    }
}

#[test]
fn standard_input_is_packed_and_names_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let (log, text) = (path(folder.path(), "log"), text());
    fs::write(&log, &text).unwrap();
    good(&["pack", &log]);
    let beside = fs::read(format!("{log}.tcz")).unwrap();
    let piped = path(folder.path(), "piped.tcz");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tersecades"))
        .args(["pack", "-", "-o", &piped])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read(&piped).unwrap(), beside);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn gzip_files_of_others_are_read_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let log = path(folder.path(), "log");
    let text = text();
    fs::write(&log, &text).unwrap();
    assert!(
        Command::new("gzip")
            .args(["-k", &log])
            .status()
            .unwrap()
            .success()
    );
    let (gzip, index) = (format!("{log}.gz"), format!("{log}.index"));
    assert_eq!(good(&["cat", &gzip]).stdout, text);
    for _ in 0..2 {
        let part = good(&["cat", &gzip, "--range", "1000:2000", "--index", &index]);
        assert_eq!(part.stdout, text[1_000..2_000]);
        assert!(fs::exists(&index).unwrap());
    }
    let whole = fs::read(&gzip).unwrap();
    fs::write(&gzip, [&whole[..], b"more"].concat()).unwrap();
    let said = format!("the last 4 bytes, at offset {}", whole.len());
    bad(&["cat", &gzip, "--range", "0:9"], 1, &said);
    fs::write(&gzip, &whole[..100]).unwrap();
    bad(&["cat", &gzip], 1, "ends inside a member");
    bad(&["cat", &gzip, "--index", &index], 1, "another gzip file");
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let log = path(folder.path(), "log");
    fs::write(&log, text()).unwrap();
    bad(&["pack", "/nowhere/file"], 1, "/nowhere/file");
    bad(&["pack", "-"], 1, "-o FILE.tcz");
    bad(&["pack", &log, "--layout", "rar"], 2, "zlib");
    bad(&["pack", &log, "--partition", "10"], 1, "256 B to 4 MiB");
    bad(&["pack", &log, "--level", "11"], 1, "0 to 9");
    bad(&["cat", &log], 1, "no packed file");
    good(&["pack", &log]);
    let packed = format!("{log}.tcz");
    bad(
        &["cat", &packed, "--range", "9:5"],
        2,
        "ends before it starts",
    );
    bad(&["cat", &packed, "--range", "1GiB:"], 1, "behind the end");
    let mut damaged = fs::read(&packed).unwrap();
    fs::write(&packed, &damaged[..damaged.len() - 9]).unwrap();
    bad(&["cat", &packed], 1, "is cut short: its index is missing");
    damaged[1_000] ^= 1;
    fs::write(&packed, damaged).unwrap();
    let output = tersecades(&["cat", &packed]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("checksum of partition 0") && said.contains(&packed),
        "{said}"
    );
}

#[test]
fn a_file_is_not_packed_into_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (log, link) = (path(folder.path(), "log"), path(folder.path(), "link"));
    fs::write(&log, text()).unwrap();
    std::os::unix::fs::symlink("log", &link).unwrap();
    for output in [&log, &link] {
        bad(&["pack", &log, "-o", output], 1, "another name");
        bad(&["pack", &link, "-o", output], 1, "another name");
    }
    assert_eq!(fs::read(&log).unwrap(), text());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn what_is_packed_over_stays_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name| path(folder.path(), name);
    let (log, real, link) = (name("log"), name("real"), name("link"));
    fs::write(&log, text()).unwrap();
    fs::write(&real, "old").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    good(&["pack", &log, "-o", &link]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(good(&["cat", &real]).stdout, text());

    let pipe = name("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let reads = pipe.clone();
    let reader = std::thread::spawn(move || fs::read(reads).unwrap());
    good(&["pack", &log, "-o", &pipe]);
    assert_eq!(reader.join().unwrap(), fs::read(&real).unwrap());
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

/// Where this machine lets the test make one: a device like `/dev/null`, which is left alone.
#[test]
fn devices_are_written_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (log, device) = (path(folder.path(), "log"), path(folder.path(), "device"));
    fs::write(&log, text()).unwrap();
    let made = Command::new("mknod")
        .args([&device, "c", "1", "3"])
        .output();
    let opens = || fs::File::options().write(true).open(&device).is_ok();
    if !made.is_ok_and(|made| made.status.success()) || !opens() {
        eprintln!("SKIPPED: no device can be made here");
        return;
    }
    good(&["pack", &log, "-o", &device]);
    assert!(fs::metadata(&device).unwrap().file_type().is_char_device());
}

#[test]
fn a_packed_file_does_not_go_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let log = path(folder.path(), "log");
    fs::write(&log, text()).unwrap();
    bad(&["pack", &log, "-o", "-"], 1, "-o FILE.tcz");
    assert!(!Path::new("-").exists());
}
