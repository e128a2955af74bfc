# SPDX-License-Identifier: Apache-2.0
"""A trace that is being written -> a database of what it holds so far, made again as it grows.

The whole lines so far are copied into a private directory, and `cas parse` and `cas pp` make the
database there as they do of a trace that has ended: a running build has the same views and queries.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from etrace.capture.files import TRACE, is_being_written
from etrace.cli.top.running import Follower, find
from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database

if TYPE_CHECKING:
    from libetrace.image.file import Image

#: a database is at least this old, and this many times what it took, when it is made again
LEAST_S, SHARE = 1.0, 2.0
#: isolated, a Python of its own has the same packages
CAS = (
    f"import sys; sys.path[:] = {sys.path!r};"
    " from etrace.cli.main import cas; sys.exit(cas(sys.argv[1:]))"
)


class Live:
    """The database of a running build; a context that removes it."""

    def __init__(self, directory: Path) -> None:
        self._trace = find(directory)
        self.name = directory.resolve().name or "build"
        self._follower = Follower(self._trace)
        self._folder = tempfile.TemporaryDirectory(prefix="etrace-live-")  # only its user reads it
        self._lock = asyncio.Lock()
        self._image: Image | None = None
        self._made_at = self._took_s = 0.0
        self._has_commands = False
        self.is_running = True

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_error: object) -> None:
        self._follower.close()
        self._folder.cleanup()

    async def image(self) -> Image:
        """Return the database, made again when it is old. EtraceError before the first command."""
        async with self._lock:
            age = time.monotonic() - self._made_at
            if self._image is None or (
                self.is_running and age >= max(LEAST_S, SHARE * self._took_s)
            ):
                await self._make()
        if self._image is None:
            raise EtraceError("the build has run no command yet", "ask again in a moment")
        return self._image

    async def _make(self) -> None:
        began = time.monotonic()
        is_running = self._is_written()  # before the lines are read: the last ones are not missed
        folder = Path(self._folder.name)
        await asyncio.to_thread(self._copy, folder / TRACE)
        if self._has_commands and await _cas(folder, "parse", TRACE):
            await _cas(folder, "pp", "-q", *["--no-rules"] * is_running)
            self._image = open_database(folder)
        self.is_running = is_running
        self._made_at = time.monotonic()
        self._took_s = self._made_at - began

    def _copy(self, target: Path) -> None:
        with target.open("ab") as stream:
            for line in self._follower.lines():
                stream.write(line + b"\n")
                self._has_commands = self._has_commands or b"!New_proc" in line

    def _is_written(self) -> bool:
        """Whether the tracer still has its trace, which may have got another name at the end."""
        try:
            return is_being_written(self._trace)
        except FileNotFoundError:
            return False


async def _cas(folder: Path, *words: str) -> bool:
    """Run a command of `cas` in a folder; return whether it made what it makes."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", CAS, *words, cwd=folder, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await process.wait()
    except asyncio.CancelledError:
        process.kill()
        raise
    return Path(folder, f"{TRACE}.img").exists()
