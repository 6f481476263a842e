//! The kinds of data of the paper's section 5, generated and recorded.

use std::path::Path;

use arrow_schema::DataType;
use tersecades_columnar::Result;
use tersecades_engine::expression::col;
use tersecades_engine::operator::row::Extent;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::source::SourceOptions;
use tersecades_engine::source::generated::GeneratorTable;
use tersecades_engine::stream::Stream;

/// Rows of one kind, and how they are encoded with a loss.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) stream: Stream,
    /// Lossy columns and their schemes.
    pub(super) schemes: Vec<(String, String)>,
    /// The columns of the total.
    pub(super) columns: Vec<String>,
    /// What the paper has for them.
    pub(super) paper: &'static str,
}

/// The counters of a machine: name, and the bound that a dashboard does not show.
const COUNTERS: [(&str, &str, f64); 4] = [
    ("counters_cpu", "cpu_percent", 0.05),
    ("counters_memory", "memory_percent", 0.05),
    ("counters_network", "network_in_bytes", 4_096.0),
    ("counters_disk", "disk_write_ops", 0.5),
];

/// Counters that a folder has the recordings of: name, file, counters, what rows are ordered by,
/// and the bound that a dashboard does not show.
type Recorded = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    f64,
);

const RECORDED: [Recorded; 4] = [
    (
        "azure_vm_noise",
        "azure_vm_noise/measurements_by_time.parquet",
        &["value", "runtime"],
        &["test_name", "VM_id", "starttime"],
        0.05,
    ),
    (
        "bitbrains",
        "bitbrains_small/trace_by_time.parquet",
        &["cpu_usage"],
        &["id", "timestamp"],
        0.5,
    ),
    (
        "planetlab",
        "planetlab_vm_cpu/cpu_5min_20110303_20110403.parquet",
        &["cpu_pct"],
        &["vm", "timestamp"],
        0.5,
    ),
    (
        "alibaba",
        "alibaba2018_machine_usage/*.csv",
        &[
            "cpu_util_percent",
            "mem_util_percent",
            "net_in",
            "net_out",
            "disk_io_percent",
        ],
        &[],
        0.05,
    ),
];

/// What the paper has for counters.
const PAPER_COUNTERS: &str = "2.5x to 6x";

/// Two ways to keep degrees within 0.000001 of what was recorded. The file has six decimals, half
/// of which would lie a rounding outside of the bound in steps of twice as much.
const GEOLIFE: [(&str, &str); 2] = [
    ("geolife", "zfp(0.000001)"),
    ("geolife_fixed", "fixed_point(0.0000019)"),
];

/// Every kind whose data is there; of generated ones `rows` rows.
pub(super) fn kinds(data: Option<&Path>, rows: u64) -> Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    for (name, counter, bound) in COUNTERS {
        kinds.push(counters(name, counter, bound, rows)?);
    }
    kinds.push(generated_positions(rows)?);
    let Some(data) = data else {
        return Ok(kinds);
    };
    for recorded in RECORDED {
        let path = data.join(recorded.1);
        if path.parent().is_some_and(Path::exists) {
            kinds.push(machines(&path, recorded)?);
        }
    }
    let geolife = data.join("geolife/points.parquet");
    if geolife.exists() {
        let stream = Stream::open(geolife, &SourceOptions::default())?;
        let degrees = ["latitude", "longitude"];
        for (name, scheme) in GEOLIFE {
            kinds.push(uniform(name, stream.clone(), &degrees, scheme, "4.5x"));
        }
    }
    for (name, file, bound) in [
        ("nyc_weather", "nyc_weather_2013/weather.csv.gz", 0.05),
        ("beijing_air", "beijing_air_quality/*.csv.gz", 0.05),
        ("neon_wind", "neon_sensor_values/Wind-Speed.csv.gz", 0.005),
        (
            "neon_infrared",
            "neon_sensor_values/IR-bio-temp.csv.gz",
            0.005,
        ),
    ] {
        let path = data.join(file);
        if path.parent().is_some_and(Path::exists) {
            kinds.push(recorded(name, &path, bound)?);
        }
    }
    Ok(kinds)
}

/// One counter, machine by machine in order of time.
fn counters(name: &'static str, counter: &str, bound: f64, rows: u64) -> Result<Kind> {
    let parameters = vec![("vms".to_owned(), "200".to_owned())];
    let table = GeneratorTable::new("counters", rows, 7, parameters)?;
    let by = ["vm_id", "timestamp"].map(|key| (col(key), SortOrder::ASCENDING));
    let stream = Stream::from_table(table)
        .filter(col("counter_name").eq(counter))
        .sort_in(Extent::Whole, by)
        .as_source()?;
    let values = ["average_value", "min_value", "max_value"];
    Ok(uniform(
        name,
        stream,
        &values,
        &format!("zfp({bound})"),
        PAPER_COUNTERS,
    ))
}

/// Recorded counters as floats, machine by machine in order of time; as they come where nothing
/// says what the machine is.
fn machines(path: &Path, (name, _, counters, order, bound): Recorded) -> Result<Kind> {
    let stream = Stream::open(path, &SourceOptions::default())?;
    let stream = match order.is_empty() {
        true => stream,
        false => {
            let by = order.iter().map(|&key| (col(key), SortOrder::ASCENDING));
            stream.sort_in(Extent::Whole, by).as_source()?
        }
    };
    let floats = counters
        .iter()
        .map(|&counter| (counter, col(counter).cast(DataType::Float64)));
    let stream = stream.project(floats).as_source()?;
    let scheme = format!("zfp({bound})");
    Ok(uniform(name, stream, counters, &scheme, PAPER_COUNTERS))
}

fn generated_positions(rows: u64) -> Result<Kind> {
    let table = GeneratorTable::new("positions", rows, 7, Vec::new())?;
    let by = ["user", "timestamp"].map(|key| (col(key), SortOrder::ASCENDING));
    let stream = Stream::from_table(table)
        .sort_in(Extent::Whole, by)
        .as_source()?;
    let degrees = ["latitude", "longitude"];
    Ok(uniform(
        "positions",
        stream,
        &degrees,
        "zfp(0.000001)",
        "4.5x",
    ))
}

/// A file of metrics with fixed digits, of which numbers are measured and floats may be lossy.
fn recorded(name: &'static str, path: &Path, bound: f64) -> Result<Kind> {
    let mut options = SourceOptions::default();
    options.csv.infer_rows = usize::MAX;
    options.csv.null_strings.push(" ".to_owned());
    if name.starts_with("neon") {
        options.csv.header = false;
    }
    let stream = Stream::open(path, &options)?;
    let schema = stream.schema()?;
    let named = |wanted: fn(&DataType) -> bool| -> Vec<String> {
        let fields = schema.fields().iter().filter(|it| wanted(it.data_type()));
        fields.map(|field| field.name().clone()).collect()
    };
    let scheme = format!("zfp({bound})");
    let floats = named(DataType::is_floating);
    Ok(Kind {
        name,
        stream,
        schemes: floats.into_iter().map(|it| (it, scheme.clone())).collect(),
        columns: named(DataType::is_numeric),
        paper: "3x to 4x",
    })
}

fn uniform(
    name: &'static str,
    stream: Stream,
    columns: &[&str],
    scheme: &str,
    paper: &'static str,
) -> Kind {
    let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
    let schemes = columns.iter().map(|name| (name.clone(), scheme.to_owned()));
    Kind {
        name,
        stream,
        schemes: schemes.collect(),
        columns,
        paper,
    }
}
