"""Bounded loss: our bench, and its columns elsewhere.

For each column the ratio to its plain bytes (nulls left out): Parquet with zstd and pco, which
lose nothing, and the zfp library at the bound that ours was held to, with the error it made and the
plain megabytes a second that it encodes and decodes, chunk by chunk as ours does.
"""

import argparse
import csv
import io
import pathlib
import shlex
import statistics
import time

import numpy as np
import pcodec.standalone
import pyarrow as pa
import pyarrow.parquet as pq
import zfpy

from recording import Watch, point, run_alone

CHUNK = 65_536
REPETITIONS = 5


def parquet_ratio(values):
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": values}), sink, compression="zstd")
    return values.nbytes / sink.tell()


def pco_ratio(values):
    return values.nbytes / len(pcodec.standalone.simple_compress(values, pcodec.ChunkConfig()))


def timed(work):
    """What `work` returns, and the median of the seconds it takes, after a run to warm up."""
    seconds = []
    for _ in range(REPETITIONS + 1):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return result, statistics.median(seconds[1:])


def zfp(values, bound):
    """Ratio, largest error, and megabytes a second of encoding and decoding."""
    starts = range(0, len(values), CHUNK)
    parts = [np.ascontiguousarray(values[start : start + CHUNK]) for start in starts]
    packed, encode_s = timed(lambda: [zfpy.compress_numpy(part, tolerance=bound) for part in parts])
    decoded, decode_s = timed(lambda: [zfpy.decompress_numpy(part) for part in packed])
    error = max(float(np.abs(a - b).max()) for a, b in zip(decoded, parts))
    megabytes = values.nbytes / 1e6
    size = sum(len(part) for part in packed)
    return values.nbytes / size, error, megabytes / encode_s, megabytes / decode_s


def points(place, ratios, speeds):
    for figure, unit, numbers in (("lossy_ratio", "x", ratios), ("zfp_speed", "MB/s", speeds)):
        for series, value in numbers.items():
            yield point(figure, series, place, value, unit)


def ours(bench, folder):
    """What our bench measures; it writes the columns and a list of them into the folder."""
    (folder / "columns.csv").unlink(missing_ok=True)
    lines, _ = run_alone("our bench", [*shlex.split(bench), "lossy", "--export", str(folder)], {})
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bench", required=True, help="command of our bench")
    parser.add_argument("--record", type=pathlib.Path, help="history that all is appended to")
    options = parser.parse_args()
    watch = options.record and Watch(options.bench, options.record)
    lines = ours(options.bench, options.folder)
    heads = ("bound", "parquet", "pco", "zfpy", "error", "enc MB/s", "dec MB/s")
    print(f"{'column':<36}" + "".join(f"{head:>10}" for head in heads))
    for kind, column, bound in csv.reader((options.folder / "columns.csv").open()):
        table = pq.read_table(options.folder / f"{kind}.parquet", columns=[column])
        values = table.column(0).drop_null().to_numpy().astype(np.float64)
        ratio, error, encode, decode = zfp(values, float(bound))
        ratios = {"parquet zstd": parquet_ratio(values), "pco": pco_ratio(values), "zfpy": ratio}
        exact = "".join(f"{ratios[name]:>10.2f}" for name in ratios)
        speed = f"{error:>10.2g}{encode:>10.0f}{decode:>10.0f}"
        print(f"{kind + ' ' + column:<36}{bound:>10}{exact}{speed}", flush=True)
        place = f"{kind} {column}, zfp({bound})"
        speeds = {"zfpy encode": encode, "zfpy decode": decode}
        lines += points(place, ratios, speeds)
    if watch:
        watch.record(lines)


if __name__ == "__main__":
    main()
