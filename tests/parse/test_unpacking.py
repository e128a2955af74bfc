# SPDX-License-Identifier: Apache-2.0
"""What is compressed comes out whole, as far as it goes, or not at all when it is too much."""

from __future__ import annotations

import gzip
import lzma
import subprocess
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from builders import TraceBuilder

from etrace.cli.parser import main
from etrace.errors import EtraceError
from etrace.parse import unpacking
from etrace.parse.unpacking import MAX_RATIO, Salvaged, TooLargeError, allowing, most

TEXT = b"".join(b"%d,%d " % (i, i * i) for i in range(80_000))  # more than a MB
MEGA = 1 << 20
UPID = 1 << 22 | 1


@pytest.fixture
def little_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a MB what always may come out."""
    monkeypatch.setattr("etrace.parse.unpacking.FREE_BYTES", MEGA)


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


def inflate(data: bytes, name: str) -> bytes:
    return unpacking.inflate(data, name, 1 << 40)


Packer = Callable[[bytes], bytes]
Unpacker = Callable[[bytes, str], bytes]
FORMATS: dict[str, tuple[Packer, Unpacker]] = {
    "gzip": (gzip.compress, unpacking.gunzip),
    "zlib": (zlib.compress, inflate),
    "xz": (partial(lzma.compress, preset=0), unpacking.unxz),
    "zstd": (zstd, unpacking.unzstd),
}
formats = pytest.mark.parametrize(("pack", "unpack"), FORMATS.values(), ids=FORMATS)


@formats
@pytest.mark.parametrize("data", [b"", b"a", TEXT, bytes(3 * MEGA)], ids=["", "a", "text", "null"])
def test_what_was_packed_comes_out(pack: Packer, unpack: Unpacker, data: bytes) -> None:
    assert unpack(pack(data), "x") == data


@pytest.mark.parametrize("name", ["gzip", "xz", "zstd"])
def test_members_come_out_one_after_the_other(name: str) -> None:
    pack, unpack = FORMATS[name]
    padding = b"" if name == "zstd" else bytes(8)
    packed = pack(TEXT) + padding + pack(b"") + pack(b"end") + padding
    assert unpack(packed, "x") == TEXT + b"end"


@formats
@pytest.mark.usefixtures("little_is_free")
def test_a_small_file_with_much_in_it_is_refused(pack: Packer, unpack: Unpacker) -> None:
    packed = pack(bytes(4 * MEGA))
    assert len(packed) < MEGA // MAX_RATIO
    with pytest.raises(TooLargeError, match=r"^x/y: unpacked it takes more than 1 MB$") as caught:
        unpack(packed, "x/y")
    assert "--max-unpacked SIZE" in caught.value.hint
    with allowing(4 * MEGA):
        assert len(unpack(packed, "x/y")) == 4 * MEGA


@formats
def test_what_is_allowed_is_the_limit(pack: Packer, unpack: Unpacker) -> None:
    packed = pack(TEXT)
    with allowing(len(TEXT)):
        assert unpack(packed, "x") == TEXT
    with allowing(len(TEXT) - 1), pytest.raises(TooLargeError):
        unpack(packed, "x")


def test_large_data_may_be_a_hundred_times_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 1 << 22, "SC_PAGE_SIZE": 4096}.get)
    half = 1 << 33
    assert [most(n) for n in (0, MEGA, 1 << 40)] == [64 * MEGA, MAX_RATIO * MEGA, half]
    with allowing(1 << 80):
        assert most(0) == unpacking.MOST
    with allowing(None):
        assert most(0) == 64 * MEGA


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_damaged_data_comes_out_as_far_as_it_goes(name: str) -> None:
    pack, unpack = FORMATS[name]
    packed = pack(TEXT)
    out = unpack(packed[: len(packed) // 2], "x")
    assert isinstance(out, Salvaged)
    assert len(out) > MEGA // 4
    assert TEXT.startswith(out)
    with pytest.raises(EtraceError, match=rf"^x: damaged {name} data"):
        unpack(packed[:12], "x")


def test_damaged_xz_data_is_reported() -> None:
    packed = lzma.compress(TEXT, preset=0)
    for damaged in (packed[:-20], packed[:10], b"\xfd7zXZ\0" + bytes(50)):
        with pytest.raises(lzma.LZMAError):
            unpacking.unxz(damaged, "x")


@pytest.mark.usefixtures("little_is_free")
def test_as_much_of_a_section_comes_out_as_it_says() -> None:
    packed = zlib.compress(bytes(4 * MEGA))
    assert unpacking.inflate(packed, "x", 5) == bytes(5)
    with pytest.raises(TooLargeError):
        unpacking.inflate(packed, "x", 4 * MEGA)


@pytest.mark.usefixtures("little_is_free")
def test_a_trace_that_is_too_large_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = TraceBuilder(cwd="/s").exec(UPID, "/bin/sh", [b"sh"]).exit(UPID).trace()
    lines += b"no event\n" * (MEGA // 4)
    trace, out = tmp_path / ".nfsdb.zst", tmp_path / "x.json"
    trace.write_bytes(zstd(lines))
    assert main([str(trace), str(out), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert f"{trace}: unpacked it takes more than 1 MB" in error
    assert "--max-unpacked" in error
    assert not out.exists()
    assert main([str(trace), str(out), "--quiet", "--max-unpacked", "1G"]) == 2
    assert out.exists()


@pytest.mark.parametrize("word", ["0", "-1", "G", "1X", "1.5G"])
def test_a_size_that_is_none_is_wrong_use(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["a", "b", "--max-unpacked", word])
    assert "--max-unpacked" in capsys.readouterr().err
