"""Answers two questions about windows with Polars, an independent engine of the real-data tests.

Usage: polars_answers.py CSV FOLDER

CSV has the columns `probe_id`, `epoch`, `rtt` and `cp`; FOLDER gets `tumbling.parquet` and
`hopping.parquet`, whose first column is the start of the window in microseconds.
"""

import pathlib
import sys

import polars as pl

HOUR = 3_600_000_000


def main(csv: str, folder: pathlib.Path) -> None:
    rows = pl.read_csv(csv, schema_overrides={"rtt": pl.Float64}, try_parse_dates=True)
    rows = rows.with_columns(pl.col("epoch").dt.cast_time_unit("us"))
    rtt = pl.col("rtt")
    tumbling = (
        rows.sort("epoch")
        .group_by_dynamic("epoch", every="1h", closed="left", group_by="probe_id")
        .agg(
            pl.len().cast(pl.Int64).alias("a0"),
            pl.col("cp").sum().cast(pl.Int64).alias("a1"),
            rtt.min().alias("a2"),
            rtt.max().alias("a3"),
            rtt.std().alias("a4"),
            rtt.median().alias("a5"),
            rtt.drop_nulls().n_unique().cast(pl.Int64).alias("a6"),
        )
        .with_columns(pl.col("epoch").dt.epoch("us"))
        .sort("epoch", "probe_id", nulls_last=True)
        .select("epoch", "probe_id", "a0", "a1", "a2", "a3", "a4", "a5", "a6")
    )
    tumbling.write_parquet(folder / "tumbling.parquet")
    # Polars leaves out hops that begin before the first row: every row is given to each of its six.
    start = pl.col("epoch").dt.epoch("us") // HOUR * HOUR
    hops = pl.concat([rows.with_columns(start=start - back * HOUR) for back in range(6)])
    hopping = hops.group_by("start").agg(
        pl.len().cast(pl.Int64).alias("a0"),
        rtt.mean().alias("a1"),
        rtt.quantile(0.9, "linear").alias("a2"),
    )
    hopping.sort("start").write_parquet(folder / "hopping.parquet")


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
