//! `read_store` of `tersecades_fuzz::target` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    tersecades_fuzz::let_sources_catch();
    tersecades_fuzz::target::read_store(input);
});
