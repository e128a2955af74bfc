# SPDX-License-Identifier: Apache-2.0
"""Scale a trace: N copies of it, one after the other, as one build.

Copy k has every upid shifted by k * 2^32 and every stamp moved on by k times the length of the trace;
its root is forked by the root of the first copy. Upid 0 stays 0.

    python bench/scale.py tests/golden/lua.nfsdb.xz 200 /tmp/lua-200.nfsdb
"""

from __future__ import annotations

import argparse
import lzma
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

UPID_SHIFT = 1 << 32
NS_PER_SECOND = 10**9
LINE = re.compile(rb"((?:0: )?)(\d+),(\d+),(\d+),(\d+)!((?:SchedFork\|pid=|UPID\|)?)(.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what is copied, and the numbers that are not."""

    lead: bytes
    upid: int
    cpu: bytes
    time_ns: int
    tag: bytes
    named_upid: int  # in the data, -1 when there is none
    rest: bytes


def read_trace(path: Path) -> bytes:
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", str(path)], check=True, stdout=subprocess.PIPE).stdout
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    return path.read_bytes()


def parse_line(text: bytes) -> Line:
    match = LINE.fullmatch(text)
    if match is None:
        raise SystemExit(f"not an event line: {text[:80]!r}")
    lead, upid, cpu, seconds, fraction, tag, rest = match.groups()
    time_ns = int(seconds) * NS_PER_SECOND + int(fraction)
    if tag:
        return Line(lead, int(upid), cpu, time_ns, tag, int(rest), b"")
    return Line(lead, int(upid), cpu, time_ns, b"", -1, rest)


def shift_upid(upid: int, copy: int) -> int:
    return upid + copy * UPID_SHIFT if upid else 0


def format_line(line: Line, copy: int, length_ns: int) -> bytes:
    seconds, fraction = divmod(line.time_ns + copy * length_ns, NS_PER_SECOND)
    named = b"%d" % shift_upid(line.named_upid, copy) if line.named_upid >= 0 else b""
    upid = shift_upid(line.upid, copy)
    head = b"%s%d,%s,%d,%d!" % (line.lead, upid, line.cpu, seconds, fraction)
    return head + line.tag + named + line.rest + b"\n"


def fork_of_root(root: Line, copy: int, length_ns: int) -> bytes:
    seconds, fraction = divmod(root.time_ns + copy * length_ns, NS_PER_SECOND)
    child = shift_upid(root.upid, copy)
    return b"%s%d,0,%d,%d!SchedFork|pid=%d\n" % (root.lead, root.upid, seconds, fraction, child)


def scale(source: Path, n_copies: int, target: Path) -> None:
    """Write `n_copies` of the trace `source` (may be .zst or .xz) to `target`."""
    first, *rest = read_trace(source).splitlines()
    lines = [parse_line(text) for text in rest]
    stamps = [line.time_ns for line in lines]
    length_ns = max(stamps) - min(stamps) + NS_PER_SECOND
    with target.open("wb") as out:
        out.write(first + b"\n")
        for copy in range(n_copies):
            if copy:
                out.write(fork_of_root(lines[0], copy, length_ns))
            out.write(b"".join([format_line(line, copy, length_ns) for line in lines]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("copies", type=int)
    parser.add_argument("target", type=Path)
    args = parser.parse_args()
    scale(args.source, args.copies, args.target)


if __name__ == "__main__":
    main()
