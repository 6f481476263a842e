//! Who follows a store from outside: every row once, whatever the writer does, and none that a
//! power cut takes away.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, ErrorKind, Result};
use tersecades_columnar::selection::Selection;
use tersecades_store::fs::FileSystem;
use tersecades_store::{Arrival, Arrivals, Bookmark, Durability, Layout, Scan, Snapshot, Store};

use crate::device::Random;
use crate::process::live_until;
use crate::ran;
use crate::simulated::{LOSSES, Loss, SimulatedFileSystem};
use crate::workload::{numbers, options, root, rows, schema};

/// Numbers of the rows of a snapshot, sorted.
fn of_snapshot(snapshot: &Snapshot) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    for part in snapshot.scan(&Scan::default())? {
        let batch = part?.to_arrow()?;
        let times = batch.column(1).as_primitive::<Int64Type>().values().clone();
        found.extend(times.iter().map(|time| *time as u64));
    }
    found.sort_unstable();
    Ok(found)
}

/// Takes what has come until there is nothing for `wait`; whether it was the end.
fn take(arrivals: &mut Arrivals, next: &mut u64, wait: Duration) -> Result<bool> {
    loop {
        match arrivals.next(wait)? {
            Arrival::Nothing => return Ok(false),
            Arrival::End => return Ok(true),
            Arrival::Rows(batch) => {
                let all = Selection::all(batch.rows());
                let batch = batch.to_arrow(&all, &mut Work::default())?;
                for time in batch.column(1).as_primitive::<Int64Type>().values() {
                    assert_eq!(*time as u64, *next, "rows in the order of their numbers");
                    *next += 1;
                }
            }
        }
    }
}

/// Takes the rows up to number `end`, which are there, and whatever else is: a look at them may
/// need another a little later.
fn take_to(arrivals: &mut Arrivals, next: &mut u64, end: u64) -> Result<()> {
    let start = Instant::now();
    while *next < end && start.elapsed() < Duration::from_secs(10) {
        take(arrivals, next, Duration::from_millis(10))?;
    }
    take(arrivals, next, Duration::ZERO).map(|_| ())
}

/// Follows the store at `path` to its end, `pause` after each look; how many rows it had.
pub(crate) fn follow(path: &Path, pause: Duration) -> Result<u64> {
    let (snapshot, mut arrivals) = Store::open_read_only(path)?.follow()?;
    let mut next = snapshot.sequence();
    assert!(of_snapshot(&snapshot)?.into_iter().eq(0..next));
    while !take(&mut arrivals, &mut next, Duration::from_millis(20))? {
        std::thread::sleep(pause);
    }
    Ok(next)
}

#[test]
fn followers_of_every_speed_see_every_row_once() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let durability = [Durability::Durable, Durability::Os][seed as usize % 2];
        let options = options(
            [Layout::Tiered, Layout::Leveled][seed as usize / 2 % 2],
            durability,
        );
        let store = Arc::new(Store::create(path, schema(), options).unwrap());
        let merger = (seed % 3 == 0).then(|| store.merge_beside().unwrap());
        let all = std::thread::scope(|scope| {
            let mut followers = Vec::new();
            let mut begin = |pause| {
                let pause = Duration::from_millis(pause);
                followers.push(scope.spawn(move || follow(path, pause).unwrap()));
            };
            begin(0);
            let mut writer = store.writer().unwrap();
            let mut sent = 0;
            for append in 0..150 {
                let count = 1 + random.below(60) as u64;
                sent = writer.append(&rows(sent, count)).unwrap();
                match append {
                    40 => begin(0),
                    60 => begin(50),
                    80 => store.add_column("w", &DataType::Int64).unwrap(),
                    _ => {}
                }
                std::thread::sleep(Duration::from_micros(random.below(3_000) as u64));
            }
            drop(writer);
            if let Some(merger) = merger {
                merger.finish().unwrap();
            }
            Arc::into_inner(store).unwrap().close().unwrap();
            for follower in followers {
                assert_eq!(follower.join().unwrap(), sent, "seed {seed}");
            }
            sent
        });
        // Nobody follows any more, so that the log is let go; who comes late has all at once.
        assert_eq!(follow(path, Duration::ZERO).unwrap(), all);
        let store = Store::open(path).unwrap();
        store.writer().unwrap().append(&rows(all, 1)).unwrap();
        store.flush().unwrap();
        assert_eq!(std::fs::read_dir(path.join("log")).unwrap().count(), 1);
    }
}

#[test]
fn a_stream_that_fails_is_an_error_of_who_follows_it_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create(folder.path(), schema(), options).unwrap();
    let outside = || {
        let store = Store::open_read_only(folder.path()).unwrap();
        let (snapshot, arrivals) = store.follow().unwrap();
        (arrivals, snapshot.sequence())
    };
    let wait = Duration::from_secs(30);
    let (mut early, mut next) = outside();
    let mut feed = store.feed("probes").unwrap();
    feed.append(&rows(0, 40)).unwrap();
    feed.fail(&Error::corrupt("a bad row"));
    let error = take(&mut early, &mut next, wait).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("`probes`"), "{error}");
    assert_eq!(next, 40, "the rows before come first");

    // Who begins later has what is there, and sees the stream go on, fail without a row, and end.
    let (mut late, mut next) = outside();
    assert!(take(&mut late, &mut next, wait).unwrap());
    let mut feed = store.feed("probes").unwrap();
    let (mut late, mut next) = outside();
    feed.append(&rows(40, 2)).unwrap();
    feed.fail(&Error::corrupt("another"));
    assert!(take(&mut late, &mut next, wait).is_err());
    assert_eq!(next, 42);
    // Rows of others, and a stream that ends, are as ever.
    let (mut late, mut next) = outside();
    store.writer().unwrap().append(&rows(42, 3)).unwrap();
    let mut feed = store.feed("others").unwrap();
    feed.append(&rows(45, 3)).unwrap();
    feed.finish().unwrap();
    assert!(take(&mut late, &mut next, wait).unwrap());
    assert_eq!(next, 48);
    store.feed("probes").unwrap().fail(&Error::corrupt("third"));
    store.close().unwrap();
    let (mut late, mut next) = outside();
    assert!(take(&mut late, &mut next, wait).unwrap());
    ran("streams that fail, seen from outside");
}

#[test]
fn a_follower_whose_part_of_the_log_was_given_up_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create(path, schema(), options).unwrap();
    let mut writer = store.writer().unwrap();
    let mut sent = writer.append(&rows(0, 10)).unwrap();
    let outside = Store::open_read_only(path).unwrap();
    let (snapshot, mut arrivals) = outside.follow().unwrap();
    let mut next = snapshot.sequence();
    for _ in 0..4 {
        sent = writer.append(&rows(sent, 50)).unwrap();
        store.flush().unwrap();
    }
    let entries = std::fs::read_dir(path.join("log")).unwrap();
    let mut segments: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let newest = segments.pop().unwrap();
    assert!(segments.len() > 1, "the follower keeps the log: {newest:?}");
    // As the writer does with what is behind its limit.
    segments
        .iter()
        .for_each(|segment| std::fs::remove_file(segment).unwrap());
    let error = take(&mut arrivals, &mut next, Duration::from_millis(200)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    assert!(error.to_string().contains("left the log"), "{error}");
    let (snapshot, _) = outside.follow().unwrap();
    assert!(of_snapshot(&snapshot).unwrap().into_iter().eq(0..sent));
}

#[test]
fn a_follower_of_a_log_that_is_damaged_in_the_middle_is_told_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create(path, schema(), options).unwrap();
    let mut writer = store.writer().unwrap();
    writer.append(&rows(0, 3)).unwrap();
    let outside = Store::open_read_only(path).unwrap();
    let (snapshot, mut arrivals) = outside.follow().unwrap();
    let mut next = snapshot.sequence();
    let mut entries = std::fs::read_dir(path.join("log")).unwrap();
    let segment = entries.next().unwrap().unwrap().path();
    let offset = std::fs::read(&segment).unwrap().len();
    for append in 1..5 {
        writer.append(&rows(3 * append, 3)).unwrap();
    }
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[offset + 40] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let error = take(&mut arrivals, &mut next, Duration::from_secs(1)).unwrap_err();
    assert_eq!((error.kind(), next), (ErrorKind::Corrupt, 3), "{error}");
    assert!(
        error.to_string().contains(&format!("byte {offset} ")),
        "{error}"
    );
}

#[test]
fn a_store_that_was_just_made_is_followed_from_its_first_row_on() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create(folder.path(), schema(), options).unwrap();
    store.close().unwrap();
    let outside = Store::open_read_only(folder.path()).unwrap();
    let (_, mut arrivals) = outside.follow().unwrap();
    let mut next = 0;
    assert!(!take(&mut arrivals, &mut next, Duration::from_millis(150)).unwrap());
    let store = Store::open(folder.path()).unwrap();
    store.writer().unwrap().append(&rows(0, 5)).unwrap();
    store.close().unwrap();
    assert!(take(&mut arrivals, &mut next, Duration::from_secs(10)).unwrap());
    assert_eq!(next, 5);
}

#[test]
fn a_follower_ends_with_the_stream_and_not_with_the_crash_of_its_process() {
    let files: Arc<dyn FileSystem> = Arc::new(SimulatedFileSystem::default());
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create_in(Arc::clone(&files), root(), schema(), options).unwrap();
    let outside = Store::open_read_only_in(Arc::clone(&files), root()).unwrap();
    let (_, mut arrivals) = outside.follow().unwrap();
    let (mut next, quiet) = (0, Duration::from_millis(150));
    let mut feed = store.feed("numbers").unwrap();
    feed.append(&rows(0, 70)).unwrap();
    assert!(!take(&mut arrivals, &mut next, quiet).unwrap());
    assert_eq!(next, 70);
    #[expect(clippy::disallowed_methods, reason = "a killed process drops nothing")]
    std::mem::forget(feed);
    drop(store);
    let store = Store::open_in(Arc::clone(&files), root()).unwrap();
    assert!(!take(&mut arrivals, &mut next, quiet).unwrap());
    let mut feed = store.feed("numbers").unwrap();
    assert_eq!(feed.rows(), 70);
    feed.append(&rows(70, 30)).unwrap();
    assert!(!take(&mut arrivals, &mut next, quiet).unwrap());
    feed.finish().unwrap();
    assert!(take(&mut arrivals, &mut next, Duration::from_secs(10)).unwrap());
    assert_eq!(next, 100);
}

#[test]
fn no_power_cut_takes_rows_that_were_handed_out() {
    /// Appends and follows in turns; rows that were handed out.
    fn live(files: &SimulatedFileSystem, handed: &mut u64) -> Result<()> {
        let files: Arc<dyn FileSystem> = Arc::new(files.clone());
        let options = options(Layout::Tiered, Durability::Durable);
        let store = Store::create_in(Arc::clone(&files), root(), schema(), options)?;
        let (_, mut arrivals) = Store::open_read_only_in(files, root())?.follow()?;
        let mut writer = store.writer()?;
        let mut sent = 0;
        for append in 0..16 {
            let appended = writer.append(&rows(sent, 3 + append));
            for _ in 0..2 + append % 2 {
                take(&mut arrivals, handed, Duration::ZERO)?;
            }
            sent = appended?;
        }
        Ok(())
    }
    let whole = SimulatedFileSystem::default();
    let mut handed = 0;
    live(&whole, &mut handed).unwrap();
    assert_eq!(handed, (0..16).map(|append| 3 + append).sum::<u64>());
    for call in 1..whole.calls() {
        for loss in [LOSSES[(call % 4) as usize], Loss::Drop] {
            let files = SimulatedFileSystem::default();
            // One call fails, the rest of the log is seen by the follower, then the power goes.
            files.fail_at(call, std::io::ErrorKind::Other);
            let mut handed = 0;
            // Errors end a life early; that is what is tested.
            let _ = live(&files, &mut handed);
            let left: Arc<dyn FileSystem> = Arc::new(files.after_crash(loss, call));
            let found = match Store::open_in(left, root()) {
                Ok(store) => numbers(&store).unwrap().len() as u64,
                Err(error) => {
                    assert_eq!(handed, 0, "call {call}, {loss:?}: {error}");
                    0
                }
            };
            assert!(
                found >= handed,
                "call {call}, {loss:?}: {found} of {handed}"
            );
        }
    }
    ran("power cuts while a store is followed");
}

#[test]
fn no_power_cut_takes_rows_behind_a_bookmark() {
    /// Appends, writes runs and takes bookmarks in turns; the last bookmark that was taken.
    fn live(files: &SimulatedFileSystem, last: &mut Option<Bookmark>) -> Result<()> {
        let files: Arc<dyn FileSystem> = Arc::new(files.clone());
        let options = options(Layout::Tiered, Durability::Durable);
        let store = Store::create_in(Arc::clone(&files), root(), schema(), options)?;
        let mut outside = Store::open_read_only_in(files, root())?.follow()?.1;
        let mut within = store.follow()?.1;
        let mut writer = store.writer()?;
        let (mut sent, mut next) = (0, [0, 0]);
        for append in 0..12 {
            sent = writer.append(&rows(sent, 3 + append))?;
            if append % 3 == 1 {
                store.flush()?;
            }
            take(&mut outside, &mut next[0], Duration::ZERO)?;
            take(&mut within, &mut next[1], Duration::ZERO)?;
            let taken = [&mut outside, &mut within][append as usize / 2 % 2].bookmark();
            *last = Some(taken?);
        }
        store.compact()
    }
    let whole = SimulatedFileSystem::default();
    live(&whole, &mut None).unwrap();
    let mut taken_over = 0;
    for call in 1..whole.calls() {
        let files = SimulatedFileSystem::default();
        files.crash_at(call);
        let mut last = None;
        // The power goes in the middle of it.
        let _ = live(&files, &mut last);
        let Some(bookmark) = last else { continue };
        let loss = LOSSES[call as usize % LOSSES.len()];
        let left: Arc<dyn FileSystem> = Arc::new(files.after_crash(loss, call));
        let store = Store::open_in(Arc::clone(&left), root()).unwrap();
        let all = numbers(&store).unwrap().len() as u64;
        store.compact().unwrap();
        store.writer().unwrap().append(&rows(all, 2)).unwrap();
        let outside = Store::open_read_only_in(left, root()).unwrap();
        for store in [&store, &outside] {
            let mut next = bookmark.rows();
            let mut arrivals = store.follow_from(&bookmark).unwrap();
            take_to(&mut arrivals, &mut next, all + 2).unwrap();
            assert_eq!(next, all + 2, "call {call}, {loss:?}");
        }
        taken_over += 1;
    }
    assert!(taken_over > 50, "{taken_over}");
    ran("power cuts behind bookmarks");
}

#[test]
fn rows_arrive_once_while_their_process_is_killed_and_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let options = options(Layout::Tiered, Durability::Durable);
    drop(Store::create(&path, schema(), options).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let followers = [0, 30].map(|pause| {
            let (path, done) = (&path, &done);
            scope.spawn(move || {
                let (snapshot, mut arrivals) =
                    Store::open_read_only(path).unwrap().follow().unwrap();
                let mut next = snapshot.sequence();
                loop {
                    let last = done.load(Ordering::Relaxed);
                    take(&mut arrivals, &mut next, Duration::from_millis(25)).unwrap();
                    if last {
                        return next;
                    }
                    std::thread::sleep(Duration::from_millis(pause));
                }
            })
        });
        let mut random = Random(5);
        let mut acknowledged = 0;
        for _ in 0..12 {
            let lasts = Duration::from_millis(random.below(60) as u64);
            let (_, most) = live_until(&path, Durability::Durable, lasts, || {});
            acknowledged = most.max(acknowledged);
        }
        done.store(true, Ordering::Relaxed);
        let found = numbers(&Store::open_read_only(&path).unwrap()).unwrap();
        for follower in followers {
            let seen = follower.join().unwrap();
            assert!(seen >= acknowledged && seen == found.len() as u64);
        }
    });
    ran("killed processes that are followed");
}

#[test]
fn rows_arrive_soon_after_they_are_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create(folder.path(), schema(), options).unwrap();
    let (_, mut arrivals) = Store::open_read_only(folder.path())
        .unwrap()
        .follow()
        .unwrap();
    let mut writer = store.writer().unwrap();
    let mut waits = Vec::new();
    for row in 0..30 {
        writer.append(&rows(row, 1)).unwrap();
        let start = Instant::now();
        let arrived = arrivals.next(Duration::from_secs(10)).unwrap();
        assert!(matches!(arrived, Arrival::Rows(_)));
        waits.push(start.elapsed());
    }
    waits.sort_unstable();
    ran(&format!(
        "a follower waits {:?}, at most {:?}",
        waits[15], waits[29]
    ));
}
