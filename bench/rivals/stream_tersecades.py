"""Our command line on the streaming classics: one process a query, from the file to the last row.

Rows that are not kept go to /dev/null as an Arrow stream of record batches.
"""

import os
import subprocess
import time

import stream_queries as queries
from stream_runner import arguments, measure

PROGRAM = os.environ["TERSECADES"]
LATENESS = "lateness=1s"
options = arguments()


def statements(query):
    """The streams that a query reads, and the query."""
    watermark = "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND;\n"
    if query == "yahoo":
        select = "SELECT ad_id, event_type, timestamp AS ts FROM yahoo"
        return f"CREATE STREAM events AS {select} {watermark}{queries.SQL[query]}"
    create = "CREATE STREAM {} AS {} {}"
    views = [create.format(it[0], queries.view(*it), watermark) for it in queries.VIEWS]
    return "".join(views) + queries.SQL[query]


def run(query, target):
    """Seconds of one run; results go to the file `target`, if there is one."""
    table = "yahoo" if query == "yahoo" else "nexmark"
    source = f"{table}={options.data / table}.parquet,event_time=timestamp,{LATENESS}"
    command = [PROGRAM, "--log-level", "error", "sql", statements(query), "--table", source]
    command += ["--table", f"campaigns={options.data}/campaigns.parquet"] * (query == "yahoo")
    command += ["--threads", str(options.threads)]
    command += ["-o", target] if target else ["--format", "arrow", "-o", "/dev/null"]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


measure("tersecades", run, options)
