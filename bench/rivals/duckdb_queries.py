"""DuckDB: a table in memory with clusters as ENUM, or the Parquet file."""

import duckdb

import pingmesh
import sql_queries

options = pingmesh.arguments()
data = pingmesh.Data(options.data, options.tag)
database = duckdb.connect(":memory:")
database.execute(f"SET threads={options.threads}")
database.execute(f"CREATE TABLE tor AS FROM '{data.folder}/tor.parquet'")
if options.input == "parquet":
    database.execute(f"CREATE VIEW probes AS FROM '{data.parquet}'")
else:
    names = ", ".join(f"'{name}'" for name in data.clusters)
    database.execute(f"CREATE TYPE cluster AS ENUM ({names})")
    database.execute(
        "CREATE TABLE probes AS SELECT * REPLACE (src_cluster::cluster AS src_cluster, "
        f"dst_cluster::cluster AS dst_cluster) FROM '{data.parquet}'"
    )
texts = sql_queries.texts(
    lambda fraction: f"quantile_cont(rtt_us, {fraction})", total="sum(rtt_us)::BIGINT"
)
queries = {
    name: lambda text=text: database.sql(text).to_arrow_table() for name, text in texts.items()
}
pingmesh.measure("duckdb", data, queries, options)
