"""DataFusion: record batches in memory, or the Parquet file.

Clusters in memory are views of strings, on which it is fastest: q1_hop runs 1.1 times as fast as on
plain strings and 1.3 times as on a dictionary, all other queries alike.

Its percentile_cont cuts the weight between two values to six digits, so its q3 differs from the
exact answer and is left out.
"""

import datafusion
import pyarrow as pa

import pingmesh
import sql_queries

BATCH_ROWS = 8_192

options = pingmesh.arguments()
data = pingmesh.Data(options.data, options.tag)
config = datafusion.SessionConfig().with_target_partitions(options.threads)
context = datafusion.SessionContext(config, datafusion.RuntimeEnvBuilder())
context.register_record_batches("tor", [data.read(data.switches).to_batches()])
if options.input == "parquet":
    context.register_parquet("probes", str(data.parquet))
else:
    table = data.read(data.stream)
    for name in ("src_cluster", "dst_cluster"):
        at = table.schema.get_field_index(name)
        views = table.column(at).cast(pa.string()).cast(pa.string_view())
        table = table.set_column(at, name, views)
    batches = table.to_batches(max_chunksize=BATCH_ROWS)
    part = -(-len(batches) // options.threads)
    parts = [batches[at * part : (at + 1) * part] for at in range(options.threads)]
    context.register_record_batches("probes", parts)


def run(text):
    batches = context.sql(text).collect()
    return pa.Table.from_batches(batches, schema=batches[0].schema)


texts = sql_queries.texts(lambda fraction: f"percentile_cont(rtt_us::double, {fraction})")
queries = {name: lambda text=text: run(text) for name, text in texts.items() if name != "q3"}
pingmesh.measure("datafusion", data, queries, options)
