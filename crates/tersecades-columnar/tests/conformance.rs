//! Every registered codec against the conformance suite.

use tersecades_columnar::registry::CODECS;
use tersecades_testkit::suite::check_codec;

#[test]
fn every_codec_conforms() {
    std::thread::scope(|scope| {
        for codec in CODECS {
            scope.spawn(|| check_codec(*codec));
        }
    });
}
