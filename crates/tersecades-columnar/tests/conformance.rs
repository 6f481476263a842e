//! Every registered codec against the conformance suite.

use tersecades_columnar::registry::{self, CODECS};
use tersecades_testkit::suite::{check_codec, check_lossy_codec};

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
