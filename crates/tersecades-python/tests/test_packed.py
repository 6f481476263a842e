"""Packed files against Python's own readers and the bytes they were made of."""

import gzip
import random
import zlib
from pathlib import Path
from typing import Literal

import pytest
import tersecades as tc

WORDS = [b"probe ", b"slow ", b"error 7\n", b"cluster-12/node ", b"ok;"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "log"
    path.write_bytes(b"".join(random.Random(1).choices(WORDS, k=50_000)))
    return path


@pytest.mark.parametrize("layout", ["zlib", "zstd", "lz4"])
def test_any_part_is_what_the_file_has(
    log: Path, layout: Literal["zlib", "zstd", "lz4"]
) -> None:
    raw = log.read_bytes()
    packed = tc.pack(log, log.with_suffix(f".{layout}"), layout=layout)
    assert (packed.size, len(packed), packed.layout) == (len(raw), len(raw), layout)
    assert packed.stored_size < len(raw) / 2
    packed.verify()
    choose = random.Random(2)
    for _ in range(300):
        offset, length = choose.randrange(len(raw) + 10), choose.randrange(40_000)
        assert packed.read_at(offset, length) == raw[offset : offset + length]


def test_stock_zlib_reads_the_whole(log: Path) -> None:
    tc.pack(log, log.with_suffix(".tcz"), partition=4096, level=9)
    packed = log.with_suffix(".tcz").read_bytes()
    assert gzip.decompress(packed) == log.read_bytes()
    assert zlib.decompressobj(wbits=31).decompress(packed) == log.read_bytes()


def test_errors_name_the_file(log: Path) -> None:
    with pytest.raises(tc.Corrupt, match="no packed file") as raised:
        tc.open_packed(log)
    assert raised.value.file == str(log)
    with pytest.raises(tc.InvalidArgument, match="layouts are zlib, zstd, lz4"):
        tc.pack(log, log.with_suffix(".x"), layout="rar")  # type: ignore[arg-type]
    with pytest.raises(OSError, match="nowhere"):
        tc.open_packed("/nowhere/at/all.tcz")


def test_any_part_of_a_gzip_file_of_others(log: Path) -> None:
    raw = log.read_bytes() * 12
    path = log.with_suffix(".gz")
    path.write_bytes(gzip.compress(raw[:100_000]) + gzip.compress(raw[100_000:], 6))
    for index in (None, log.with_suffix(".index"), log.with_suffix(".index")):
        opened = tc.open_gzip(path, index=index)
        assert (opened.size, len(opened)) == (len(raw), len(raw))
        choose = random.Random(3)
        for _ in range(20):
            offset, length = choose.randrange(len(raw) + 10), choose.randrange(40_000)
            assert opened.read_at(offset, length) == raw[offset : offset + length]
    assert log.with_suffix(".index").stat().st_size < len(raw) / 50
    log.with_suffix(".index").write_bytes(b"not an index")
    with pytest.raises(tc.Corrupt):
        tc.open_gzip(path, index=log.with_suffix(".index"))
    with pytest.raises(tc.Corrupt):
        tc.open_gzip(log)
