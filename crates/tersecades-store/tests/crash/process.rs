//! Processes that are killed, and power cuts by shutting a mounted file system down.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tersecades_store::{Durability, Layout, Store};

use crate::device::Random;
use crate::workload::{check_opened, numbers, options, rows, schema};
use crate::{ran, setting, skipped};

/// Where the process that is ended writes its store, and how durable.
const CHILD_FOLDER: &str = "TERSECADES_CRASH_FOLDER";
const CHILD_DURABILITY: &str = "TERSECADES_CRASH_DURABILITY";

/// Rows of an append.
const BATCH: u64 = 9;

/// Appends rows until it is killed and says how many are acknowledged: the process that the other
/// tests start, and nothing else when it is run by itself.
#[test]
fn a_process_that_is_to_be_ended() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else {
        return;
    };
    let durability = std::env::var(CHILD_DURABILITY).unwrap().parse().unwrap();
    let folder = PathBuf::from(folder);
    let mut options = options(Layout::Tiered, durability);
    if durability == Durability::Os {
        // Runs and what is in them last in every mode.
        options.buffer_rows = 1 << 20;
    }
    let store = Store::open(&folder)
        .or_else(|_| Store::create(&folder, schema(), options))
        .unwrap();
    let mut writer = store.writer().unwrap();
    let mut sent = store.snapshot().sequence();
    let mut out = std::io::stdout();
    loop {
        let end = writer.append(&rows(sent, BATCH)).unwrap();
        sent += BATCH;
        assert_eq!(end, sent);
        writeln!(out, "acked {end}").unwrap();
        out.flush().unwrap();
    }
}

/// Starts a process that appends to the store at `folder`.
fn start(folder: &Path, durability: Durability) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "process::a_process_that_is_to_be_ended"])
        .args(["--nocapture", "--test-threads", "1"])
        .env(CHILD_FOLDER, folder)
        .env(CHILD_DURABILITY, durability.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Lets a process append for a while and ends it with `end`; the rows it had acknowledged before
/// that began, and in all.
pub(crate) fn live_until(
    folder: &Path,
    durability: Durability,
    lasts: Duration,
    end: impl FnOnce(),
) -> (u64, u64) {
    let mut child = start(folder, durability);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // It has begun: what follows is cut off somewhere.
    let began = |line: &String| line.starts_with("acked ");
    let first = lines.by_ref().map_while(Result::ok).find(began);
    let acknowledged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let read = scope.spawn(|| {
            for line in first.into_iter().chain(lines.map_while(Result::ok)) {
                let number = line.strip_prefix("acked ").and_then(|it| it.parse().ok());
                acknowledged.fetch_max(number.unwrap_or(0), Ordering::Relaxed);
            }
        });
        std::thread::sleep(lasts);
        let before = acknowledged.load(Ordering::Relaxed);
        end();
        child.kill().unwrap();
        child.wait().unwrap();
        read.join().unwrap();
        (before, acknowledged.load(Ordering::Relaxed))
    })
}

#[test]
fn processes_that_are_killed_lose_no_acknowledged_row() {
    let kills = setting("TERSECADES_KILLS", 50);
    let mut random = Random(7);
    let folder = tempfile::tempdir().unwrap();
    let (mut most, mut before) = (0, 0);
    for kill in 0..kills {
        // A store goes on for ten lives, some of which end before they say anything.
        let path = folder.path().join(format!("{}", kill / 10));
        let lasts = Duration::from_micros(random.below(40_000) as u64);
        let (_, acknowledged) = live_until(&path, Durability::Durable, lasts, || {});
        let acknowledged = acknowledged.max(before);
        let limit = acknowledged + BATCH;
        let found = check_opened(
            Store::open(&path),
            (acknowledged, limit),
            &format!("kill {kill}"),
        );
        most = most.max(found);
        before = numbers(&Store::open(&path).unwrap()).unwrap().len() as u64;
        if kill % 10 == 9 {
            std::fs::remove_dir_all(&path).unwrap();
            before = 0;
        }
    }
    assert!(
        most > 200,
        "at most {most} rows: the processes hardly lived"
    );
    ran(&format!("{kills} killed processes"));
}

/// A file system in a file, mounted while this is there.
struct Mounted {
    folder: tempfile::TempDir,
}

fn run(command: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(command).args(arguments).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

impl Mounted {
    fn new(kind: &str, megabytes: u64) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Mounted { folder };
        std::fs::create_dir(mounted.point()).unwrap();
        let image = std::fs::File::create(mounted.image()).unwrap();
        image.set_len(megabytes << 20).unwrap();
        run(&format!("mkfs.{kind}"), &["-q", &mounted.image()])?;
        mounted.mount()?;
        Ok(mounted)
    }

    fn image(&self) -> String {
        self.folder.path().join("image").display().to_string()
    }

    fn point(&self) -> String {
        self.folder.path().join("mounted").display().to_string()
    }

    fn mount(&self) -> Result<(), String> {
        run("mount", &["-o", "loop", &self.image(), &self.point()])
    }

    /// Everything that the file system has not written is lost, as when the power goes.
    fn cut(&self) {
        // FS_IOC_SHUTDOWN with the flag that says: do not write the journal.
        let call = "import fcntl, os, struct, sys; \
                    file = os.open(sys.argv[1], os.O_RDONLY); \
                    fcntl.ioctl(file, 0x8004587d, struct.pack('I', 2))";
        let python = std::env::var("TERSECADES_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        run(&python, &["-c", call, &self.point()]).unwrap();
    }

    fn mount_again(&self) {
        run("umount", &[&self.point()]).unwrap();
        self.mount().unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // What was never mounted cannot be unmounted.
        let _ = run("umount", &[&self.point()]);
    }
}

/// Cuts the power `cuts` times; in how many of them acknowledged rows were lost.
fn power_cuts(mounted: &Mounted, durability: Durability, cuts: u64) -> u64 {
    let mut random = Random(11);
    let mut lost = 0;
    for cut in 0..cuts {
        let path = Path::new(&mounted.point()).join(format!("store{cut}"));
        let lasts = Duration::from_millis(20 + random.below(60) as u64);
        // Shutting down takes a while: a sync meanwhile may succeed of what is then lost.
        let (before, acknowledged) = live_until(&path, durability, lasts, || mounted.cut());
        mounted.mount_again();
        match durability {
            Durability::Os => {
                let found = Store::open(&path).map_or(0, |store| store.snapshot().sequence());
                lost += u64::from(found < before);
            }
            _ => {
                let limit = acknowledged + BATCH;
                check_opened(Store::open(&path), (before, limit), &format!("cut {cut}"));
            }
        }
        std::fs::remove_dir_all(&path).unwrap();
    }
    lost
}

#[test]
fn power_cuts_on_mounted_file_systems_lose_no_acknowledged_row() {
    let cuts = setting("TERSECADES_POWER_CUTS", 20);
    for (kind, megabytes) in [("ext4", 64), ("xfs", 320)] {
        let layer = format!("power cuts on {kind}");
        let mounted = match Mounted::new(kind, megabytes) {
            Ok(mounted) => mounted,
            Err(why) => {
                skipped(
                    &layer,
                    &format!("needs root, loop devices and mkfs.{kind} ({why})"),
                );
                continue;
            }
        };
        power_cuts(&mounted, Durability::Durable, cuts);
        let control = cuts.div_ceil(4);
        let lost = power_cuts(&mounted, Durability::Os, control);
        assert!(
            lost * 2 > control,
            "{lost} of {control} power cuts lost rows of the unsafe mode: the cuts are broken"
        );
        ran(&format!(
            "{cuts} {layer}; {lost} of {control} in the unsafe mode lost rows"
        ));
    }
}

#[test]
fn a_full_file_system_takes_rows_again_when_there_is_space() {
    let mounted = match Mounted::new("ext4", 8) {
        Ok(mounted) => mounted,
        Err(why) => return skipped("a full ext4", &why),
    };
    let point = PathBuf::from(mounted.point());
    let path = point.join("store");
    let store = Store::create(
        &path,
        schema(),
        options(Layout::Tiered, Durability::Durable),
    );
    let store = store.unwrap();
    let mut writer = store.writer().unwrap();
    let mut count = 0;
    let mut append = |count: &mut u64| -> bool {
        let appended = writer.append(&rows(*count, 200));
        *count += if appended.is_ok() { 200 } else { 0 };
        appended.is_ok()
    };
    for round in 0..3 {
        let ballast = point.join(format!("ballast{round}"));
        while append(&mut count) && count < 600 * (round + 1) {}
        // The disk fills up.
        let mut file = std::fs::File::create(&ballast).unwrap();
        while file.write_all(&[1; 4_096]).is_ok() {}
        drop(file);
        let before = count;
        let full = (0..400).any(|_| !append(&mut count));
        assert!(full, "the disk did not fill up");
        assert_eq!(
            crate::workload::numbers(&store).unwrap().len() as u64,
            count
        );
        std::fs::remove_file(&ballast).unwrap();
        assert!(append(&mut count), "there is space after {before} rows");
    }
    drop(store);
    let ballast = point.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    for piece in [4_096, 1] {
        while file.write_all(&vec![1; piece]).is_ok() {}
    }
    drop(file);
    if let Err(error) = Store::open(&path) {
        assert!(error.message().contains("no space is left"), "{error}");
        let hint = error.hint_text().unwrap();
        assert!(hint.contains("as soon as there is space"), "{hint}");
    }
    let reader = Store::open_read_only(&path).unwrap();
    assert_eq!(
        crate::workload::numbers(&reader).unwrap().len() as u64,
        count
    );
    std::fs::remove_file(&ballast).unwrap();
    check_opened(Store::open(&path), (count, count), "a full file system");
    ran("a full ext4 and back");
}
