"""What scripts share that run engines one after the other: the process of each, and the history."""

import argparse
import ctypes
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

# `PR_SET_CHILD_SUBREAPER` of Linux: programs whose parents end become children of this one.
ADOPT = 36
# Seconds that programs have which an engine has left behind.
LEFT_BEHIND_S = 10


def spread(values):
    """The middle half over the median, as bench/src/measure.rs has it; nothing of one value."""
    if len(values) < 2:
        return None
    values = sorted(values)
    at = [values[min(len(values) * part // 4, len(values) - 1)] for part in (1, 2, 3)]
    return (at[2] - at[0]) / at[1]


def engine_arguments(repetitions):
    """A parser of what every script of an engine is given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the input")
    parser.add_argument("--repetitions", type=int, default=repetitions)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--queries", help="names with commas between them; all when absent")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    return parser


def run_alone(engine, command, environment):
    """Runs one process of an engine to its end: the lines it writes, its peak of memory in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "lines.jsonl"
        process = subprocess.Popen([*command, "-o", str(output)], env=os.environ | environment)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"{engine} failed with {os.waitstatus_to_exitcode(status)}")
        wait_for_left_behind()
        lines = [json.loads(line) for line in output.read_text().splitlines()]
    return lines, used.ru_maxrss / 1024


def wait_for_left_behind():
    """Waits for programs of our group that outlived their parents, as Flink's Java does."""
    end = time.monotonic() + LEFT_BEHIND_S
    while time.monotonic() < end:
        try:
            if os.waitpid(0, os.WNOHANG) == (0, 0):
                time.sleep(0.1)
        except ChildProcessError:
            return


def point(figure, series, x, value, unit, **more):
    """A line of the history; `more` are its spread and its share of the read bandwidth."""
    line = {"bench": "peers", "figure": figure, "series": series, "x": x, "value": value}
    return line | {"unit": unit, "spread": None, "share": None} | more


class Watch:
    """Our bench beside a run: it probes the machine before and after, and counts other programs.

    What this script has run and waited for is not other programs.
    """

    def __init__(self, bench, history):
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)
        command = [*shlex.split(bench), "watch", "--record", str(history)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        # A session of its own, or it would be among those who were left behind.
        self.process = subprocess.Popen(command, **pipes, start_new_session=True)
        said = self.process.stdout.readline()
        if not said:
            sys.exit("our bench does not watch the machine")
        self.read_gb_s = json.loads(said)["read_gb_s"]

    def record(self, points):
        """Appends the points to the history, or ends the script where the machine was too noisy."""
        print(self.process.communicate("".join(json.dumps(it) + "\n" for it in points))[0], end="")
        if self.process.returncode:
            sys.exit(self.process.returncode)
