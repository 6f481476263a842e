"""DuckDB on the streaming classics: bounded queries over the Parquet files."""

import time

import duckdb

import stream_queries as queries
from stream_runner import arguments, measure

options = arguments()
connection = duckdb.connect()
connection.execute(f"SET threads = {options.threads}")
connection.execute("SET TimeZone = 'UTC'")
for name, table in [("nexmark", "nexmark"), ("yahoo", "yahoo"), ("campaigns", "campaigns")]:
    path = options.data / f"{table}.parquet"
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
for view in queries.VIEWS:
    connection.execute(f"CREATE VIEW {view[0]} AS {queries.view(*view)}")
connection.execute('CREATE VIEW events AS SELECT *, "timestamp" AS ts FROM yahoo')


def run(query, target):
    """Seconds of one run; results go to the file `target`, if there is one."""
    text = queries.DUCKDB[query]
    start = time.perf_counter()
    if target:
        connection.execute(f"COPY ({text}) TO '{target}' (FORMAT parquet)")
    else:
        connection.sql(text).to_arrow_table()
    return time.perf_counter() - start


measure("duckdb", run, options)
