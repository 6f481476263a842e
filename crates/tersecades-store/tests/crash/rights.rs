//! Readers that may read a store's files and change nothing.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tersecades_store::{Durability, Layout, Store};

use crate::follow::follow;
use crate::workload::{numbers, options, rows, schema};
use crate::{ran, skipped};

/// What the process without rights reads.
const READER_FOLDER: &str = "TERSECADES_READER_FOLDER";
/// A user without rights; on most systems its name is `nobody`.
const NOBODY: u32 = 65_534;

/// Reads and follows the store of the other test, and nothing when it is run by itself.
#[test]
fn a_process_without_rights() {
    let Some(folder) = std::env::var_os(READER_FOLDER).map(PathBuf::from) else {
        return;
    };
    let denied = fs::write(folder.join("new"), "").unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
    let store = Store::open_read_only(&folder).unwrap();
    assert!(numbers(&store).unwrap().into_iter().eq(0..ROWS));
    assert_eq!(follow(&folder, Duration::ZERO).unwrap(), ROWS);
    let error = Store::open(&folder).err().unwrap().to_string();
    assert!(error.contains("LOCK"), "{error}");
    assert!(error.to_lowercase().contains("permission"), "{error}");
}

const ROWS: u64 = 90;

/// Runs the test above without rights to write.
fn read_without_rights(folder: &Path) -> std::io::Result<Output> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--exact", "rights::a_process_without_rights"])
        .env(READER_FOLDER, folder)
        .current_dir("/");
    if fs::metadata(folder)?.uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output()
}

/// Takes the rights to write from everything in `folder`, or gives them back.
fn set_rights(folder: &Path, may_write: bool) {
    let (of_folder, of_file) = if may_write {
        (0o755, 0o644)
    } else {
        (0o555, 0o444)
    };
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => set_rights(&entry.path(), may_write),
            false => {
                fs::set_permissions(entry.path(), Permissions::from_mode(of_file)).unwrap();
            }
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(of_folder)).unwrap();
}

#[test]
fn readers_need_no_right_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(
        folder.path(),
        schema(),
        options(Layout::Tiered, Durability::Durable),
    );
    let store = store.unwrap();
    let mut writer = store.writer().unwrap();
    writer.append(&rows(0, 70)).unwrap();
    store.flush().unwrap();
    writer.append(&rows(70, ROWS - 70)).unwrap();
    drop(writer);
    store.close().unwrap();
    set_rights(folder.path(), false);
    let read = read_without_rights(folder.path());
    set_rights(folder.path(), true);
    match read {
        Ok(output) => {
            let out = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{out}");
            ran("readers without rights to write");
        }
        // The tests lie where only their owner may start them.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            skipped("readers without rights to write", &error.to_string());
        }
        Err(error) => panic!("{error}"),
    }
}
