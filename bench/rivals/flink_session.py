"""A local Flink cluster in one process, and the memory that it takes.

`FLINK_JARS` is the folder of the jars for Parquet (`bench/rivals/requirements-flink.txt`).
"""

import os
import pathlib

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment


def session(threads, streaming):
    """Tables of a cluster that runs so many tasks at once.

    Nothing is checkpointed, as ours keeps no snapshots either: state above the 5 MiB that the
    memory of the job manager takes would fail the job, and begin it again, at every checkpoint.
    """
    jars = pathlib.Path(os.environ["FLINK_JARS"]).glob("*.jar")
    settings = {
        "pipeline.jars": ";".join(jar.resolve().as_uri() for jar in jars),
        "parallelism.default": str(threads),
        "taskmanager.numberOfTaskSlots": str(threads),
        "taskmanager.memory.managed.size": "1024m",
        "taskmanager.memory.network.max": "256m",
        "table.local-time-zone": "UTC",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "1s",
        "table.exec.mini-batch.size": "50000",
    }
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name, value)
    chosen = EnvironmentSettings.new_instance()
    chosen = chosen.in_streaming_mode() if streaming else chosen.in_batch_mode()
    return TableEnvironment.create(chosen.with_configuration(configuration).build())


def peak_mib():
    """The largest resident size of the cluster so far: that of the Java process this one began."""
    peak = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            # The process has ended since the folder was listed.
            continue
        fields = dict(line.split(":", 1) for line in text.splitlines())
        if int(fields["PPid"]) == os.getpid() and "VmHWM" in fields:
            peak = max(peak, int(fields["VmHWM"].split()[0]) / 1024)
    return peak
