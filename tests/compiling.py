# SPDX-License-Identifier: Apache-2.0
"""Compilations as traces, and what `cas pp` finds in a database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from builders import O_CREAT, O_TRUNC, O_WRONLY, Text, TraceBuilder
from databases import parse_bytes
from libetrace.depend import configuration as config
from libetrace.image.file import Image

from etrace.nfsdb.products import StringTable
from etrace.nfsdb.store import open_database
from etrace.postprocess.compilations.phase import Compilations
from etrace.postprocess.compilations.probe import Prober
from etrace.postprocess.run import Work

MAKE = 1
CREATE = O_WRONLY | O_CREAT | O_TRUNC


class BuildTeller(TraceBuilder):
    """A build in /src by one make, which is upid 1."""

    def __init__(self) -> None:
        super().__init__("/src")
        self.exec(MAKE, "/usr/bin/make", ["make"])

    def run(
        self,
        upid: int,
        binary: Text,
        command: str | list[Text],
        *,
        parent: int = MAKE,
        reads: Iterable[Text | tuple[Text, Text]] = (),
        writes: Iterable[Text] = (),
        cwd: Text | None = None,
        before: Iterable[Text] = (),
    ) -> Self:
        """`parent` starts a program; `reads` are paths or (original, resolved) ones.

        `before` are what it reads before its exec.
        """
        self.fork(parent, upid)
        for path in before:
            self.use(upid, path)
        argv = list[Text](command.split()) if isinstance(command, str) else command
        self.exec(upid, binary, argv, cwd=cwd)
        for read in reads:
            original, resolved = read if isinstance(read, tuple) else (read, read)
            self.use(upid, resolved, original=original)
        for path in writes:
            self.use(upid, path, flags=CREATE)
        return self

    def end(self, *upids: int, status: int = 0) -> Self:
        """These processes end, in this order."""
        for upid in upids:
            self.exit(upid, status)
        return self

    def gcc(self, upid: int, command: str, source: Text, made: Text, **options: Text) -> Self:
        """Run `gcc -c` or the like with cc1 and as (upid + 1 and + 2); `options`: binary, cwd."""
        assembly = f"/tmp/cc{upid:06}.s"
        self.run(upid, options.pop("binary", "/usr/bin/gcc"), command, **options)  # type: ignore[arg-type]
        self.run(
            upid + 1, "/usr/lib/gcc/x86_64-linux-gnu/12/cc1", f"cc1 -quiet x.c -o {assembly}",
            parent=upid, reads=[source], writes=[assembly],
        )  # fmt: skip
        self.run(
            upid + 2, "/usr/bin/as", f"as -o x.o {assembly}",
            parent=upid, reads=[assembly], writes=[made],
        )  # fmt: skip
        return self.end(upid + 1, upid + 2, upid)


@dataclass(frozen=True, slots=True)
class Found:
    """One compilation, shown; paths as text."""

    argv0: str
    language: str = "c"
    files: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    definitions: tuple[tuple[str, str, bool], ...] = ()
    headers: tuple[str, ...] = ()
    is_child: bool = False


def write_database(directory: Path, trace: bytes) -> Image:
    """Parse a trace into a directory and open the database."""
    texts = parse_bytes(trace)
    names = (".nfsdb.json", ".nfsdb.env.json", ".nfsdb.mounts.json")
    for name, text in zip(names, texts, strict=True):
        (directory / name).write_bytes(text)
    return open_database(directory)


def find(image: Image, prober: Prober | None = None) -> list[Found]:
    """Return the compilations of a database, shown."""
    work = Work(image, StringTable(image), config.load(image.path.parent), 1, lambda *_: None)
    arguments, executions = image["arguments"]["string"], image["executions"]

    def show(path: bytes) -> str:
        return path.decode("utf-8", "surrogateescape")

    return [
        Found(
            argv0=show(image.string(arguments[executions["argv.start"][it.execution]])),
            language=it.language,
            files=tuple(map(show, it.files)),
            objects=tuple(show(image.path_string(row)) for row in it.objects),
            includes=tuple(map(show, it.includes)),
            definitions=tuple((show(d.name), show(d.value), d.is_undef) for d in it.definitions),
            headers=tuple(map(show, it.headers)),
            is_child=it.is_child,
        )
        for it in Compilations(work, prober).find()
    ]
