//! Every registered codec, and cascades of them, against the conformance suite.

use tersecades_columnar::registry::CODECS;
use tersecades_testkit::suite::{check_codec, check_scheme};

#[test]
fn every_codec_conforms() {
    std::thread::scope(|scope| {
        for codec in CODECS {
            scope.spawn(|| check_codec(*codec));
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
