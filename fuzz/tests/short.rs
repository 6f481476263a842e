//! The short form: every target on some thousand mutated inputs, within seconds.
//!
//! `TERSECADES_FUZZ_RUNS` and `TERSECADES_FUZZ_SECONDS` make it longer.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use tersecades_fuzz::mutate::{Limits, Random, mutate, run};
use tersecades_fuzz::target::TARGETS;

fn fuzz(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let limits = Limits::from_environment();
    let runs = run(target, limits);
    assert!(runs > 0, "{name}: no input was tried in {:?}", limits.time);
    println!("{name}: {runs} inputs");
}

#[test]
fn decode_chunk() {
    fuzz("decode_chunk");
}

#[test]
fn read_store() {
    fuzz("read_store");
}

#[test]
fn read_csv() {
    fuzz("read_csv");
}

#[test]
fn read_json() {
    fuzz("read_json");
}

#[test]
fn read_parquet() {
    fuzz("read_parquet");
}

#[test]
fn read_ipc() {
    fuzz("read_ipc");
}

#[test]
fn read_packed() {
    fuzz("read_packed");
}

#[test]
fn read_phrases() {
    fuzz("read_phrases");
}

#[test]
fn run_sql() {
    fuzz("run_sql");
}

#[test]
fn every_target_has_a_test_and_a_fuzzer() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = std::fs::read_to_string(here.join("tests/short.rs")).unwrap();
    let manifest = std::fs::read_to_string(here.join("libfuzzer/Cargo.toml")).unwrap();
    for target in TARGETS {
        assert!(
            tests.contains(&format!("fn {}()", target.name)),
            "{}",
            target.name
        );
        assert!(
            manifest.contains(&format!("name = \"{}\"", target.name)),
            "{}",
            target.name
        );
    }
}

#[test]
fn mutations_differ_and_repeat() {
    let seeds = vec![b"0123456789".repeat(20), Vec::new()];
    let make = |round| {
        let mut input = Vec::new();
        mutate(&seeds, &mut Random::new(round), &mut input);
        input
    };
    let distinct: std::collections::HashSet<Vec<u8>> = (0..1_000).map(make).collect();
    assert!(distinct.len() > 300, "{} of 1000 differ", distinct.len());
    assert!((0..1_000).all(|round| make(round) == make(round)));
}
