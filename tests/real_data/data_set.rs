//! The data sets: where they lie, and how they are read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use tersecades_engine::source::{CsvOptions, SourceOptions, open};

use crate::skip;

const DAY: Duration = Duration::from_secs(86_400);

/// A folder of files that make one stream.
pub(crate) struct DataSet {
    pub(crate) name: &'static str,
    /// Files in the order of the stream.
    pub(crate) files: &'static [&'static str],
    /// Columns whose type is given; the others are inferred.
    pub(crate) types: &'static [(&'static str, DataType)],
    /// Long enough that no row is late.
    pub(crate) lateness: Duration,
    /// The same rows in DuckDB; `$DATA` is the folder of the set, `5000000` the limit.
    pub(crate) table_sql: &'static str,
}

pub(crate) static RIPE_ATLAS: DataSet = DataSet {
    name: "ripe_atlas_rtt",
    files: &["rtt_by_time.csv.gz"],
    types: &[],
    lateness: Duration::ZERO,
    table_sql: "SELECT * FROM read_csv('$DATA/rtt_by_time.csv.gz', header = true,
        columns = {'probe_id': 'BIGINT', 'epoch': 'TIMESTAMP', 'rtt': 'DOUBLE', 'cp': 'BIGINT'})",
};

/// Five hundred time slices of 99 x 99 pairs.
pub(crate) static SEATTLE: DataSet = DataSet {
    name: "netlatency_seattle",
    files: &["seattle_slices_001_500.parquet"],
    types: &[],
    lateness: Duration::ZERO,
    table_sql: "SELECT * FROM read_parquet('$DATA/seattle_slices_001_500.parquet')",
};

pub(crate) static AZURE: DataSet = DataSet {
    name: "azure_vm_noise",
    files: &["measurements_by_time.parquet"],
    types: &[],
    lateness: Duration::ZERO,
    table_sql: "SELECT * FROM read_parquet('$DATA/measurements_by_time.parquet')",
};

/// Months come in the order 1, 10, 11, 12, 2, ….
pub(crate) static FLIGHTS: DataSet = DataSet {
    name: "nyc_flights_2013",
    files: &["flights.csv.gz"],
    types: &[],
    lateness: DAY.saturating_mul(400),
    table_sql: "SELECT * FROM read_csv('$DATA/flights.csv.gz', header = true, nullstr = 'NA',
        sample_size = -1, types = {'time_hour': 'TIMESTAMP'})",
};

/// Six stations, one file after the other, each over the same four years.
pub(crate) static BEIJING: DataSet = DataSet {
    name: "beijing_air_quality",
    files: &[
        "PRSA_Data_Aotizhongxin_20130301-20170228.csv.gz",
        "PRSA_Data_Dingling_20130301-20170228.csv.gz",
        "PRSA_Data_Guanyuan_20130301-20170228.csv.gz",
        "PRSA_Data_Huairou_20130301-20170228.csv.gz",
        "PRSA_Data_Shunyi_20130301-20170228.csv.gz",
        "PRSA_Data_Wanliu_20130301-20170228.csv.gz",
    ],
    types: &[
        ("PM2.5", DataType::Float64),
        ("PM10", DataType::Float64),
        ("SO2", DataType::Float64),
        ("NO2", DataType::Float64),
        ("CO", DataType::Float64),
        ("O3", DataType::Float64),
        ("TEMP", DataType::Float64),
        ("PRES", DataType::Float64),
        ("DEWP", DataType::Float64),
        ("RAIN", DataType::Float64),
        ("WSPM", DataType::Float64),
    ],
    lateness: DAY.saturating_mul(5 * 366),
    table_sql: "SELECT * REPLACE (try_cast(\"SO2\" AS DOUBLE) AS \"SO2\")
        FROM read_csv('$DATA/PRSA_Data_*.csv.gz', header = true, nullstr = ['NA', ' ', ''],
        sample_size = -1)",
};

/// One user after the other, each in order.
pub(crate) static GEOLIFE: DataSet = DataSet {
    name: "geolife",
    files: &["points.parquet"],
    types: &[],
    lateness: DAY.saturating_mul(5 * 366),
    table_sql: "SELECT * FROM read_parquet('$DATA/points.parquet')",
};

/// Three hours of events as JSON lines, an hour a file; keys are absent where they do not apply.
pub(crate) static GITHUB: DataSet = DataSet {
    name: "github_events",
    files: &[
        "2015-02-22-21.jsonl.gz",
        "2015-02-22-22.jsonl.gz",
        "2015-02-22-23.jsonl.gz",
    ],
    types: &[],
    lateness: Duration::from_secs(60),
    table_sql: "SELECT * FROM read_json('$DATA/*.jsonl.gz', columns = {'id': 'VARCHAR',
        'dt': 'TIMESTAMP', 'repo': 'VARCHAR', 'type': 'VARCHAR', 'actor': 'VARCHAR',
        'commits': 'BIGINT', 'action': 'VARCHAR', 'age': 'VARCHAR'})",
};

/// A set in memory, as the sources handed it out.
pub(crate) struct Loaded {
    pub(crate) folder: PathBuf,
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

static LOADED: LazyLock<Mutex<HashMap<&'static str, Arc<Loaded>>>> = LazyLock::new(Mutex::default);

/// The folder of all sets.
pub(crate) fn data_folder() -> PathBuf {
    std::env::var_os("TERSECADES_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../data"),
        PathBuf::from,
    )
}

impl DataSet {
    /// The folder of the set; `None`, said on the terminal, when it is not there.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let folder = data_folder().join(self.name);
        if !folder.is_dir() {
            skip(&format!(
                "no data set {} (TERSECADES_DATA names the folder)",
                folder.display()
            ));
            return None;
        }
        Some(folder)
    }

    /// How its files are read.
    pub(crate) fn options(&self) -> SourceOptions {
        let types = self
            .types
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), kind.clone()));
        let csv = CsvOptions {
            types: types.collect(),
            ..CsvOptions::default()
        };
        SourceOptions {
            csv,
            ..SourceOptions::default()
        }
    }

    /// The rows, read once for all tests.
    pub(crate) fn load(&self) -> Option<Arc<Loaded>> {
        let folder = self.folder()?;
        let mut loaded = LOADED.lock().unwrap();
        let set = loaded
            .entry(self.name)
            .or_insert_with(|| Arc::new(self.read(folder)));
        Some(Arc::clone(set))
    }

    fn read(&self, folder: PathBuf) -> Loaded {
        let (mut batches, mut schema) = (Vec::new(), None);
        for file in self.files {
            let mut source = open(&folder.join(file), &self.options()).unwrap();
            let known = schema.get_or_insert_with(|| source.schema());
            assert_eq!(
                *known,
                source.schema(),
                "{file} has other columns than the first file"
            );
            batches.extend(std::iter::from_fn(|| source.next().unwrap()));
            assert_eq!(source.rejected().count_rows, 0);
        }
        Loaded {
            folder,
            schema: schema.unwrap(),
            batches,
        }
    }
}

impl Loaded {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The same rows in batches of at most `batch_rows` rows, at most `rows_limit` in all.
    pub(crate) fn cut(&self, batch_rows: usize, rows_limit: usize) -> Vec<RecordBatch> {
        let (mut pieces, mut left) = (Vec::new(), rows_limit);
        for batch in &self.batches {
            let rows = batch.num_rows().min(left);
            left -= rows;
            let starts = (0..rows).step_by(batch_rows);
            pieces.extend(starts.map(|start| batch.slice(start, batch_rows.min(rows - start))));
        }
        pieces
    }
}
