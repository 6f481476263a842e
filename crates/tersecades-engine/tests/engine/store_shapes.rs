//! Stores of every shape of schema: what is written comes back, through runs of every level.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_columnar::types::Value;
use tersecades_store::{CodecPolicy, Layout, Scan, Store, StoreOptions, StoreSchema};
use tersecades_testkit::data::{SHAPES, column, from_batch, to_batches, types};
use tersecades_testkit::random::Random;

const SEEDS: u64 = 250;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    /// Neither keys nor a time.
    Arrival,
    Key,
    Primary,
    Time,
    KeyAndTime,
}

const ORDERS: [Order; 5] = [
    Order::Arrival,
    Order::Key,
    Order::Primary,
    Order::Time,
    Order::KeyAndTime,
];

type Row = Vec<Value>;

struct Case {
    schema: SchemaRef,
    order: Order,
    rows: Vec<Row>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let types = types();
        let order = *random.pick(&ORDERS);
        let time = DataType::Timestamp(arrow_schema::TimeUnit::Millisecond, None);
        let columns = [
            ("k", random.pick(&types).clone()),
            ("t", time),
            ("a", random.pick(&types).clone()),
            ("b", random.pick(&types).clone()),
        ];
        let most = *random.pick(&[300, 300, 300, 3_000]);
        let rows = 1 + random.below(most);
        let values: Vec<Vec<Value>> = columns
            .iter()
            .map(|(_, data_type)| column(data_type, *random.pick(SHAPES), rows, random))
            .collect();
        let nullable = |name: &str| order != Order::Primary || name != "k";
        let fields = columns.map(|(name, it)| Field::new(name, it, nullable(name)));
        let row = |row: usize| -> Row { values.iter().map(|it| it[row].clone()).collect() };
        let fits = |row: &Row| nullable("k") || row[0] != Value::Null;
        Case {
            schema: Arc::new(Schema::new(fields.to_vec())),
            order,
            rows: (0..rows).map(row).filter(fits).collect(),
        }
    }

    fn store_schema(&self) -> StoreSchema {
        let schema = StoreSchema::new(&self.schema).unwrap();
        match self.order {
            Order::Arrival => schema,
            Order::Key => schema.key(&["k"]).unwrap(),
            Order::Primary => schema.primary_key(&["k"]).unwrap(),
            Order::Time => schema.time("t").unwrap(),
            Order::KeyAndTime => schema.key(&["k"]).unwrap().time("t").unwrap(),
        }
    }

    /// The rows that should be there, each as text, in some order.
    fn expected(&self) -> Vec<String> {
        let mut found: Vec<String> = match self.order {
            Order::Primary => {
                let mut newest = BTreeMap::new();
                for row in &self.rows {
                    newest.insert(one_form(&row[0]), format!("{row:?}"));
                }
                newest.into_values().collect()
            }
            _ => self.rows.iter().map(|row| format!("{row:?}")).collect(),
        };
        found.sort();
        found
    }
}

/// A key as text, the same for floats that are equal.
fn one_form(key: &Value) -> String {
    match key {
        Value::Float(float) => format!("{:?}", float + 0.0),
        other => format!("{other:?}"),
    }
}

fn options(random: &mut Random) -> StoreOptions {
    let codecs: Vec<CodecPolicy> = CodecPolicy::all().collect();
    StoreOptions {
        layout: *random.pick(&[Layout::Tiered, Layout::Leveled]),
        buffer_rows: 10 + random.below(400),
        level_ratio: 2 + random.below(3),
        chunk_rows: 8 + random.below(2_000),
        series_rows: 1 + random.below(200),
        bloom_bits: *random.pick(&[0, 10]),
        codecs: (0..3).map(|_| *random.pick(&codecs)).collect(),
        ..StoreOptions::default()
    }
}

fn found(store: &Store) -> Vec<String> {
    let scanned = store.snapshot().scan(&Scan::default()).unwrap();
    let batches = scanned.map(|found| found.unwrap().to_arrow().unwrap());
    let rows = batches.flat_map(|batch: RecordBatch| from_batch(&batch));
    let mut rows: Vec<String> = rows.map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

#[test]
fn what_is_written_comes_back_whatever_the_columns() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let case = Case::new(&mut random);
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path(), case.store_schema(), options(&mut random));
        let store = store.unwrap();
        let mut writer = store.writer().unwrap();
        for batch in to_batches(&case.schema, &case.rows, 1 + random.below(200)) {
            let appended = writer.append(&batch);
            appended.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        drop(writer);
        let expected = case.expected();
        let check = |store: &Store, when: &str| {
            let found = found(store);
            assert_eq!(found, expected, "seed {seed}, {:?}, {when}", case.order);
        };
        check(&store, "as written");
        let flushed = store.flush();
        flushed.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        check(&store, "flushed");
        let compacted = store.compact();
        compacted.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        check(&store, "compacted");
        store.close().unwrap();
        let store = Store::open(folder.path()).unwrap();
        check(&store, "opened again");
        let verified = store.verify().unwrap();
        assert!(verified.damage.is_empty(), "seed {seed}: {verified:?}");
    }
}
