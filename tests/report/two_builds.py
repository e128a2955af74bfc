# SPDX-License-Identifier: Apache-2.0
"""Builds of one program to compare, said by traces: what differs is an argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from builders import O_CREAT, O_TRUNC, O_WRONLY, TraceBuilder
from databases import database_of
from libetrace.depend.configuration import load
from libetrace.image.file import Image

from etrace.nfsdb.store import open_database
from etrace.postprocess.run import PHASES, postprocess

MS = 1_000_000
NEW = O_CREAT | O_WRONLY | O_TRUNC
MAKE, SH = 1 << 22 | 1, 2 << 22 | 2


@dataclass(frozen=True)
class Recipe:
    """`make` in `root`: configure with some probes, a `cc1` for each source (ms), `ld`."""

    root: Path
    sources: Mapping[str, int] = field(default_factory=lambda: {"a": 100, "b": 200})
    flag: str = "-O2"
    headers: Sequence[str] = ("a.h",)
    probes: int = 0
    failing: Sequence[str] = ()
    program: str = "prog"
    n_bytes: int = 1000  #: of the program
    with_usage: bool = True
    started_in: str = ""  #: below the root, or above it

    def write(self, folder: Path) -> Image:
        """Write the files that are there in the end and the database; returns its image."""
        for name in (*(f"{s}.c" for s in self.sources), *self.headers):
            (self.root / name).write_bytes(b"x" * 100)
        made = [] if self.failing else [self.program]
        for name in (*(f"{s}.o" for s in self.sources if s not in self.failing), *made):
            (self.root / name).write_bytes(b"\x7fELF" + bytes(self.n_bytes - 4))
        folder.mkdir()
        image = database_of(folder, self._trace())
        postprocess(image, load(folder), PHASES, jobs=1)
        return open_database(folder)

    def _trace(self) -> bytes:
        here = str(self.root)
        t = TraceBuilder(str(self.root / self.started_in), step_ns=0)
        t.exec(MAKE, "/usr/bin/make", ["make"], cwd=here)
        upids = iter(n << 22 | n for n in range(3, 1 << 20))
        if self.probes:
            t.fork(MAKE, SH).exec(SH, "/bin/sh", ["sh", "configure"], cwd=here)
            for n in range(self.probes):
                is_bad = n == 1 and "probe" in self.failing
                self._command(t, next(upids), ["probe"], 5, (), (), SH, is_bad=is_bad)
            self._end(t, SH, 1, 0)
        for name, ms in self.sources.items():
            argv = ["cc1", self.flag, f"-I{here}", f"{name}.c", "-o", f"{name}.o"]
            reads, made = [f"{name}.c", *self.headers], [f"{name}.o"]
            is_bad = name in self.failing
            self._command(t, next(upids), argv, ms, reads, () if is_bad else made, is_bad=is_bad)
        objects = [f"{name}.o" for name in self.sources]
        if not self.failing:
            argv = ["ld", "-o", self.program, *objects]
            self._command(t, next(upids), argv, 50, objects, [self.program])
        self._end(t, MAKE, 10, 2 if self.failing else 0)
        return t.trace()

    def _command(
        self, t: TraceBuilder, upid: int, argv: list[str], ms: int,
        reads: Sequence[str], writes: Sequence[str], parent: int = MAKE, *, is_bad: bool = False,
    ) -> None:  # fmt: skip
        here = str(self.root)
        t.fork(parent, upid).exec(upid, f"/usr/bin/{argv[0]}", argv, cwd=here)
        for name in reads:
            t.use(upid, f"{here}/{name}")
        for name in writes:
            t.use(upid, f"{here}/{name}", flags=NEW)
        t.clock_ns += ms * MS
        if is_bad:
            t.written(upid, f"{argv[-1]}:1: error: ``` <b>\n")
        self._end(t, upid, ms, int(is_bad))

    def _end(self, t: TraceBuilder, upid: int, ms: int, status: int) -> None:
        if self.with_usage:
            t.usage(upid, ms * MS, 0)
        t.exit(upid, status)
