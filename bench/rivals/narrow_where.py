"""Figure 1 of the paper with the peers of today: a filter on eight-byte and on one-byte values.

One byte stands for compression that costs nothing, so the ratio is what an eighth of the data buys
an engine. Each runs on one thread over the same values and counts those that are equal to a
constant.
"""

import argparse
import os
import pathlib
import statistics
import time

os.environ["POLARS_MAX_THREADS"] = "1"

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from recording import Watch, point, spread

ROWS = 64_000_000
REPETITIONS = 7
WIDTHS = {"8 bytes": np.int64, "1 byte": np.uint8}


def cases():
    """Engine and width to what is timed."""
    values = np.random.default_rng(7).integers(0, 100, ROWS)
    database = duckdb.connect(":memory:")
    database.execute("SET threads=1")
    pa.set_cpu_count(1)
    for width, data_type in WIDTHS.items():
        array = pa.array(values.astype(data_type))
        frame = pl.DataFrame({"v": pl.from_arrow(array)})
        name = f"narrow_{array.type}"
        database.register("given", pa.table({"v": array}))
        database.execute(f"CREATE TABLE {name} AS FROM given")
        constant = data_type(42)
        query = frame.lazy().filter(pl.col("v") == pl.lit(constant)).select(pl.len())
        text = f"SELECT count(*) FROM {name} WHERE v = 42"
        yield "polars", width, lambda query=query: query.collect(engine="streaming").item()
        yield "duckdb", width, lambda text=text: database.sql(text).fetchall()[0][0]
        yield "pyarrow", width, lambda a=array, c=constant: pc.sum(pc.equal(a, c)).as_py()
        plain = array.to_numpy()
        yield "numpy", width, lambda a=plain, c=constant: int(np.count_nonzero(a == c))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", help="command of our bench, which says how quiet the machine is")
    parser.add_argument("--record", type=pathlib.Path, help="history that rates are appended to")
    options = parser.parse_args()
    watch = options.record and Watch(options.bench, options.record)
    timed = [(*case, []) for case in cases()]
    answers = set()
    for repetition in range(REPETITIONS + 1):
        for _, _, run, seconds in timed:
            start = time.perf_counter()
            answers.add(run())
            if repetition > 0:
                seconds.append(time.perf_counter() - start)
    assert len(answers) == 1, answers
    points = []
    for engine, width, _, seconds in timed:
        rate = ROWS / statistics.median(seconds) / 1e6
        print(f"{engine:<10}{width:<10}{rate:>10.0f} M rows/s")
        of_width = (engine, width, rate, "M rows/s")
        points.append(point("narrow_where", *of_width, spread=spread(seconds)))
    if watch:
        watch.record(points)


if __name__ == "__main__":
    main()
