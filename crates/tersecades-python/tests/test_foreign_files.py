"""Files of other writers: old times, checksums, claims that are not true."""

from __future__ import annotations

import datetime as dt
import gzip
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

import tersecades as tc


def test_int96_times_reach_beyond_the_nanoseconds_of_64_bits(tmp_path: Path) -> None:
    times = [dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 1, 5)]
    table = pa.table({"at": pa.array([*times, None], pa.timestamp("us"))})
    path = tmp_path / "spark.parquet"
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, store_schema=False)
    read = tc.read_parquet(path)
    assert [row["at"] for row in read.to_pylist()] == [*times, None]
    later = tc.sql("SELECT count(*) AS n FROM t WHERE at > TIMESTAMP '2200-01-01'", t=read)
    assert later.to_pylist() == [{"n": 1}]


def test_a_page_that_fails_its_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checked.parquet"
    table = pa.table({"k": pa.array(range(1000), pa.int64())})
    pq.write_table(
        table, path, compression="none", use_dictionary=False, write_page_checksum=True
    )
    assert tc.read_parquet(path).agg(s=tc.sum("k")).to_pylist() == [{"s": 499_500}]
    damaged = bytearray(path.read_bytes())
    damaged[damaged.find(struct.pack("<q", 500))] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(tc.Error, match="CRC"):
        tc.read_parquet(path).agg(s=tc.sum("k")).to_pylist()


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_buffer_cannot_claim_more_than_its_bytes_unpack_to(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "claims.arrow"
    table = pa.table({"a": list(range(1000)), "zero": [0] * 1000})
    writer = ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression=codec))
    writer.write_table(table)
    writer.close()
    assert tc.read_ipc(path).to_arrow().equals(table)
    claims = bytearray(path.read_bytes())
    place = claims.index(struct.pack("<q", 8000))
    claims[place : place + 8] = struct.pack("<q", 1 << 32)
    path.write_bytes(claims)
    with pytest.raises(tc.Error, match="claims to be 4294967296 bytes"):
        tc.read_ipc(path).to_arrow()


def test_panics_of_decoders_are_errors_and_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"a": list(range(100)), "b": [str(n) for n in range(100)]})
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    whole = sink.getvalue().to_pybytes()
    refused = 0
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path = tmp_path / "damaged.arrows"
        path.write_bytes(damaged)
        try:
            tc.read_ipc(path).to_arrow()
        except tc.Error:
            refused += 1
    assert refused > 20
    assert capfd.readouterr().err == ""


def test_json_lines_have_any_suffix_but_those_of_other_formats(tmp_path: Path) -> None:
    lines, array = '{"n":1}\n{"n":2}\n', '[{"n":1},\n{"n":2}]'
    for name, text in [
        ("events.log", lines),
        ("events", lines),
        ("a/events.ndjson", lines),
        ("b/events.json", array),
        ("logs/one.log.1", lines),
        ("mixed/rows.csv", "n\n1\n"),
    ]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "packed.log.gz").write_bytes(gzip.compress(lines.encode()))
    rows = [{"n": 1}, {"n": 2}]
    for name in ["events.log", "events", "packed.log.gz", "a", "b", "b/*.json", "logs/*"]:
        assert tc.read_json(tmp_path / name).to_pylist() == rows, name
    for other in ["events.log", "a/events.ndjson"]:
        assert tc.read_json([tmp_path / "events", tmp_path / other]).to_pylist() == rows * 2
    with pytest.raises(tc.InvalidArgument, match="its suffix tells no format"):
        tc.read_json([tmp_path / "events", tmp_path / "b/events.json"])
    for name in ["mixed/rows.csv", "mixed", "mixed/*"]:
        with pytest.raises(tc.InvalidArgument, match="a file of csv") as caught:
            tc.read_json(tmp_path / name)
        assert "read_csv" in str(caught.value.hint)
    with pytest.raises(tc.InvalidArgument, match="a file of parquet"):
        tc.read_json([tmp_path / "events", tmp_path / "rows.parquet"])
