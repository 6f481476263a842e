//! `read_packed` of `tersecades_fuzz::packed` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    tersecades_fuzz::let_sources_catch();
    tersecades_fuzz::packed::read_packed(input);
});
