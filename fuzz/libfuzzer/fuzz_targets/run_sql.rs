//! `run_sql` of `tersecades_fuzz::sql` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    tersecades_fuzz::let_sources_catch();
    tersecades_fuzz::sql::run(input);
});
