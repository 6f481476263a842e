#!/usr/bin/env python3
"""The reference input: a deterministic stream like that of Pingmesh, as Parquet and Arrow IPC.

Every chunk of 1,000,000 rows has its own child seed, so a smaller stream of equal seed and
parameters is an exact prefix of a larger one. In --out:
  pingmesh_<tag>.parquet   plain strings, snappy, row groups of 1,000,000 rows
  pingmesh_<tag>.arrow     Arrow IPC file, clusters as dictionary<int32, utf8>, batches likewise
  tor.parquet, tor.arrow   ip (uint32) -> tor_id (uint32)
  clusters.txt             sorted names of the clusters
  pingmesh_<tag>.json      parameters and measured properties; written last
"""

import argparse
import hashlib
import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK_ROWS = 1_000_000
BASE_ADDRESS = 0x0A000000  # 10.0.0.0
# Pareto's scale, above what two bytes hold.
TAIL_RTT_US = 65536.0
# Errors of sockets and their shares.
ERROR_CODES = np.array([10060, 10061, 10054, 10065, 11001, 5], np.int32)
ERROR_SHARES = np.array([0.55, 0.20, 0.12, 0.08, 0.04, 0.01])


def schema(text):
    return pa.schema([
        ("timestamp", pa.int64()), ("src_ip", pa.uint32()), ("src_cluster", text),
        ("dst_ip", pa.uint32()), ("dst_cluster", text), ("rtt_us", pa.uint32()),
        ("error_code", pa.int32())])


PLAIN = schema(pa.string())
CODED = schema(pa.dictionary(pa.int32(), pa.string()))


def cluster_names(count):
    """Distinct names of 40 characters, such as az-r03-dc07-prod-cl0123-<16 hex digits>."""
    names = []
    for k in range(count):
        digest = hashlib.sha256(f"cluster-{k}".encode()).hexdigest()[:16]
        names.append(f"az-r{k % 7:02d}-dc{k % 31:02d}-prod-cl{k:04d}-{digest}")
    assert all(len(name) == 40 for name in names)
    return sorted(names)


class Topology:
    """Clusters, their servers and switches, and how often each cluster probes and is probed."""

    def __init__(self, a):
        random = np.random.default_rng(np.random.SeedSequence([a.seed, 1]))
        self.servers = a.tors_per_cluster * a.servers_per_tor
        count = a.clusters * self.servers
        # Shuffled, so that the order of addresses says nothing about clusters.
        self.ips = (BASE_ADDRESS + random.permutation(count) * 7 + 1).astype(np.uint32)
        self.tors = (np.arange(count) // a.servers_per_tor + 1).astype(np.uint32)
        self.known = random.random(count) >= a.tor_miss
        weights = 1.0 / np.arange(1, a.clusters + 1) ** a.skew
        self.cumulated = np.cumsum(weights / weights.sum())
        self.cumulated[-1] = 1.0
        self.sources = random.permutation(a.clusters)
        self.targets = random.permutation(a.clusters)

    def tor_table(self):
        order = np.argsort(self.ips[self.known])
        columns = {"ip": self.ips, "tor_id": self.tors}
        return pa.table({k: pa.array(v[self.known][order]) for k, v in columns.items()})


def draw_chunk(a, top, chunk):
    """A whole chunk: the columns of the schema, clusters as codes."""
    r = np.random.default_rng(np.random.SeedSequence([a.seed, 2, chunk]))
    n = CHUNK_ROWS
    row = np.arange(chunk * n, (chunk + 1) * n, dtype=np.int64)
    arrival = a.start_ms + np.floor(row * (1000.0 / a.rate)).astype(np.int64)
    delay = r.integers(0, a.jitter_ms + 1, n)
    late = r.random(n) < a.ooo
    later = delay + r.exponential(a.ooo_max_ms / 4, n).astype(np.int64)
    delay = np.where(late, np.minimum(later, a.ooo_max_ms), delay)
    src = top.sources[np.searchsorted(top.cumulated, r.random(n))]
    dst = top.targets[np.searchsorted(top.cumulated, r.random(n))]
    src_ip = top.ips[src * top.servers + r.integers(0, top.servers, n)]
    dst_ip = top.ips[dst * top.servers + r.integers(0, top.servers, n)]
    body = np.exp(np.log(250.0) + 0.6 * r.standard_normal(n))
    tail = TAIL_RTT_US * (1.0 - r.random(n)) ** (-1 / 1.3)
    answered = np.where(r.random(n) < a.tail, tail, body)
    failed = r.random(n) < a.error_rate
    # Retries of the first packet.
    timeout = r.choice(np.array([3e6, 9e6, 21e6]), n) + r.random(n) * 5e4
    unanswered = np.where(r.random(n) < 0.5, timeout, body)
    rtt = np.clip(np.where(failed, unanswered, answered), 1, 2_000_000_000).astype(np.uint32)
    kinds = np.searchsorted(np.cumsum(ERROR_SHARES)[:-1], r.random(n))
    error = np.where(failed, ERROR_CODES[kinds], 0).astype(np.int32)
    return [arrival - delay, src_ip, src, dst_ip, dst, rtt, error]


class Properties:
    """What is measured on the stream while it is written."""

    def __init__(self):
        self.counts = dict.fromkeys(["failed", "short", "near", "late", "slow"], 0)
        self.sha256 = hashlib.sha256()
        self.newest = 0

    def add(self, columns):
        times, src_ip, _, dst_ip, _, rtt, error = columns
        for column in (times, src_ip, dst_ip, rtt, error):
            self.sha256.update(np.ascontiguousarray(column))
        answered = error == 0
        whole = len(times) // 128 * 128
        groups = times[:whole].reshape(-1, 128)
        middle = np.median(groups, axis=1).astype(np.int64)[:, None] if whole else 0
        newest = np.maximum.accumulate(np.concatenate([[self.newest], times]))
        self.newest = int(newest[-1])
        found = {
            "failed": ~answered, "short": answered & (rtt < 65536), "slow": rtt >= 100,
            "near": np.abs(groups - middle) < 128, "late": times < newest[:-1]}
        for name, rows in found.items():
            self.counts[name] += int(rows.sum())

    def of(self, rows):
        answered = max(1, rows - self.counts["failed"])
        return {
            "sha256_numeric_columns": self.sha256.hexdigest(),
            "error_fraction": self.counts["failed"] / rows,
            "two_byte_fraction_of_ok": self.counts["short"] / answered,
            "ts_within_one_byte_of_batch_median": self.counts["near"] / rows,
            "out_of_order_fraction": self.counts["late"] / rows,
            "rtt_ge_100_fraction": self.counts["slow"] / rows}


def write_stream(a, top, names, paths):
    """Writes both files chunk by chunk."""
    properties = Properties()
    texts = pa.array(names)
    parquet = pq.ParquetWriter(paths["parquet"], PLAIN, compression="snappy", store_schema=False)
    with parquet, pa.ipc.new_file(paths["arrow"], CODED) as arrow:
        for chunk in range(-(-a.rows // CHUNK_ROWS)):
            count = min(CHUNK_ROWS, a.rows - chunk * CHUNK_ROWS)
            columns = [column[:count] for column in draw_chunk(a, top, chunk)]
            properties.add(columns)
            arrays = [pa.array(column) for column in columns]
            for at in (2, 4):
                codes = pa.array(columns[at].astype(np.int32))
                arrays[at] = pa.DictionaryArray.from_arrays(codes, texts)
            arrow.write_batch(pa.record_batch(arrays, schema=CODED))
            for at in (2, 4):
                arrays[at] = arrays[at].cast(pa.string())
            parquet.write_batch(pa.record_batch(arrays, schema=PLAIN), row_group_size=CHUNK_ROWS)
    return properties


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", default=".")
    p.add_argument("--rows", type=int, default=10_000_000)
    p.add_argument("--tag", help="by default 10m, 50m ...")
    p.add_argument("--seed", type=int, default=20180711)
    p.add_argument("--error-rate", type=float, default=0.01)
    p.add_argument("--skew", type=float, default=0.9, help="exponent over clusters, 0 is uniform")
    p.add_argument("--ooo", type=float, default=0.005, help="share of late rows")
    p.add_argument("--ooo-max-ms", type=int, default=2500)
    p.add_argument("--jitter-ms", type=int, default=10)
    p.add_argument("--rate", type=float, default=100_000, help="rows per second of event time")
    p.add_argument("--clusters", type=int, default=200)
    p.add_argument("--tors-per-cluster", type=int, default=10)
    p.add_argument("--servers-per-tor", type=int, default=40)
    p.add_argument("--tor-miss", type=float, default=0.01, help="share of addresses without ToR")
    p.add_argument("--tail", type=float, default=0.03, help="share of answers above two bytes")
    p.add_argument("--start-ms", type=int, default=1_700_000_003_217)
    return p.parse_args()


def main():
    a = arguments()
    a.tag = a.tag or (f"{a.rows // 1_000_000}m" if a.rows % 1_000_000 == 0 else str(a.rows))
    out = pathlib.Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    names = cluster_names(a.clusters)
    (out / "clusters.txt").write_text("\n".join(names) + "\n")
    top = Topology(a)
    tor = top.tor_table()
    pq.write_table(tor, out / "tor.parquet", store_schema=False)
    with pa.ipc.new_file(out / "tor.arrow", tor.schema) as writer:
        writer.write_table(tor)
    paths = {kind: out / f"pingmesh_{a.tag}.{kind}" for kind in ("parquet", "arrow")}
    properties = write_stream(a, top, names, paths)
    parameters = {name: value for name, value in vars(a).items() if name != "out"}
    sizes = {f"{kind}_bytes": path.stat().st_size for kind, path in paths.items()}
    versions = {"pyarrow": pa.__version__, "numpy": np.__version__}
    described = parameters | properties.of(a.rows) | versions | sizes
    text = json.dumps(described, indent=1)
    (out / f"pingmesh_{a.tag}.json").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
