//! `read_csv` of `tersecades_fuzz::targets` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tersecades_fuzz::targets::read_csv(input));
