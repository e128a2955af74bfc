# SPDX-License-Identifier: Apache-2.0
"""Builds of seconds, said by traces: with a fault that a rule finds, or without it."""

from __future__ import annotations

from pathlib import Path

from builders import TraceBuilder
from databases import database_of
from libetrace.depend.configuration import load
from libetrace.image.file import Image
from timing.builds import Story

from etrace.advise.build import Build
from etrace.advise.finding import Finding
from etrace.advise.rules import findings
from etrace.nfsdb.products import reopen
from etrace.postprocess.run import postprocess

MS = 1_000_000
MAKE = 1 << 22 | 1
PHASES = ("linked", "compilations")


class Seconds(Story):
    """A make from 0, whose jobs are numbered; times in ms.

    What starts when a child ends counts as started by its parent before that: leave a gap.
    """

    def __init__(self, *argv: str) -> None:
        super().__init__(MS)
        self.n = 1
        self.at(0).exec(MAKE, "/usr/bin/make", ["make", *argv])

    def upid(self) -> int:
        """Return the next process."""
        self.n += 1
        return self.n << 22 | self.n

    def run(
        self, span: tuple[int, int], *argv: str, parent: int = MAKE, reads: tuple[str, ...] = (),
        writes: tuple[str, ...] = (), status: int = 0,
    ) -> int:  # fmt: skip
        """Let a program run, by its name in argv; return its process."""
        upid, (begin, end) = self.upid(), span
        self.at(begin).fork(parent, upid).exec(upid, f"/usr/bin/{argv[0]}", list(argv))
        for path in reads:
            self.at(begin).use(upid, path)
        for path in writes:
            self.at(begin).open(upid, path, flags=0o1101)
            self.at(end).close(upid)
        self.at(end).exit(upid, status)
        return upid

    def compile(self, span: tuple[int, int], name: str, *options: str, parent: int = MAKE) -> int:
        """Compile `name`.c."""
        argv = ("gcc", *options, "-c", f"{name}.c", "-o", f"{name}.o")
        return self.run(
            span, *argv, parent=parent, reads=(f"/src/{name}.c",), writes=(f"/src/{name}.o",)
        )

    def begin(self, time: int, *argv: str, parent: int = MAKE) -> int:
        """Start a program that `end` ends."""
        upid = self.upid()
        self.at(time).fork(parent, upid).exec(upid, f"/usr/bin/{argv[0]}", list(argv))
        return upid

    def end(self, time: int, upid: int = MAKE, status: int = 0) -> TraceBuilder:
        """End a program, by default make."""
        return self.at(time).exit(upid, status)


def image_of(folder: Path, story: Story) -> Image:
    """Make the database of a build, with modules and compilations."""
    image = database_of(folder, story.builder.trace())
    postprocess(image, load(folder), PHASES)
    return reopen(image.path)


def advice(folder: Path, story: Story) -> dict[str, Finding]:
    """Return the findings of a build by their ids."""
    found = findings(Build(image_of(folder, story)))
    assert len({each.id for each in found}) == len(found)
    return {each.id: each for each in found}


def labels(finding: Finding) -> list[str]:
    """Return the texts of the evidence."""
    return [each.text for each in finding.evidence]
