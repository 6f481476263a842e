"""Sizes of the rows that `tersecades-bench choice --export FOLDER` wrote, in other formats.

For each set, bytes per row: Parquet with zstd as pyarrow writes it, a Vortex file as it comes, and
pco of the numeric columns alone, beside their plain size.
"""

import pathlib
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import vortex as vx

try:
    from pcodec import ChunkConfig, standalone
except ImportError:
    standalone = None


def plain_text(table):
    """Dictionary columns as text, which every writer encodes by itself."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table


def parquet_bytes(table, folder):
    path = folder / "rows.parquet"
    pq.write_table(table, path, compression="zstd")
    return path.stat().st_size


def vortex_bytes(table, folder):
    path = folder / "rows.vortex"
    vx.io.write(table, str(path))
    return path.stat().st_size


def numbers(table):
    for column in table.columns:
        kind = column.type
        if pa.types.is_temporal(kind):
            column = column.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
            kind = column.type
        if (pa.types.is_integer(kind) and kind.bit_width >= 16) or kind in (pa.float32(), pa.float64()):
            yield np.ascontiguousarray(column.drop_null().to_numpy())


def pco_bytes(table):
    if standalone is None:
        return float("nan")
    return sum(len(standalone.simple_compress(values, ChunkConfig())) for values in numbers(table))


def main():
    sets = {}
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.parquet")):
        sets.setdefault(path.name.split(".")[0], []).append(path)
    print(f"{'set':<28}{'rows':>10}{'parquet':>10}{'vortex':>10}{'pco':>10}{'numeric':>10}   bytes a row")
    for name, paths in sets.items():
        rows, sums = 0, np.zeros(4)
        with tempfile.TemporaryDirectory() as folder:
            for path in paths:
                table = plain_text(pq.read_table(path))
                rows += table.num_rows
                folder_path = pathlib.Path(folder)
                numeric = sum(values.nbytes for values in numbers(table))
                sums += [
                    parquet_bytes(table, folder_path),
                    vortex_bytes(table, folder_path),
                    pco_bytes(table),
                    numeric,
                ]
        parquet, vortex, pco, numeric = sums / max(rows, 1)
        print(f"{name:<28}{rows:>10}{parquet:>10.3f}{vortex:>10.3f}{pco:>10.3f}{numeric:>10.3f}")


main()
