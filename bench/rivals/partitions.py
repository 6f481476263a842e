"""Reads of the middle of units by the system's zlib, beside those of our partitions.

The units, offsets and lengths are those of `tersecades-bench pex`, which runs between two turns of
zlib. zlib decodes from the start of a unit to the end of the read, into memory that is there, and
stops: what a reader of a stream without partitions has to do. Every byte is checked.
"""

import argparse
import ctypes
import ctypes.util
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import tarfile
import time
import zlib

OFFSETS = [kib << 10 for kib in (32, 64, 100, 140, 180, 215)]
LENGTHS = [kib << 10 for kib in (4, 8, 16, 32)]
REPETITIONS = 7
LEVEL = 1
RAW_DEFLATE = -15
NUMBER = r"([0-9.]+) \|"
# A row of figure 12: size of partitions, us of 4 KiB, mean us, from the start over partitions, us
# without codes.
ROW = re.compile(rf"^ *\| (\d+) KiB \| {NUMBER} {NUMBER} {NUMBER} {NUMBER}$", re.MULTILINE)


class Stream(ctypes.Structure):
    """`z_stream` of zlib.h."""

    _fields_ = [
        ("next_in", ctypes.c_void_p),
        ("avail_in", ctypes.c_uint),
        ("total_in", ctypes.c_ulong),
        ("next_out", ctypes.c_void_p),
        ("avail_out", ctypes.c_uint),
        ("total_out", ctypes.c_ulong),
        ("msg", ctypes.c_char_p),
        ("state", ctypes.c_void_p),
        ("zalloc", ctypes.c_void_p),
        ("zfree", ctypes.c_void_p),
        ("opaque", ctypes.c_void_p),
        ("data_type", ctypes.c_int),
        ("adler", ctypes.c_ulong),
        ("reserved", ctypes.c_ulong),
    ]


class Inflate:
    """One decoder that is used again and again."""

    def __init__(self):
        self.library = ctypes.CDLL(ctypes.util.find_library("z"))
        self.library.zlibVersion.restype = ctypes.c_char_p
        self.version = self.library.zlibVersion()
        self.stream = Stream()
        size = ctypes.c_int(ctypes.sizeof(Stream))
        assert not self.library.inflateInit2_(
            ctypes.byref(self.stream), RAW_DEFLATE, ctypes.c_char_p(self.version), size
        )

    def front(self, packed, out, count):
        """Decodes the first `count` bytes of `packed` into `out`; the seconds that took."""
        stream = self.stream
        stream.next_in = ctypes.cast(packed, ctypes.c_void_p)
        stream.avail_in = len(packed)
        stream.next_out, stream.avail_out = ctypes.addressof(out), count
        reference = ctypes.byref(stream)
        start = time.perf_counter()
        self.library.inflateReset(reference)
        self.library.inflate(reference, 0)
        seconds = time.perf_counter() - start
        assert stream.avail_out == 0
        return seconds


def units(archive):
    with tarfile.open(archive) as tar:
        for member in sorted(tar.getmembers(), key=lambda member: member.name):
            if member.isfile():
                yield tar.extractfile(member).read()


def mean_micros(inflate, given):
    """The mean over all reads of the median of some repetitions."""
    micros = []
    for raw in given:
        encoder = zlib.compressobj(LEVEL, zlib.DEFLATED, RAW_DEFLATE)
        packed = encoder.compress(raw) + encoder.flush()
        out = ctypes.create_string_buffer(len(raw))
        for offset in OFFSETS:
            for length in LENGTHS:
                end = offset + length
                times = [inflate.front(packed, out, end) for _ in range(REPETITIONS)]
                assert out.raw[offset:end] == raw[offset:end]
                micros.append(statistics.median(times) * 1e6)
    return statistics.fmean(micros)


def ours(command):
    """By KiB of a partition: mean us of a read, and how many times that from the start, zlib-rs."""
    asked = [*shlex.split(command), "pex"]
    printed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    return {int(row[1]): (float(row[3]), float(row[4])) for row in ROW.finditer(printed)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True, help="the command of tersecades-bench")
    asked = parser.parse_args()
    archive = pathlib.Path(os.environ.get("TERSECADES_DATA", "data"), "storage34/slices.tar.gz")
    if not archive.is_file():
        raise SystemExit(f"no {archive}: TERSECADES_DATA names the folder of data sets")
    given, inflate = list(units(archive)), Inflate()
    before = mean_micros(inflate, given)
    found = ours(asked.bench)
    after = mean_micros(inflate, given)
    print(f"{len(given)} units, level {LEVEL}, 4 to 32 KiB of each at {len(OFFSETS)} places")
    print(f"zlib {inflate.version.decode()} from the start: {before:.0f} and {after:.0f} us")
    print(f"{'partition':>9} {'us':>6}  from the start by zlib, zlib-rs / partitions")
    for kib, (micros, rust) in found.items():
        print(f"{kib:>5} KiB {micros:>6.1f}  {(before + after) / 2 / micros:.1f} {rust:.1f}")


if __name__ == "__main__":
    main()
