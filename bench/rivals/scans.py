"""What the scripts of the rivals share for scans of single columns."""

import json
import pathlib
import statistics
import time

import pyarrow as pa
import pyarrow.compute as pc

# File, column, and the constant that it is compared with: as in bench/src/scan.rs.
COLUMNS = [
    ("integers.arrow", "D1", 1 << 5),
    ("integers.arrow", "D2", 1 << 25),
    ("integers.arrow", "D3", 500_000),
    ("integers.arrow", "D4", 1 << 5),
    ("pingmesh_10m.arrow", "timestamp", 1_700_000_050_000),
    ("pingmesh_10m.arrow", "rtt_us", 1_000),
    ("pingmesh_10m.arrow", "error_code", 0),
]


def literal(vx, ve, arrow_type, constant):
    bits = arrow_type.bit_width
    signed = not pa.types.is_unsigned_integer(arrow_type)
    return ve.literal(vx.int_(bits) if signed else vx.uint(bits), constant)


def read(folder, file, column):
    table = pa.ipc.open_file(pa.memory_map(str(pathlib.Path(folder) / file))).read_all()
    table = table.select([column])
    values = table.column(0)
    if pa.types.is_temporal(values.type):
        table = table.set_column(0, column, values.cast(pa.int64()))
    return table


def checksum(operation, result):
    """The number of rows that passed, the sum of those kept, or the sum."""
    if operation == "equal":
        return str(pc.sum(result).as_py())
    if operation == "filter":
        return f"{len(result)}:{pc.sum(result).as_py() or 0}"
    return str(result.as_py())


def measure(engine, operations, options):
    """Times each operation on each column and writes JSON lines."""
    lines = []
    for file, column, constant in COLUMNS:
        table = read(options.data, file, column)
        for name, run in operations(column, table, constant).items():
            check = checksum(name, run())
            seconds = []
            for _ in range(options.repetitions):
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
            rows_per_s = table.num_rows / statistics.median(seconds)
            line = {"engine": engine, "query": f"{column} {name}", "threads": 1}
            line |= {"rows": table.num_rows, "rows_per_s": rows_per_s, "checksum": check}
            lines.append(json.dumps(line))
            print(f"  {line['query']:<20} {rows_per_s / 1e6:11.1f} M rows/s   {check}", flush=True)
    if options.output:
        options.output.write_text("".join(line + "\n" for line in lines))
