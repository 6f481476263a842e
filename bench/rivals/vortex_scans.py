"""Vortex: comparing, filtering and summing single columns of its compressed arrays, one thread."""

import pathlib

import pyarrow.compute as pc
import vortex as vx
import vortex.expr as ve

import pingmesh
import scans

options = pingmesh.arguments()
vx.set_worker_threads(1)


def load(column, table):
    """A compressed array, as Vortex lays out a file of its own."""
    path = pathlib.Path(options.data) / f"scan_{column}.vortex"
    if not path.exists():
        vx.io.write(table, str(path))
    array = vx.open(str(path)).scan(batch_size=1 << 20).read_all()
    print(f"  {column}: {array.nbytes / table.num_rows:.3f} B/value", flush=True)
    return array


def operations(column, table, constant):
    array = load(column, table)
    value = ve.column(column)
    literal = scans.literal(vx, ve, table.schema.field(0).type, constant)

    def equal():
        return array.apply(ve.eq(value, literal)).to_arrow_array()

    def keep():
        mask = array.apply(ve.gt(value, literal))
        return array.apply(value).filter(mask).to_arrow_array()

    def total():
        return pc.sum(array.apply(value).to_arrow_array())

    return {"equal": equal, "filter": keep, "sum": total}


scans.measure("vortex", operations, options)
