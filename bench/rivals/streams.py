"""The streaming classics in one run: Yahoo's benchmark and Nexmark q0 to q8, ours and the rivals'.

Streams are those of `tersecades generate`, in Parquet; a time goes from the file to the last row.
Engines take turns; medians are over rounds. Answers are compared once, over fewer rows, with all
rows of all engines written to files. A rate counts the rows of the whole stream, as Nexmark does.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import duckdb

import stream_queries as queries
from recording import Watch, point, run_alone, spread

FOLDER = pathlib.Path(__file__).resolve().parent
OURS = "tersecades"
ENGINES = [OURS, "duckdb", "flink"]
# DuckDB answers over files that have ended: what a stream engine gives is compared with Flink's.
RIVAL = "flink"
# A line of each kind of answer column, so that equal answers have equal texts.
SHOWN = {
    "whole": "CAST({} AS BIGINT)",
    "text": "CAST({} AS VARCHAR)",
    "time": "epoch_ms(CAST({} AS TIMESTAMP))",
    "cents": "CAST(round(CAST({} AS DOUBLE)) AS BIGINT)",
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True, help="our command line")
    parser.add_argument("--flink", help="the Python that has Flink; without it Flink is left out")
    parser.add_argument("--jars", help="folder of Flink's jars")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder of the streams")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file of JSON lines")
    parser.add_argument("--record", type=pathlib.Path, help="history that rates are appended to")
    parser.add_argument("--bench", help="command that runs our bench, for --record")
    parser.add_argument("--queries", default=",".join(queries.SQL))
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rows-compared", type=int, default=500_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=int, default=60, help="seconds that Flink has for a query")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=2)
    return parser.parse_args()


def generate(options, rows):
    """The folder of streams of so many rows."""
    folder = options.data / f"streams_{rows}"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for kind in ("nexmark", "yahoo"):
            command = [options.program, "generate", kind, "--rows", str(rows)]
            subprocess.run([*command, "-o", str(folder / f"{kind}.parquet")], check=True)
        (folder / "done").touch()
    return folder


def run(engine, data, options, more):
    """One process of one engine: its lines, each with the peak of its memory."""
    python = options.flink if engine == "flink" else sys.executable
    environment = {"TERSECADES": options.program, "FLINK_JARS": options.jars or ""}
    script = [python, "-B", str(FOLDER / f"stream_{engine}.py"), "--data", str(data)]
    script += ["--queries", options.queries, "--threads", str(options.threads)]
    script += ["--limit", str(options.limit), *more]
    lines, peak = run_alone(engine, script, environment)
    return [line | {"peak_mib": peak} for line in lines]


def fingerprint(path, kinds):
    """`rows:hash` of an answer, whatever the order of its rows."""
    if path.suffix == ".csv":
        files = [str(file) for file in path.rglob("*") if file.is_file() and file.stat().st_size]
        source = f"read_csv({files}, header = false, all_varchar = true)"
    else:
        source = f"read_parquet('{path}')"
    connection = duckdb.connect()
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}")
    names = [row[0] for row in described.fetchall()]
    shown = [SHOWN[kind].format(f'"{name}"') for name, kind in zip(names, kinds, strict=True)]
    sql = f"SELECT count(*), coalesce(sum(hash({', '.join(shown)})), 0) FROM {source}"
    rows, total = connection.execute(sql).fetchone()
    return f"{rows}:{int(total) % 2**64:016x}"


def compare_answers(engines, options):
    """A fingerprint for each query, which all engines agree on."""
    data = generate(options, options.rows_compared)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for engine in engines:
            run(engine, data, options, ["--answers", folder])
        for path in sorted(pathlib.Path(folder).iterdir()):
            query, engine = path.name.split(".")[:2]
            found.setdefault(query, {})[engine] = fingerprint(path, queries.ANSWERS[query])
    for query, answers in found.items():
        print(f"  {query:<6} {answers}", flush=True)
    if differing := [query for query, answers in found.items() if len(set(answers.values())) > 1]:
        sys.exit(f"engines differ in their answers to {', '.join(differing)}")
    return {query: answers[OURS] for query, answers in found.items()}


def comparison(lines, options, answers):
    """A line for each query: seconds of all engines, ours beside the rival's."""
    seconds = {}
    for line in lines:
        of_query = seconds.setdefault(line["query"], {})
        of_query.setdefault(line["engine"], []).append(line["seconds"])
    for query, engines in seconds.items():
        rates = {name: options.rows / statistics.median(it) for name, it in engines.items()}
        line = {"query": query, "threads": options.threads, "rows": options.rows}
        line |= {"rows_per_s": rates, "checked": answers[query]}
        if RIVAL in rates:
            line["ratio"] = rates[OURS] / rates[RIVAL]
        yield line


def points(lines, options):
    """A point of the history for each engine and query."""
    figure = "streams" + ("_2" if options.threads == 2 else "")
    rates = {}
    for line in lines:
        of_query = rates.setdefault((line["engine"], line["query"]), [])
        of_query.append(options.rows / line["seconds"] / 1e6)
    for (engine, query), found in rates.items():
        middle = statistics.median(found)
        yield point(figure, engine, query, middle, "M rows/s", spread=spread(found))


def print_table(compared, engines):
    heads = "".join(f"{engine:>12}" for engine in engines)
    print(f"\n{'M rows/s':<8}{heads}   {OURS} / {RIVAL}")
    for line in compared:
        rates = [line["rows_per_s"].get(engine) for engine in engines]
        cells = "".join(f"{rate / 1e6:>12.3f}" if rate else f"{'-':>12}" for rate in rates)
        ratio = f"{line['ratio']:>9.1f} x" if "ratio" in line else ""
        print(f"{line['query']:<8}{cells}{ratio}")


def main():
    options = arguments()
    engines = [engine for engine in ENGINES if engine != "flink" or options.flink]
    print(f"answers over {options.rows_compared} rows")
    answers = compare_answers(engines, options)
    data = generate(options, options.rows)
    watch = options.record and Watch(options.bench, options.record)
    more = ["--repetitions", str(options.repetitions)]
    lines = []
    for round_ in range(1, options.rounds + 1):
        for engine in engines:
            print(f"round {round_} of {options.rounds}: {engine}", flush=True)
            lines += [line | {"round": round_} for line in run(engine, data, options, more)]
    compared = list(comparison(lines, options, answers))
    print_table(compared, engines)
    options.out.write_text("".join(json.dumps(line) + "\n" for line in lines + compared))
    if watch:
        watch.record(points(lines, options))


if __name__ == "__main__":
    main()
