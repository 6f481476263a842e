//! Power cuts and failing calls, at every call.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tersecades_store::fs::FileSystem;
use tersecades_store::{Durability, Layout, Store};

use crate::simulated::{LOSSES, Loss, SimulatedFileSystem};
use crate::workload::{check, live, numbers, options, root, rows, schema};
use crate::{ran, setting};

const LAYOUTS: [Layout; 2] = [Layout::Tiered, Layout::Leveled];

/// Calls of a whole life.
fn calls(layout: Layout) -> u64 {
    let files = SimulatedFileSystem::default();
    let lived = live(&files, layout, Durability::Durable);
    assert_eq!(lived, (211, 211), "a life without faults is whole");
    check(&files, lived, "a life without faults");
    files.calls()
}

#[test]
fn power_cuts_after_every_call_lose_no_acknowledged_row() {
    let seeds = setting("TERSECADES_CRASH_SEEDS", 0);
    for layout in LAYOUTS {
        // The short form tries every call of the tiered layout.
        let step = if seeds == 0 && layout == Layout::Leveled {
            4
        } else {
            1
        };
        for call in (1..=calls(layout)).step_by(step) {
            let files = SimulatedFileSystem::default();
            files.crash_at(call);
            let lived = live(&files, layout, Durability::Durable);
            let kinds = LOSSES
                .iter()
                .flat_map(|loss| (0..seeds.max(1)).map(move |s| (*loss, s)));
            // The short form tries two kinds of loss at each call, the long one all.
            let turn = |index: usize| seeds > 0 || (index as u64 + call).is_multiple_of(2);
            for (_, (loss, seed)) in kinds.enumerate().filter(|(index, _)| turn(*index)) {
                let what = format!("{layout}, call {call}, {loss:?}, seed {seed}");
                check(&files.after_crash(loss, call * 1_000 + seed), lived, &what);
            }
        }
    }
    ran("simulated power cuts at every call");
}

#[test]
fn a_second_power_cut_while_the_first_is_recovered_from_loses_nothing() {
    let all = calls(Layout::Tiered);
    for first in (1..=all).step_by(61) {
        let files = SimulatedFileSystem::default();
        files.crash_at(first);
        let lived = live(&files, Layout::Tiered, Durability::Durable);
        let left = files.after_crash(Loss::Reorder, first);
        let (mut second, mut seen) = (0, BTreeSet::new());
        loop {
            second += 1;
            let again = left.copied();
            again.crash_at(second);
            let shared: Arc<dyn FileSystem> = Arc::new(again.clone());
            let opened = Store::open_in(shared, root()).is_ok();
            let turn = LOSSES[first as usize % LOSSES.len()];
            for loss in [turn, Loss::Reorder, Loss::KeepRemovals, Loss::KeepNames] {
                let what = format!("calls {first} and {second}, {loss:?}");
                let left = again.after_crash(loss, first + second);
                if seen.insert(left.files()) {
                    check(&left, lived, &what);
                }
            }
            if opened || second > 60 {
                break;
            }
        }
    }
}

#[test]
fn a_power_cut_while_a_killed_writer_is_recovered_from_loses_nothing() {
    let all = calls(Layout::Tiered);
    let long = setting("TERSECADES_CRASH_SEEDS", 0) > 0;
    for first in (1..=all).step_by(if long { 1 } else { 5 }) {
        let files = SimulatedFileSystem::default();
        files.crash_at(first);
        let lived = live(&files, Layout::Tiered, Durability::Durable);
        // Seeds tell anything only of many cuts; the short form has every eleventh, others each
        // time.
        let seeded = |second: u64| long || second % 11 == 1 + first % 11;
        let mut seen = BTreeSet::new();
        for second in 1.. {
            let again = files.after_kill();
            again.crash_at(second);
            let shared: Arc<dyn FileSystem> = Arc::new(again.clone());
            let opened = Store::open_in(shared, root()).is_ok();
            let mut cuts = vec![(Loss::KeepRemovals, 0), (Loss::KeepNames, 0)];
            if seeded(second) {
                cuts.extend([second, second + 1_000].map(|seed| (Loss::Reorder, seed)));
            }
            for (loss, seed) in cuts {
                let what = format!("killed at call {first}, cut at {second}, {loss:?}, {seed}");
                let left = again.after_crash(loss, seed);
                if seen.insert(left.files()) {
                    check(&left, lived, &what);
                }
            }
            if opened || again.calls() < second {
                break;
            }
        }
    }
}

#[test]
fn the_unsafe_mode_loses_rows() {
    let mut lost = 0;
    for call in 1..calls(Layout::Tiered) {
        let files = SimulatedFileSystem::default();
        files.crash_at(call);
        let (acknowledged, _) = live(&files, Layout::Tiered, Durability::Os);
        let left: Arc<dyn FileSystem> = Arc::new(files.after_crash(Loss::Drop, call));
        let opened = Store::open_in(left, root());
        if let (Err(error), true) = (&opened, acknowledged > 0) {
            panic!("call {call}: rows may be lost, the store may not: {error}");
        }
        let found = opened.and_then(|store| numbers(&store));
        let found = found.unwrap_or_default();
        let count = found.len() as u64;
        assert!(
            found.into_iter().eq(0..count),
            "call {call}: not the first rows"
        );
        lost += u64::from(count < acknowledged);
    }
    assert!(
        lost > 10,
        "only {lost} power cuts lost rows: the simulation is broken"
    );
}

#[test]
fn an_error_of_any_call_loses_no_acknowledged_row() {
    let long = setting("TERSECADES_CRASH_SEEDS", 0) > 0;
    // The short form tries one layout, and one kind of error at each call.
    for layout in LAYOUTS.into_iter().take(if long { 2 } else { 1 }) {
        let all = calls(layout);
        for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
            let first = 1 + u64::from(kind == ErrorKind::StorageFull && !long);
            for call in (first..=all).step_by(if long { 1 } else { 2 }) {
                let files = SimulatedFileSystem::default();
                files.fail_at(call, kind);
                let lived = live(&files, layout, Durability::Durable);
                let what = format!("{layout}, call {call} fails with {kind:?}");
                // The process is gone: its lock is not held any more.
                check(&files.copied(), lived, &what);
                check(
                    &files.after_crash(Loss::Drop, call),
                    lived,
                    &format!("{what}, power cut"),
                );
            }
        }
    }
    ran("errors of every call");
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged() {
    let mut poisoned = 0;
    for call in 1..100 {
        let files = SimulatedFileSystem::default();
        let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
        let options = options(Layout::Tiered, Durability::Durable);
        let store = Store::create_in(shared, root(), schema(), options).unwrap();
        files.fail_at(files.calls() + call, ErrorKind::Other);
        let mut writer = store.writer().unwrap();
        let outcomes: Vec<bool> = (0..12)
            .map(|batch| writer.append(&rows(batch * 11, 11)).is_ok())
            .collect();
        let Some(error) = store.failure() else {
            continue;
        };
        poisoned += 1;
        assert!(
            outcomes.is_sorted_by(|a, b| a >= b),
            "call {call}: {outcomes:?} after {error}"
        );
        assert!(store.close().is_err());
    }
    assert!(poisoned > 20, "{poisoned}");
}

#[test]
fn an_append_that_fails_and_is_tried_again_is_there_once() {
    let mut tried_again = 0;
    for call in 1..250 {
        let files = SimulatedFileSystem::default();
        let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
        let options = options(Layout::Tiered, Durability::Durable);
        let store = Store::create_in(shared, root(), schema(), options).unwrap();
        files.fail_at(files.calls() + call, ErrorKind::Other);
        let (mut writer, mut count) = (store.writer().unwrap(), 0);
        while count < 180 && store.failure().is_none() {
            match writer.append(&rows(count, 9)) {
                Ok(_) => count += 9,
                Err(_) => tried_again += u64::from(store.failure().is_none()),
            }
        }
        if store.failure().is_none() {
            let found = numbers(&store).or_else(|_| numbers(&store)).unwrap();
            assert!(found.into_iter().eq(0..count), "call {call}");
        }
    }
    assert!(tried_again > 10, "{tried_again}");
}

#[test]
fn rows_behind_those_of_a_failed_sync_outlive_a_power_cut() {
    let mut reopened = 0;
    for call in 1..60 {
        let files = SimulatedFileSystem::default();
        let open = |files: &SimulatedFileSystem| {
            let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
            Store::open_in(shared, root())
        };
        let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
        let options = options(Layout::Tiered, Durability::Durable);
        let store = Store::create_in(shared, root(), schema(), options).unwrap();
        files.fail_at(files.calls() + call, ErrorKind::Other);
        let mut writer = store.writer().unwrap();
        let appended = (0..3).map_while(|batch| writer.append(&rows(batch * 11, 11)).ok());
        let acknowledged = appended.last().unwrap_or(0);
        drop(store);
        let killed = files.after_kill();
        let Ok(store) = open(&killed) else {
            continue;
        };
        let found = numbers(&store).unwrap().len() as u64;
        assert!(found >= acknowledged, "call {call}");
        let mut writer = store.writer().unwrap();
        writer.append(&rows(found, 11)).unwrap();
        drop(store);
        for loss in [Loss::Drop, Loss::KeepNames] {
            let left = open(&killed.after_crash(loss, call)).unwrap();
            let count = numbers(&left).unwrap().len() as u64;
            assert_eq!(count, found + 11, "call {call}, {loss:?}");
        }
        reopened += 1;
    }
    assert!(reopened > 20, "{reopened}");
}

#[test]
fn writers_that_wait_together_share_syncs() {
    let files = SimulatedFileSystem::default();
    let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
    let mut options = options(Layout::Tiered, Durability::Group(Duration::from_millis(3)));
    options.buffer_rows = 1 << 20;
    let store = Store::create_in(shared, root(), schema(), options).unwrap();
    let before = files.calls();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                let mut writer = store.writer().unwrap();
                for batch in 0..20 {
                    writer.append(&rows((thread * 20 + batch) * 5, 5)).unwrap();
                }
            });
        }
    });
    let found = numbers(&store).unwrap();
    assert!(found.into_iter().eq(0..800));
    let calls = files.calls() - before;
    assert!(
        calls < 160,
        "{calls} calls for 160 appends: a write and a sync each would be 320"
    );
}
