"""DataFusion: record batches in memory, clusters as strings, or the Parquet file.

Its percentile_cont cuts the weight between two values to six digits, so its q3 differs from the
exact answer and is left out.
"""

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq

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
    batches = pq.read_table(data.parquet).to_batches(max_chunksize=BATCH_ROWS)
    part = -(-len(batches) // options.threads)
    parts = [batches[at * part : (at + 1) * part] for at in range(options.threads)]
    context.register_record_batches("probes", parts)


def run(text):
    batches = context.sql(text).collect()
    return pa.Table.from_batches(batches, schema=batches[0].schema)


texts = sql_queries.texts(lambda fraction: f"percentile_cont(rtt_us::double, {fraction})")
queries = {name: lambda text=text: run(text) for name, text in texts.items() if name != "q3"}
pingmesh.measure("datafusion", data, queries, options)
