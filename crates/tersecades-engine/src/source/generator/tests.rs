//! What holds of every generator: its rows depend on seed and options alone.

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;

use super::{GENERATORS, Generator, GeneratorKind, find_generator};

fn rows(generator: &mut dyn Generator, sizes: &[usize]) -> RecordBatch {
    let mut batches = Vec::new();
    for size in sizes.iter().cycle() {
        match generator.next_batch(*size).unwrap() {
            Some(batch) => batches.push(batch),
            None => break,
        }
    }
    assert!(
        batches
            .iter()
            .all(|batch| batch.schema() == generator.schema())
    );
    concat_batches(&generator.schema(), &batches).unwrap()
}

fn start(kind: &GeneratorKind, rows: u64, seed: u64) -> Box<dyn Generator> {
    kind.start(rows, seed, &[]).unwrap()
}

fn truth(generator: &dyn Generator) -> Vec<u8> {
    let mut text = Vec::new();
    generator.write_truth(&mut text).unwrap();
    text
}

#[test]
fn batch_size_does_not_change_rows_and_the_seed_does() {
    for kind in GENERATORS {
        let mut whole = start(kind, 30_001, 7);
        assert_eq!((whole.rows(), whole.position()), (30_001, 0));
        let all = rows(&mut *whole, &[usize::MAX]);
        assert_eq!(all.num_rows(), 30_001, "{}", kind.name);
        assert_eq!(whole.position(), 30_001);
        assert!(
            all == rows(&mut *start(kind, 30_001, 7), &[1, 1_023, 7, 4_096]),
            "{}",
            kind.name
        );
        assert!(
            all != rows(&mut *start(kind, 30_001, 8), &[4_096]),
            "{}",
            kind.name
        );
    }
}

#[test]
fn a_shorter_stream_is_a_prefix_and_seek_resumes() {
    for kind in GENERATORS {
        let long = rows(&mut *start(kind, 9_000, 7), &[1_000]);
        let short = rows(&mut *start(kind, 5_000, 7), &[1_000]);
        assert!(long.slice(0, 5_000) == short, "{}", kind.name);
        let mut resumed = start(kind, 9_000, 7);
        resumed.seek(5_000);
        assert!(
            long.slice(5_000, 4_000) == rows(&mut *resumed, &[333]),
            "{}",
            kind.name
        );
        resumed.seek(u64::MAX);
        assert!(resumed.next_batch(1).unwrap().is_none());
    }
}

#[test]
fn truth_depends_on_the_seed_alone() {
    for kind in GENERATORS {
        let rows = 10_000_000;
        let told = truth(&*start(kind, rows, 7));
        assert!(!told.is_empty(), "{}", kind.name);
        assert!(told == truth(&*start(kind, rows, 7)), "{}", kind.name);
        assert!(told != truth(&*start(kind, rows, 8)), "{}", kind.name);
        assert!(truth(&*start(kind, 0, 7)).is_empty(), "{}", kind.name);
    }
}

#[test]
fn wrong_names_and_values_are_refused_with_a_hint() {
    let error = find_generator("pingmsh").err().unwrap();
    assert!(
        error
            .hint_text()
            .unwrap()
            .contains("pingmesh, counters, positions, weather, nexmark, yahoo")
    );
    for kind in GENERATORS {
        let refused = |name: &str, text: &str| {
            let given = [(name.to_owned(), text.to_owned())];
            let error = kind.start(1, 1, &given).err();
            let error = error.unwrap_or_else(|| panic!("{} takes {name}={text}", kind.name));
            assert!(error.hint_text().is_some(), "{error}");
        };
        refused("nonsense", "1");
        for parameter in kind.parameters {
            refused(parameter.name, "x");
            assert_eq!(
                parameter.check(parameter.default),
                Ok(()),
                "{}",
                parameter.name
            );
            assert!(parameter.check("x").is_err());
        }
        refused("start_ms", "9223372036854775807");
        assert!(kind.start(u64::MAX, 1, &[]).is_err());
    }
    let counters = find_generator("counters").unwrap();
    for (name, text) in [
        ("vms", "0"),
        ("datacenters", "17"),
        ("clusters", "1"),
        ("interval", "0s"),
    ] {
        let given = [(name.to_owned(), text.to_owned())];
        assert!(counters.start(1, 1, &given).is_err(), "{name}");
    }
}
