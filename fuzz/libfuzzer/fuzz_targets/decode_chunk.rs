//! `decode_chunk` of `tersecades_fuzz::targets` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tersecades_fuzz::targets::decode_chunk(input));
