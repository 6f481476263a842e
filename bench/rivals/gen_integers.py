"""Writes the four data sets of the DaMoN'19 evaluation (table 1) as columns of an Arrow file."""

import argparse
import pathlib

import numpy as np
import pyarrow as pa

CHUNK_ROWS = 1 << 20


def columns(rows, seed):
    random = np.random.default_rng(seed)

    def normal(mean):
        return random.normal(mean, 20, rows).clip(0).round().astype(np.uint32)

    small, large = normal(1 << 5), normal(1 << 25)
    yield "D1", small
    yield "D2", large
    yield "D3", np.sort(random.integers(0, 1_000_000, rows, dtype=np.uint32))
    yield "D4", np.where(random.random(rows) < 0.1, large, small)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=32_000_000)
    parser.add_argument("--seed", type=int, default=1905)
    parser.add_argument("--out", required=True, help="folder")
    options = parser.parse_args()
    table = pa.table(dict(columns(options.rows, options.seed)))
    folder = pathlib.Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "integers.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=CHUNK_ROWS)


if __name__ == "__main__":
    main()
