//! Every registered codec, and cascades of them, against the conformance suite.

use tersecades_columnar::registry::{self, CODECS};
use tersecades_testkit::suite::{check_codec, check_lossy_codec, check_scheme};

#[test]
fn every_codec_conforms() {
    std::thread::scope(|scope| {
        for codec in registry::exact() {
            scope.spawn(move || check_codec(codec));
        }
    });
}

#[test]
fn every_lossy_codec_conforms() {
    std::thread::scope(|scope| {
        for codec in CODECS.iter().filter(|codec| codec.is_lossy()) {
            for parameter in [1e-9, 0.01, 0.7, 1e6] {
                scope.spawn(move || check_lossy_codec(*codec, parameter, parameter));
            }
        }
    });
}

#[test]
fn cascades_conform() {
    let schemes = [
        "delta(bit_pack)",
        "delta(run_length)",
        "delta(varint)",
        "run_length(varint)",
        "delta(run_length(varint))",
        "run_length(bit_pack)",
        "delta(delta(base_delta))",
    ];
    std::thread::scope(|scope| {
        for scheme in schemes {
            scope.spawn(|| check_scheme(scheme));
        }
    });
}
