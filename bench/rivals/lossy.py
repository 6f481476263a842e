"""Sizes of the columns that `tersecades-bench lossy --export FOLDER` wrote, in other formats.

For each column the ratio to its plain bytes (nulls left out): Parquet with zstd and pco, which lose
nothing, and the zfp library at the bound that ours was held to, with the error it made.
"""

import csv
import io
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

try:
    from pcodec import ChunkConfig, standalone
except ImportError:
    standalone = None

try:
    import zfpy
except ImportError:
    zfpy = None

CHUNK = 65_536


def parquet_ratio(values):
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": values}), sink, compression="zstd")
    return values.nbytes / sink.tell()


def pco_ratio(values):
    if standalone is None:
        return float("nan")
    return values.nbytes / len(standalone.simple_compress(values, ChunkConfig()))


def zfp_ratio(values, bound):
    if zfpy is None:
        return float("nan"), float("nan")
    size, error = 0, 0.0
    for start in range(0, len(values), CHUNK):
        part = np.ascontiguousarray(values[start : start + CHUNK])
        packed = zfpy.compress_numpy(part, tolerance=bound)
        size += len(packed)
        error = max(error, float(np.abs(zfpy.decompress_numpy(packed) - part).max()))
    return values.nbytes / size, error


def main():
    folder = pathlib.Path(sys.argv[1])
    heads = "".join(f"{head:>10}" for head in ("bound", "parquet", "pco", "zfpy", "error"))
    print(f"{'kind':<20}{'column':<22}{heads}")
    with open(folder / "columns.csv", newline="") as lines:
        for kind, column, bound in csv.reader(lines):
            table = pq.read_table(folder / f"{kind}.parquet", columns=[column])
            values = table.column(0).drop_null().to_numpy().astype(np.float64)
            zfp, error = zfp_ratio(values, float(bound))
            ratios = f"{parquet_ratio(values):>10.2f}{pco_ratio(values):>10.2f}{zfp:>10.2f}"
            print(f"{kind:<20}{column:<22}{float(bound):>10.0e}{ratios}{error:>10.1e}")


if __name__ == "__main__":
    main()
