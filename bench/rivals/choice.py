"""Sizes of the rows that `tersecades-bench choice --export FOLDER` wrote, in other formats.

For each set, bytes per row: ours, Parquet with zstd as pyarrow writes it, a Vortex file as it
comes, and pco of the numeric columns alone, beside their plain size.
"""

import argparse
import json
import pathlib
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
        wide = pa.types.is_integer(kind) and kind.bit_width >= 16
        if wide or kind in (pa.float32(), pa.float64()):
            yield np.ascontiguousarray(column.drop_null().to_numpy())


def pco_bytes(table):
    if standalone is None:
        return float("nan")
    return sum(len(standalone.simple_compress(values, ChunkConfig())) for values in numbers(table))


def ours(path):
    """What our bench wrote, by set: sizes, what choosing gave away, and its share of encoding."""
    sets = {}
    for line in map(json.loads, path.read_text().splitlines()):
        name, _, figure = line["name"].partition(": ")
        sets.setdefault(name.removesuffix(", hot").removesuffix(", cold"), {})[
            (name.rpartition(", ")[2], figure)
        ] = line["value"]
    return sets


def cells(name, of):
    """The first cells of a row of the table."""
    hot, cold = (of.get((tier, "size"), float("nan")) for tier in ("hot", "cold"))
    regrets = [of.get((tier, "regret"), float("nan")) * 100 for tier in ("hot", "cold")]
    share = of.get((name, "choosing, share of encoding"), float("nan")) * 100
    return hot, cold, [f"{regret:.1f} %" for regret in regrets] + [f"{share:.1f} %"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ours", type=pathlib.Path, required=True, help="what our bench wrote")
    options = parser.parse_args()
    known = ours(options.ours)
    sets = {}
    for path in sorted(options.folder.glob("*.parquet")):
        sets.setdefault(path.name.split(".")[0], []).append(path)
    heads = "set | rows | hot | cold | Parquet, zstd | Vortex | cold / Vortex | pco, of numbers"
    print(f"| {heads} | regret, hot | cold | choosing |\n|---|" + "---|" * 10)
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
        hot, cold, others = cells(name, known.get(name, {}))
        sizes = [f"{size:.3f}" for size in (hot, cold, parquet, vortex)]
        sizes += [f"{cold / vortex:.2f}", f"{pco:.3f} of {numeric:.1f}"]
        print("| " + " | ".join([name, f"{rows:,}", *sizes, *others]) + " |", flush=True)


main()
