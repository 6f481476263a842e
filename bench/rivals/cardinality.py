"""Grouping by an integer of ten to ten million values: our engine, DuckDB and Polars by turns.

Our bench writes the rows that the others read. Each engine runs on one thread; ours answers in the
order of the keys, the others in any. Rates are medians; answers must have the same totals.
"""

import argparse
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import tempfile
import time

os.environ["POLARS_MAX_THREADS"] = "1"

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

REPETITIONS = 5
SQL = {
    "count, sum": "SELECT k, count(*) AS n, sum(w) AS s FROM given GROUP BY k",
    "mean of floats": "SELECT k, avg(f) AS m FROM given GROUP BY k",
}
EXPRESSIONS = {
    "count, sum": [pl.len().alias("n"), pl.col("w").sum().alias("s")],
    "mean of floats": [pl.col("f").mean().alias("m")],
}
RATE = re.compile(r"^ +(\D+), (\d+) +([0-9.]+) M rows/s")


def ours(command, folder, rows):
    """Query and number of keys to answer and rate, in M rows/s."""
    asked = [*shlex.split(command), "cardinality", "--export", folder, "--rows", str(rows)]
    printed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    found, answer = {}, None
    for line in printed.splitlines():
        if line.startswith("  answer: "):
            answer = line.removeprefix("  answer: ")
        elif match := RATE.match(line):
            found[match[1], int(match[2])] = (answer, float(match[3]))
    return found


def totals(table):
    """Groups and the sum of each aggregate, as our bench writes them."""
    columns = [table[name] for name in table.column_names[1:]]
    sums = [f"{float(pc.sum(pc.cast(column, pa.float64())).as_py()):.6e}" for column in columns]
    # Rust writes exponents without sign and zeros in front.
    short = [re.sub(r"e\+?(-?)0*(?=\d)", r"e\1", text) for text in sums]
    return " ".join([str(table.num_rows), *short])


def rate(run, rows):
    """The answer's totals and M rows/s."""
    seconds = []
    for _ in range(REPETITIONS + 1):
        start = time.perf_counter()
        table = run()
        seconds.append(time.perf_counter() - start)
    return totals(table), rows / statistics.median(seconds[1:]) / 1e6


def rivals(path, query):
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    database = duckdb.connect(":memory:")
    database.execute("SET threads=1")
    database.register("arrived", table)
    database.execute("CREATE TABLE given AS FROM arrived")
    grouped = pl.from_arrow(table).lazy().group_by("k").agg(EXPRESSIONS[query])
    yield "duckdb", lambda: database.sql(SQL[query]).to_arrow_table()
    yield "polars", lambda: grouped.collect().to_arrow()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", required=True, help="command of our bench")
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = ours(options.bench, folder, options.rows)
        heads = "".join(f"{head:>10}" for head in ("keys", "ours", "duckdb", "polars"))
        print(f"{'':<16}{heads}  M rows/s, ours / the faster")
        for (query, keys), (answer, speed) in found.items():
            path = pathlib.Path(folder) / f"keys_{keys}.arrow"
            others = {}
            for engine, run in rivals(path, query):
                other, others[engine] = rate(run, options.rows)
                assert other == answer, f"{engine}, {query}, {keys} keys: {other}, ours {answer}"
            rates = "".join(f"{others[engine]:>10.1f}" for engine in ("duckdb", "polars"))
            ratio = speed / max(others.values())
            print(f"{query:<16}{keys:>10}{speed:>10.1f}{rates}  {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
