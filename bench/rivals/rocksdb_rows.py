"""The rows of `tersecades-bench lsm --queries history,ingest` in RocksDB, through rocksdict.

Keys are those of the rows, largest byte first; one codec in every level; blocks of 16 KB and a
filter of ten bits, or the defaults. Loads write through the log without a sync; the durable ones
sync each batch. Reads and scans include what a call from Python costs, which is printed.
"""

import argparse
import os
import tempfile
import threading
import time

import numpy as np
import rocksdict as rocks

ROWS = 10_000_000
SERIES = 1_000
BATCH_ROWS = 1_000
DURABLE_ROWS = 2_048
WRITERS = 8
POINTS = 100_000
SYNCS = 200


def mixed(number):
    """Numbers that look like any, as the bench has them."""
    number = number.astype(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    return number ^ (number >> np.uint64(31))


def pairs(value):
    """Rows of a key and a value of eight bytes."""

    def rows(first, last):
        number = np.arange(first, last, dtype=np.int64)
        return number.astype(">i8").tobytes(), 8, value(number).astype("<i8").tobytes()

    return rows


def series(first, last):
    """Rows of a series, a time and a value of two decimals."""
    number = np.arange(first, last, dtype=np.int64)
    times = number // SERIES * 10_000 + (mixed(number) % np.uint64(20)).astype(np.int64)
    keys = np.stack([number % SERIES, times], axis=1).astype(">i8").tobytes()
    cents = np.uint64(2_000) + mixed(number // 7) % np.uint64(900)
    return keys, 16, (cents.astype(np.float64) / 100.0).tobytes()


CASES = {
    "pairs in order": pairs(lambda number: number),
    "pairs, values below a million": pairs(lambda number: mixed(number) % np.uint64(1_000_000)),
    "time series": series,
}


def options(codec, tuned):
    chosen = rocks.Options(raw_mode=True)
    chosen.set_compression_type(getattr(rocks.DBCompressionType, codec)())
    chosen.increase_parallelism(2)
    table = rocks.BlockBasedOptions()
    if tuned:
        table.set_block_size(16 << 10)
        table.set_bloom_filter(10, False)
    chosen.set_block_based_table_factory(table)
    return chosen


def batch_of(rows, first, last):
    keys, width, values = rows(first, last)
    batch = rocks.WriteBatch(raw_mode=True)
    for row in range(last - first):
        batch.put(keys[row * width : (row + 1) * width], values[row * 8 : row * 8 + 8])
    return batch


def quantiles(times):
    return np.quantile(np.array(times), [0.5, 0.99])


def table_bytes(database):
    """Bytes of filters and of indexes, as RocksDB counts them."""
    text = database.property_value("rocksdb.aggregated-table-properties") or ""
    found = dict(part.strip().split("=", 1) for part in text.split(";") if "=" in part)
    size = lambda name: sum(int(value) for key, value in found.items() if key.startswith(name))
    return size("filter block size"), size("index block size")


def measure(name, rows, count, label, chosen, folder):
    database = rocks.Rdict(os.path.join(folder, "rows"), chosen)
    started = time.perf_counter()
    for first in range(0, count, BATCH_ROWS):
        database.write(batch_of(rows, first, min(count, first + BATCH_ROWS)))
    database.flush()
    load = count / (time.perf_counter() - started) / 1e6
    database.compact_range(None, None)
    filters, indexes = (part / count for part in table_bytes(database))
    size = database.property_int_value("rocksdb.total-sst-files-size") / count - filters - indexes
    times = []
    for turn in range(POINTS):
        row = turn * 0x9E37_79B1 % count
        keys, width, values = rows(row, row + 1)
        started = time.perf_counter()
        found = database.get(keys)
        times.append((time.perf_counter() - started) * 1e6)
        assert found == values, f"row {row} is {found}"
    started = time.perf_counter()
    scanned = sum(1 for _ in database.values())
    scan = scanned / (time.perf_counter() - started) / 1e6
    assert scanned == count, f"{scanned} rows of {count}"
    p50, p99 = quantiles(times)
    print(
        f"{label}, {name}: {size:.3f} B/row, filters {filters:.3f} and indexes {indexes:.3f} more, "
        f"load {load:.2f} M rows/s, read p50 {p50:.2f} us, p99 {p99:.2f} us, "
        f"scan {scan:.2f} M rows/s",
        flush=True,
    )
    database.close()


def call_us(chosen, folder):
    """Median of a read that finds an empty store, which is what a call takes."""
    database = rocks.Rdict(os.path.join(folder, "empty"), chosen)
    times = []
    for _ in range(20_000):
        started = time.perf_counter()
        database.get(b"01234567")
        times.append((time.perf_counter() - started) * 1e6)
    database.close()
    return quantiles(times)[0]


def sync_p99(folder):
    with open(os.path.join(folder, "sync"), "wb", buffering=0) as file:
        times = []
        for _ in range(SYNCS):
            started = time.perf_counter()
            file.write(bytes(4_096))
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - started) * 1e3)
    return quantiles(times)[1]


def durable(count, chosen, folder):
    """Eight threads write pairs, each waiting until its batch is on the device."""
    database = rocks.Rdict(os.path.join(folder, "durable"), chosen)
    write = rocks.WriteOptions()
    write.sync = True
    rows = CASES["pairs, values below a million"]
    share = count // WRITERS
    batches = [
        [
            batch_of(rows, first, first + DURABLE_ROWS)
            for first in range(start, start + share, DURABLE_ROWS)
        ]
        for start in range(0, share * WRITERS, share)
    ]
    waits = [[] for _ in range(WRITERS)]

    def append(writer):
        for batch in batches[writer]:
            started = time.perf_counter()
            database.write(batch, write)
            waits[writer].append((time.perf_counter() - started) * 1e3)

    threads = [threading.Thread(target=append, args=(writer,)) for writer in range(WRITERS)]
    written = sum(map(len, batches)) * DURABLE_ROWS * 16
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = written / (time.perf_counter() - started) / 1e6
    p50, p99 = quantiles(sum(waits, []))
    print(
        f"durable ingest, {WRITERS} writers, {DURABLE_ROWS} rows a batch, sync=true: "
        f"{rate:.1f} MB/s raw, acknowledgement p50 {p50:.2f} ms, p99 {p99:.2f} ms; "
        f"a sync of 4 KiB p99 {sync_p99(folder):.2f} ms"
    )
    database.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--codecs", default="zstd,lz4")
    parser.add_argument("--folder", help="where stores lie; that of temporary files unless given")
    given = parser.parse_args()
    for codec in given.codecs.split(","):
        for tuned in (False, True):
            label = f"{codec}, " + ("16 KB blocks and filters" if tuned else "defaults")
            for name, rows in CASES.items():
                with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                    measure(name, rows, given.rows, label, options(codec, tuned), folder)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        print(f"a call from Python, p50 {call_us(options('none', False), folder):.2f} us")
        durable(given.rows // 10, options("none", False), folder)


if __name__ == "__main__":
    main()
