# SPDX-License-Identifier: Apache-2.0
"""A large header that all read; the same bytes in sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice, labels


def build(folder: Path, *, shared: int, n: int = 8) -> Seconds:
    """Compile n sources: 100 ms each and 1 ms for a kB of headers; each has more of them."""
    (folder / "big.h").write_bytes(bytes(shared * 1000))
    story = Seconds()
    at = 0
    for number in range(n):
        own = 100 * number
        (folder / f"own{number}.h").write_bytes(bytes(own * 1000))
        (folder / f"f{number}.c").write_bytes(bytes(10_000))
        reads = tuple(str(folder / name) for name in ("big.h", f"own{number}.h", f"f{number}.c"))
        end = at + 100 + shared + own
        argv = ("gcc", "-c", str(folder / f"f{number}.c"), "-o", f"f{number}.o")
        story.run((at, end), *argv, reads=reads, writes=(f"/src/f{number}.o",))
        at = end + 1
    story.end(at)
    return story


def test_a_header_that_all_read(tmp_path: Path) -> None:
    found = advice(tmp_path, build(tmp_path, shared=400))["costly-headers"]
    assert found.title == "1 header that most compilations read: 3.200 s"
    assert found.gain
    assert found.gain.time_ns == pytest.approx(1600 * MS, rel=0.01)  # half of it
    assert found.gain.is_bound
    assert labels(found) == [f"{tmp_path}/big.h (8 compilations)"]


def test_headers_of_one_source_each(tmp_path: Path) -> None:
    assert "costly-headers" not in advice(tmp_path, build(tmp_path, shared=2))
