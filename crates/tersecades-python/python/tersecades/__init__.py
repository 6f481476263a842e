"""Stream analytics on compressed columns.

Rows come in as Arrow data or from files, are windowed, filtered, grouped and joined in their
encoded form, and go out to Arrow, Polars, pandas and NumPy.

>>> import tersecades as tc
>>> probes = tc.generate("pingmesh", rows=100_000, event_time="timestamp", lateness="3s")
>>> out = (
...     probes.filter((tc.col("error_code") != 0) & (tc.col("rtt_us") >= 100))
...     .window(tc.hop("60s", every="10s"))
...     .group_by("src_cluster", "dst_cluster")
...     .agg(n=tc.count(), p99=tc.quantile("rtt_us", 0.99))
... )
>>> out.columns
['window_start', 'window_end', 'src_cluster', 'dst_cluster', 'n', 'p99']

Nothing runs before a result is asked for: ``out.to_arrow()``, ``out.to_polars()``,
``out.to_pandas()``, ``out.to_numpy()``, ``out.collect()``, ``out.show()``,
``out.write_parquet(path)``, or ``for table in out.stream()`` for each window as it closes.
"""

from ._native import *
from ._native import __all__ as __all__, __version__ as __version__
