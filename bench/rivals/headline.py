"""Our queries and those of the rivals in one run: engines take turns, answers must be equal.

Rows per second is the median over the rounds of the medians within. A ratio compares our engine
with the fastest rival that runs the query; both met the same weather, so ratios hold where rates
do not.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import sys

from recording import Watch, point, run_alone, spread

FOLDER = pathlib.Path(__file__).resolve().parent
OURS = "tersecades"
# The rivals of each suite.
SUITES = {
    "queries": ["polars", "duckdb", "chdb", "datafusion", "vortex", "numpy"],
    "parquet": ["polars", "duckdb", "chdb", "datafusion"],
    "scans": ["vortex"],
    "flink": ["flink", "flink_streaming"],
    "bytewax": ["bytewax"],
}
# Suites from Parquet; our bench calls all of them by one name.
FROM_PARQUET = {"parquet", "flink", "bytewax"}
# The input of those who cannot bear the reference input.
TAGS = {"flink": "5m", "bytewax": "1m"}
# Written by hand for each query: a floor, and no engine to be faster than.
FLOORS = {"numpy"}
# Bytes a row of the columns that a query reads, as they arrive: what shares of the limit count.
READ_BYTES = {"q1": 24, "q1_hop": 24, "q2": 24, "q3": 20, "q4": 8, "q4_wide": 8, "q5": 12}
# What our engine aims at, times the fastest rival: by suite, and in memory by query.
AIMS = {"parquet": 1.5, "scans": 1.3}
HOT = {"q1": 8, "q1_hop": 25, "q2": 11, "q3": 15, "q4": 5, "q4_wide": 8, "q5": 40}
# The queries that every engine is asked.
HEADLINE = "q1,q1_hop,q2,q3,q4,q4_wide,q5"


def command(engine, options):
    """What runs one engine, but for threads and output."""
    suite, tag = options.suite, TAGS.get(options.suite, "10m")
    asked = [] if suite == "scans" else ["--queries", options.queries]
    if engine == OURS:
        bench = "parquet" if suite in FROM_PARQUET else suite
        data = options.data if tag == "10m" else f"{options.data}/pingmesh_{tag}.arrow"
        return [*shlex.split(options.bench), bench, *asked, "--data", data]
    name, _, mode = engine.partition("_")
    python = options.flink if name == "flink" else sys.executable
    script = f"{name}_scans.py" if suite == "scans" else f"{name}_queries.py"
    given = ["--data", options.data]
    given += ["--input", "parquet", "--tag", tag] if suite in FROM_PARQUET else []
    given += ["--mode", mode] if mode else []
    return [python, "-B", str(FOLDER / script), *asked, *given]


def run(engine, options):
    """One process of one engine; the lines of its queries, each with the peak of its memory."""
    given = ["--repetitions", str(options.repetitions)]
    if options.suite != "scans":
        given += ["--threads", str(options.threads)]
    environment = {"FLINK_JARS": options.jars or ""}
    lines, own = run_alone(engine, [*command(engine, options), *given], environment)
    lines = [line for line in lines if line.get("threads") == options.threads]
    peaks = [max(own, line.get("peak_mib", 0)) for line in lines]
    pairs = zip(lines, peaks, strict=True)
    return [line | {"peak_mib": peak} for line, peak in pairs if "query" in line]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", required=True, help="command that runs our bench")
    parser.add_argument("--data", required=True, help="folder of gen_pingmesh.py")
    parser.add_argument("--suite", choices=SUITES, default="queries")
    parser.add_argument("--flink", help="the Python that has Flink, for its suite")
    parser.add_argument("--jars", help="folder of Flink's jars")
    parser.add_argument("--out", required=True, help="file of JSON lines")
    parser.add_argument("--queries", default=HEADLINE, help="names with commas between them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--record", help="history that rates are appended to")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=7)
    return parser.parse_args()


def unequal(lines):
    """Queries on whose answer the engines differ."""
    answers = {}
    for line in lines:
        answers.setdefault(line["query"], set()).add(line["checksum"])
    return [query for query, checksums in answers.items() if len(checksums) > 1]


def compare(lines, suite):
    """A line for each query with a rival: all rates, ours over that of the fastest rival."""
    rates = {}
    for line in lines:
        engines = rates.setdefault(line["query"], {})
        engines.setdefault(line["engine"], []).append(line["rows_per_s"])
    for query, engines in rates.items():
        medians = {engine: statistics.median(rates) for engine, rates in engines.items()}
        rivals = [engine for engine in SUITES[suite] if engine in medians and engine not in FLOORS]
        if not rivals:
            continue
        fastest = max(rivals, key=medians.get)
        ratio = medians[OURS] / medians[fastest]
        line = {"query": query, "rows_per_s": medians, "fastest_rival": fastest, "ratio": ratio}
        line |= {"aim": HOT.get(query) if suite == "queries" else AIMS.get(suite)}
        yield line


def share(query, rate, read_gb_s, threads):
    """Bytes read a second by a rate in million rows, over what plain reading reached."""
    if query in READ_BYTES:
        return rate / 1e3 * READ_BYTES[query] / read_gb_s[min(threads, 2) - 1]
    return None


def points(lines, options, read_gb_s):
    """A point of the history for each engine and query, and one for the memory of each engine."""
    figure = f"peers_{options.suite}" + ("_2" if options.threads == 2 else "")
    rates, peaks = {}, {}
    for line in lines:
        of_query = rates.setdefault((line["engine"], line["query"]), [])
        of_query.append(line["rows_per_s"] / 1e6)
        peaks.setdefault(line["engine"], []).append(line["peak_mib"])
    for (engine, query), found in rates.items():
        middle = statistics.median(found)
        more = {"spread": spread(found)}
        more["share"] = share(query, middle, read_gb_s, options.threads)
        yield point(figure, engine, query, middle, "M rows/s", **more)
    for engine, found in peaks.items():
        yield point(f"{figure}_memory", engine, "peak", max(found), "MiB")


def print_table(comparison, suite):
    engines = [OURS, *SUITES[suite]]
    heads = "".join(f"{engine:>12}" for engine in engines)
    print(f"\n{'M rows/s':<18}{heads}   {OURS} / fastest rival")
    for line in comparison:
        rates = [line["rows_per_s"].get(engine) for engine in engines]
        cells = "".join(f"{rate / 1e6:>12.2f}" if rate else f"{'-':>12}" for rate in rates)
        aim = f"   aim {line['aim']:g}" if line["aim"] else ""
        print(f"{line['query']:<18}{cells}{line['ratio']:>8.2f} x {line['fastest_rival']}{aim}")


def main():
    options = arguments()
    if options.suite == "flink" and not options.flink:
        sys.exit("the suite of Flink needs --flink: `make rivals-flink` installs it")
    watch = options.record and Watch(options.bench, options.record)
    lines = []
    for round_ in range(1, options.rounds + 1):
        for engine in [OURS, *SUITES[options.suite]]:
            print(f"\nround {round_} of {options.rounds}: {engine}", flush=True)
            lines += [line | {"round": round_} for line in run(engine, options)]
    if differing := unequal(lines):
        sys.exit(f"engines differ in their answers to {', '.join(differing)}")
    comparison = list(compare(lines, options.suite))
    print_table(comparison, options.suite)
    text = "".join(json.dumps(line) + "\n" for line in lines + comparison)
    pathlib.Path(options.out).write_text(text)
    if watch:
        watch.record(points(lines, options, watch.read_gb_s))


if __name__ == "__main__":
    main()
