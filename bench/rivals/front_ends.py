"""Rust's builder, Python's and SQL run the same queries over the same rows: what the last two add.

The processes take turns; the time of a query is the median over the rounds of the medians within.
A front end may take 5 % and 5 ms more than Rust's builder.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import sys

from recording import run_alone

FOLDER = pathlib.Path(__file__).resolve().parent
QUERIES = ["q1", "q1_hop", "q2", "q3", "q4", "q4_wide", "q5"]
SHARE_MAX = 0.05
SECONDS_MAX = 0.005


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", required=True, help="command that runs our bench")
    parser.add_argument("--python", required=True, help="the Python that has the package")
    parser.add_argument("--data", required=True, help="the Arrow file of gen_pingmesh.py")
    parser.add_argument("--out", required=True, help="file of JSON lines")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=7)
    return parser.parse_args()


def run(command, options):
    """One process; the lines of its queries."""
    given = ["--data", options.data, "--repetitions", str(options.repetitions)]
    given += ["--queries", options.queries]
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    lines, _ = run_alone(command[0], [*command, *given], environment)
    return [line for line in lines if "query" in line and line["threads"] == 1]


def compare(lines):
    """A line for each query: seconds of each front end, and whether they are close enough."""
    times = {}
    for line in lines:
        of_query = times.setdefault(line["query"], {})
        of_query.setdefault(line["engine"], []).append(line["rows"] / line["rows_per_s"])
    for query, engines in times.items():
        seconds = {engine: statistics.median(times) for engine, times in engines.items()}
        rust = seconds["tersecades"]
        most = rust * (1 + SHARE_MAX) + SECONDS_MAX
        reached = all(seconds[way] <= most for way in ("python", "sql"))
        yield {"query": query, "seconds": seconds, "at_most": most, "reached": reached}


def main():
    options = arguments()
    commands = [
        [*shlex.split(options.bench), "queries", "--threads", "1"],
        [options.python, "-B", str(FOLDER / "front_end_rates.py")],
    ]
    lines = []
    for round_ in range(options.rounds):
        for command in commands:
            lines += [line | {"round": round_ + 1} for line in run(command, options)]
    answers = {}
    for line in lines:
        answers.setdefault(line["query"], set()).add(line["checksum"])
    if differing := [query for query, sums in answers.items() if len(sums) > 1]:
        sys.exit(f"front ends differ in their answers to {', '.join(differing)}")
    comparison = list(compare(lines))
    print(f"\n{'ms':<10}{'Rust':>10}{'Python':>10}{'SQL':>10}   at most")
    for line in comparison:
        cells = [line["seconds"][way] * 1e3 for way in ("tersecades", "python", "sql")]
        shown = "".join(f"{cell:>10.1f}" for cell in cells)
        verdict = "reached" if line["reached"] else "MISSED"
        print(f"{line['query']:<10}{shown}{line['at_most'] * 1e3:>10.1f}   {verdict}")
    text = "".join(json.dumps(line) + "\n" for line in lines + comparison)
    pathlib.Path(options.out).write_text(text)


if __name__ == "__main__":
    main()
