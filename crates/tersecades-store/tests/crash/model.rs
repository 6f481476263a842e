//! Random operations against a map: with a primary key, and where every row counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::types::Value;
use tersecades_store::fs::FileSystem;
use tersecades_store::{CodecPolicy, Layout, Scan, Snapshot, Store, StoreOptions, StoreSchema};

use crate::device::Random;
use crate::simulated::{Loss, SimulatedFileSystem};
use crate::workload::root;
use crate::{on_all_processors, ran, setting};

const KEYS: usize = 2_000;
/// Keys of one operation that reads or deletes.
const READ_KEYS: u64 = 200;

/// Operations of the shortest life of a store.
const LIFE: u64 = 4_000;

/// What the store should hold: for each key its values, oldest first.
type Model = BTreeMap<i64, Vec<i64>>;

fn batch(rows: &[(i64, i64)]) -> RecordBatch {
    let column = |part: fn(&(i64, i64)) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(part)))
    };
    RecordBatch::try_from_iter([("k", column(|row| row.0)), ("v", column(|row| row.1))]).unwrap()
}

fn found(snapshot: &Snapshot, low: i64, high: i64) -> Model {
    let scan = Scan::default().between("k", low, high).columns(["v", "k"]);
    let mut model = Model::new();
    for found in snapshot.scan(&scan).unwrap() {
        let rows = found.unwrap().to_arrow().unwrap();
        let values = rows.column(0).as_primitive::<Int64Type>().values();
        let keys = rows.column(1).as_primitive::<Int64Type>().values();
        for (key, value) in keys.iter().zip(values) {
            assert!((low..=high).contains(key), "a row outside the range");
            model.entry(*key).or_default().push(*value);
        }
    }
    model
}

fn within(model: &Model, low: i64, high: i64) -> Model {
    model
        .range(low..=high)
        .map(|(key, values)| (*key, values.clone()))
        .collect()
}

struct Run {
    random: Random,
    files: SimulatedFileSystem,
    store: Option<Store>,
    model: Model,
    is_primary: bool,
    kept: Option<(Snapshot, Model)>,
}

impl Run {
    fn new(seed: u64, is_primary: bool) -> Self {
        let fields = Schema::new(vec![
            Field::new("k", DataType::Int64, false),
            Field::new("v", DataType::Int64, true),
        ]);
        let schema = StoreSchema::new(&fields).unwrap();
        let schema = match is_primary {
            true => schema.primary_key(&["k"]),
            false => schema.key(&["k"]),
        };
        let mut random = Random(seed);
        let codecs: Vec<CodecPolicy> = CodecPolicy::all().collect();
        let options = StoreOptions {
            layout: [Layout::Tiered, Layout::Leveled][random.below(2)],
            buffer_rows: 500 + random.below(4_000),
            buffer_bytes: 40_000,
            level_ratio: 2 + random.below(3),
            chunk_rows: 8 + random.below(400),
            series_rows: 1 + random.below(200),
            codecs: (0..3).map(|_| codecs[random.below(codecs.len())]).collect(),
            ..StoreOptions::default()
        };
        let files = SimulatedFileSystem::default();
        let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
        let store = Store::create_in(shared, root(), schema.unwrap(), options).unwrap();
        Run {
            random,
            files,
            store: Some(store),
            model: Model::new(),
            is_primary,
            kept: None,
        }
    }

    fn key(&mut self) -> i64 {
        self.random.below(KEYS) as i64 - 100
    }

    /// A random step; of how many operations, each on one row or on the whole store.
    fn step(&mut self) -> u64 {
        let what = self.random.below(100);
        match what {
            0..50 => return self.append(),
            50..56 if self.is_primary => return self.delete(),
            50..84 => return self.read_keys(),
            84..94 => self.read(),
            94 => self.store().flush().unwrap(),
            95 if self.random.below(4) == 0 => self.store().compact().unwrap(),
            96 => self.reopen(),
            97 => self.kept = Some((self.store().snapshot(), self.model.clone())),
            98 => self.read_kept(),
            _ => {}
        }
        1
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn append(&mut self) -> u64 {
        let count = 1 + self.random.below(300);
        let rows: Vec<(i64, i64)> = (0..count)
            .map(|_| {
                (
                    self.key(),
                    self.random.next() as i64 >> (self.random.below(60)),
                )
            })
            .collect();
        self.store()
            .writer()
            .unwrap()
            .append(&batch(&rows))
            .unwrap();
        for (key, value) in rows {
            let values = self.model.entry(key).or_default();
            if self.is_primary {
                values.clear();
            }
            values.push(value);
        }
        count as u64
    }

    fn delete(&mut self) -> u64 {
        let keys: Vec<i64> = (0..1 + self.random.below(60)).map(|_| self.key()).collect();
        let array: ArrayRef = Arc::new(Int64Array::from(keys.clone()));
        let rows = RecordBatch::try_from_iter([("k", array)]).unwrap();
        self.store().writer().unwrap().delete(&rows).unwrap();
        for key in &keys {
            self.model.remove(key);
        }
        keys.len() as u64
    }

    fn read_keys(&mut self) -> u64 {
        let reader = self.store().snapshot().point_reader(&["v"]).unwrap();
        let mut reader = reader.keeping(20_000);
        for _ in 0..READ_KEYS {
            let key = self.key();
            let rows = reader.find(&[key.into()]).unwrap();
            let values = self.model.get(&key).into_iter().flatten();
            let expected: Vec<Vec<Value>> = values.map(|value| vec![(*value).into()]).collect();
            assert_eq!(rows, expected, "key {key}");
        }
        READ_KEYS
    }

    fn read(&mut self) {
        let low = self.key();
        let high = match self.random.below(3) {
            0 => low,
            1 => low + 20,
            _ => 3_000,
        };
        let expected = within(&self.model, low, high);
        let snapshot = self.store().snapshot();
        assert_eq!(found(&snapshot, low, high), expected);
    }

    fn read_kept(&self) {
        if let Some((snapshot, model)) = &self.kept {
            assert_eq!(found(snapshot, -1_000, 3_000), *model, "a snapshot changed");
        }
    }

    /// Closes the store, or lets the power go, and opens it again.
    fn reopen(&mut self) {
        self.kept = None;
        let store = self.store.take().unwrap();
        match self.random.below(3) {
            0 => store.close().unwrap(),
            1 => drop(store),
            _ => {
                drop(store);
                self.files = self.files.after_crash(Loss::Drop, 0);
            }
        }
        let shared: Arc<dyn FileSystem> = Arc::new(self.files.clone());
        self.store = Some(Store::open_in(shared, root()).unwrap());
    }
}

/// The life of a store; how many operations it had.
fn live(seed: u64) -> u64 {
    let mut run = Run::new(seed, seed.is_multiple_of(2));
    // Some stores live longer than others.
    let until = LIFE * (1 + seed % 4);
    let mut done = 0;
    while done < until {
        done += run.step();
    }
    let found = found(&run.store().snapshot(), -1_000, 3_000);
    assert_eq!(found, within(&run.model, -1_000, 3_000), "seed {seed}");
    done
}

#[test]
fn random_operations_give_what_a_map_gives() {
    let operations = setting("TERSECADES_MODEL_OPS", 1_000_000);
    let (next, all) = (AtomicU64::new(0), AtomicU64::new(0));
    on_all_processors(|| {
        while all.load(Relaxed) < operations {
            all.fetch_add(live(next.fetch_add(1, Relaxed)), Relaxed);
        }
    });
    let all = all.into_inner();
    ran(&format!("{all} random operations beside a map"));
}
