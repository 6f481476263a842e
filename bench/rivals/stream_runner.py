"""What the runners of the streaming classics share: options, rounds of runs, a line a query."""

import json
import pathlib
import shutil
import statistics

import stream_queries as queries
from recording import engine_arguments


def arguments():
    parser = engine_arguments(repetitions=3)
    parser.add_argument("--limit", type=int, default=60, help="seconds that Flink has for a query")
    parser.add_argument("--answers", type=pathlib.Path, help="folder that answers are written to")
    return parser.parse_args()


def measure(engine, run, options, suffix="parquet"):
    """Times each query; with a folder for answers, writes them instead."""
    lines = []
    for query in options.queries.split(","):
        if query not in queries.ENGINES[engine.split(",")[0]]:
            continue
        answer = options.answers and options.answers / f"{query}.{engine}.{suffix}"
        try:
            if answer:
                run(query, answer)
                continue
            run(query, None)
            seconds = [run(query, None) for _ in range(options.repetitions)]
        except TimeoutError:
            if answer:
                shutil.rmtree(answer, ignore_errors=True)
            print(f"  {engine:<20} {query:<6} not within {options.limit} s, left out", flush=True)
            continue
        median = statistics.median(seconds)
        line = {"engine": engine, "query": query, "threads": options.threads}
        lines.append(line | {"seconds": median, "all": seconds})
        print(f"  {engine:<20} {query:<6} {median:9.3f} s", flush=True)
    options.output.write_text("".join(json.dumps(line) + "\n" for line in lines))
