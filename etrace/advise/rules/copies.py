# SPDX-License-Identifier: Apache-2.0
"""Files that are copied around while the build waits."""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import Build, none_of
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds, size
from etrace.query.rows.usage import Usages

IDS = ("copies",)
COPIERS = frozenset(b"cp mv install ginstall rsync tar bsdtar cpio dd".split())


def find(build: Build) -> Iterator[Finding]:
    """Take programs that copy out."""
    rows = [
        row for row in range(build.executions.n_rows)
        if build.program(row) in COPIERS and not build.is_probe(row)
    ]  # fmt: skip
    gain = build.gain(none_of(rows), is_bound=True)
    if gain is None:
        return
    times = {row: build.own_ns([row]) for row in rows}
    wrote = Usages(build.image).total(rows, "wchar_bytes")
    yield Finding(
        IDS[0],
        f"{count(len(rows), 'copy')} of files: {seconds(sum(times.values()))}",
        "" if wrote is None else f"They wrote {size(wrote)}.",
        "Write results where they are needed, make links (ln, cp -l, cp --reflink) or rename"
        " within one file system; copy all files of a directory in one command; keep temporary"
        " files on a fast file system (TMPDIR=/dev/shm).",
        Sure.POSSIBLE,
        "some of the copies may be the purpose of the build",
        gain,
        build.commands(times),
        len(rows),
    )
