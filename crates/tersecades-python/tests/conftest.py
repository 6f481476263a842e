"""Data that the tests share, and how often Hypothesis tries."""

import os
import signal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "package",
    max_examples=int(os.environ.get("TERSECADES_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("package")

# Shells start what runs behind them deaf to Ctrl-C, which some tests send themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def make_probes(rows: int, seed: int) -> pa.Table:
    """Probes in order of time, with nulls, text, floats and ties."""
    random = np.random.default_rng(seed)
    seconds = np.sort(random.integers(0, 600_000, rows))
    regions = np.array(["north", "south", "east", "west", "süd-öst", ""])
    rtt = random.integers(50, 5_000, rows)
    return pa.table(
        {
            "timestamp": pa.array(seconds, pa.timestamp("ms")),
            "region": pa.array(regions[random.integers(0, len(regions), rows)]),
            "host": pa.array(random.integers(0, 300, rows), pa.int32()),
            "rtt_us": pa.array(rtt, pa.int64(), mask=random.random(rows) < 0.05),
            "load": pa.array(random.random(rows) * 100, mask=random.random(rows) < 0.1),
            "failed": pa.array(random.random(rows) < 0.2),
        }
    )


@pytest.fixture(scope="session")
def probes() -> pa.Table:
    """Two hundred thousand probes."""
    return make_probes(200_000, seed=1)
