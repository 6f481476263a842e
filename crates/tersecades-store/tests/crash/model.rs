//! Random operations against a map: with a primary key, and where every row counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::types::Value;
use tersecades_store::fs::FileSystem;
use tersecades_store::{CodecPolicy, Layout, Scan, Snapshot, Store, StoreOptions, StoreSchema};

use crate::setting;
use crate::simulated::{Loss, Random, SimulatedFileSystem};
use crate::workload::root;

const KEYS: usize = 500;

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
            buffer_rows: 60 + random.below(200),
            buffer_bytes: 4_000,
            level_ratio: 2 + random.below(3),
            chunk_rows: 8 + random.below(64),
            series_rows: 1 + random.below(32),
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

    /// One random operation; how many rows it wrote or read.
    fn step(&mut self) -> u64 {
        let what = self.random.below(100);
        match what {
            0..60 => self.append(),
            60..70 if self.is_primary => self.delete(),
            60..94 => self.read(),
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

    fn append(&mut self) {
        let count = 1 + self.random.below(20);
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
    }

    fn delete(&mut self) {
        let keys: Vec<i64> = (0..1 + self.random.below(5)).map(|_| self.key()).collect();
        let array: ArrayRef = Arc::new(Int64Array::from(keys.clone()));
        let rows = RecordBatch::try_from_iter([("k", array)]).unwrap();
        self.store().writer().unwrap().delete(&rows).unwrap();
        for key in keys {
            self.model.remove(&key);
        }
    }

    fn read(&mut self) {
        let low = self.key();
        let high = match self.random.below(3) {
            0 => low,
            1 => low + 20,
            _ => 1_000,
        };
        let expected = within(&self.model, low, high);
        let snapshot = self.store().snapshot();
        assert_eq!(found(&snapshot, low, high), expected);
        let mut reader = snapshot.point_reader(&["v"]).unwrap().keeping(2_000);
        for key in [low, low + 1] {
            let rows = reader.find(&[key.into()]).unwrap();
            let values = self.model.get(&key).into_iter().flatten();
            let expected: Vec<Vec<Value>> = values.map(|value| vec![(*value).into()]).collect();
            assert_eq!(rows, expected, "key {key}");
        }
    }

    fn read_kept(&self) {
        if let Some((snapshot, model)) = &self.kept {
            assert_eq!(found(snapshot, -1_000, 1_000), *model, "a snapshot changed");
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

#[test]
fn random_operations_give_what_a_map_gives() {
    let operations = setting("TERSECADES_MODEL_OPS", 1_500);
    let seeds = 8;
    for seed in 0..seeds {
        for is_primary in [false, true] {
            let mut run = Run::new(seed, is_primary);
            let mut done = 0;
            while done < operations / seeds / 2 {
                done += run.step();
            }
            let expected = within(&run.model, -1_000, 1_000);
            assert_eq!(
                found(&run.store().snapshot(), -1_000, 1_000),
                expected,
                "seed {seed}"
            );
        }
    }
}
