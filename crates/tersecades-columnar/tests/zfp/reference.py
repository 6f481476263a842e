"""Streams of the reference library, as lines to compare ours with.

`python reference.py` writes the lines of golden.txt to the standard output.
`python reference.py compress` reads lines `name format tolerance values` from the standard input
and writes each with two more words: `stream decoded`.

Tolerances and values are hexadecimal bits, streams hexadecimal bytes.
"""

import sys

import numpy
import zfpy

FORMATS = {"single": numpy.float32, "double": numpy.float64}
# The library's numbers for its types; it exports no names for them.
TYPES = {"single": 3, "double": 4}


def compressed(values, tolerance):
    """The stream of an array of floats, without header."""
    return zfpy.compress_numpy(values, tolerance=tolerance, write_header=False)


def line(name, kind, tolerance, values):
    """One line of output."""
    stream = compressed(values, tolerance)
    back = zfpy._decompress(stream, TYPES[kind], values.shape, tolerance=tolerance)
    bits = numpy.float64(tolerance).tobytes()[::-1].hex()
    return " ".join([name, kind, bits, in_hex(values), stream.hex(), in_hex(back)])


def in_hex(values):
    """Values as little-endian bytes, one after another."""
    return numpy.ascontiguousarray(values).tobytes().hex()


def golden():
    """Small arrays of each kind, in both formats."""
    rng = numpy.random.default_rng(7)
    steps = numpy.arange(22)
    shapes = {
        "smooth": (20 * numpy.sin(steps / 5), 1e-3),
        "random": (rng.normal(0, 100, 21), 0.5),
        "exact": (rng.normal(0, 1, 7), 0.0),
        "constant": (numpy.full(9, 21.5), 1e-6),
        "zeros": (numpy.zeros(6), 1e-6),
        "signs": (numpy.array([-0.0, 1, -1, 2, -2, 3, -3, 0, 0.25]), 0.125),
        "mixed": (numpy.array([1e-20, 1e20, -1e9, 3, 1e-3, 0, 7, 1e30, -5e12, 1, 2]), 1e-2),
        "below": (numpy.array([1e-5, -2e-5, 3e-5, 0, 4e-5]), 1.0),
        "one": (numpy.array([3.14159]), 1e-4),
        "two": (numpy.array([3.14159, -2.71828]), 1e-4),
        "three": (numpy.array([3.14159, -2.71828, 1.41421]), 1e-4),
    }
    for name, (values, tolerance) in shapes.items():
        for kind, dtype in FORMATS.items():
            print(line(name, kind, tolerance, values.astype(dtype)))
    huge = numpy.array([1.7e308, -1.7e308, 1.2e308, 3e307, 1e300])
    print(line("huge", "double", 1e292, huge))
    print(line("tiny", "double", 1e-288, numpy.array([1e-285, -3e-286, 2e-285, 5e-287, 1e-320])))


def compress():
    """Streams of arrays that the caller made."""
    for text in sys.stdin:
        name, kind, bits, values = text.split()
        tolerance = numpy.frombuffer(bytes.fromhex(bits)[::-1], numpy.float64)[0]
        array = numpy.frombuffer(bytes.fromhex(values), FORMATS[kind])
        print(line(name, kind, float(tolerance), array))


if __name__ == "__main__":
    compress() if sys.argv[1:] == ["compress"] else golden()
