//! Every registered codec, and cascades of them, against the conformance suite.

use tersecades_columnar::codec::Codec;
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
fn codes_of_texts_conform_under_every_codec() {
    std::thread::scope(|scope| {
        let of_numbers = |codec: &&&dyn Codec| {
            let others = ["dictionary", "symbols", "decimal", "xor"];
            !others.contains(&codec.name())
        };
        for codec in registry::exact()
            .collect::<Vec<_>>()
            .iter()
            .filter(of_numbers)
        {
            let scheme = format!("dictionary({})", codec.name());
            scope.spawn(move || check_scheme(&scheme));
        }
        scope.spawn(|| check_scheme("dictionary(linear(varint))"));
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
        "gcd(linear(varint))",
        "gcd(patched(bit_pack))",
        "linear(patched(varint))",
    ];
    std::thread::scope(|scope| {
        for scheme in schemes {
            scope.spawn(|| check_scheme(scheme));
        }
    });
}
