"""chDB: a table in memory with clusters as LowCardinality, or the Parquet file."""

import pyarrow as pa
from chdb import session

import pingmesh
import sql_queries

options = pingmesh.arguments()
data = pingmesh.Data(options.data, options.tag)
database = session.Session()
COLUMNS = (
    "timestamp Int64, src_ip UInt32, src_cluster {text}, dst_ip UInt32, dst_cluster {text}, "
    "rtt_us UInt32, error_code Int32"
)


def run(text):
    return database.query(f"{text} SETTINGS max_threads={options.threads}", "Arrow")


def table(result):
    read = pa.ipc.open_file(pa.BufferReader(result.bytes())).read_all()
    binary = [pa.types.is_binary(column.type) for column in read.columns]
    columns = [c.cast(pa.string()) if b else c for c, b in zip(read.columns, binary)]
    return pa.table(columns, names=[str(index) for index in range(len(columns))])


database.query("CREATE DATABASE bench")
database.query("USE bench")
database.query("CREATE TABLE tor (ip UInt32, tor_id UInt32) ENGINE=Memory")
database.query(f"INSERT INTO tor SELECT * FROM file('{data.folder}/tor.parquet')")
if options.input == "parquet":
    stream = f"file('{data.parquet}', Parquet, '{COLUMNS.format(text='String')}')"
else:
    stream = "bench.probes"
    columns = COLUMNS.format(text="LowCardinality(String)")
    database.query(f"CREATE TABLE probes ({columns}) ENGINE=Memory")
    database.query(f"INSERT INTO probes SELECT * FROM file('{data.parquet}')")
steps, slide = len(sql_queries.BACKWARD), pingmesh.WINDOW_MS
texts = sql_queries.texts(
    lambda fraction: f"quantileExactInclusive({fraction})(rtt_us)",
    stream=stream,
    switches="bench.tor",
    count="toInt64(count())",
    total="toInt64(sum(rtt_us))",
    stddev="stddevPop(rtt_us)",
    offsets=f"(SELECT toInt64(number * {slide}) AS back FROM numbers({steps})) AS o",
)
queries = {name: lambda text=text: run(text) for name, text in texts.items()}
pingmesh.measure("chdb", data, queries, options, table)
database.close()
