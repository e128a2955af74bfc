# SPDX-License-Identifier: Apache-2.0
"""The state of the running session between two commands: /run/etrace.

`session.json` is there from before the collector runs until the session was taken apart, so that
whatever dies in between, the next command knows what to clean. `lock` is held while a command
works on it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etrace.capture.kmod.system.output import GONE, ZSTD_SUFFIX, Handed, Output
from etrace.capture.kmod.system.owner import Owner
from etrace.capture.kmod.system.process import Process
from etrace.errors import CaptureError

DIRECTORY = Path("/run/etrace")
SCHEMA = 1
LOCK_S = 10.0
PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class State:
    """A session: who traces what into which file, and what was changed for it.

    `root` is for people; `root_pid` is 0 when a control group is traced; `started` is in seconds
    since 1970; `trace` is the device and inode of the unfinished trace. `driver` is the `etrace
    run` that will end the session, None for `etrace start`; `session` is 0 until the kernel gave it
    a number; `stopping` says that the collector was asked to end. `before` are the counts of the
    collectors before this one, which were killed.
    """

    root: str
    root_pid: int
    started: float
    output: Output
    trace: tuple[int, int]
    trace_name: str
    instance: str
    buffer_kib: int
    collector: Process
    driver: Process | None = None
    session: int = 0
    loaded_module: bool = False
    stopping: bool = False
    before: dict[str, int] = field(default_factory=dict)

    @property
    def is_compressed(self) -> bool:
        """Whether the trace is."""
        return self.trace_name.endswith(ZSTD_SUFFIX)

    @property
    def is_driven(self) -> bool:
        """Whether the `etrace run` that began it lives, and will end it."""
        return self.driver is not None and self.driver.is_alive()

    def to_json(self) -> dict[str, Any]:
        """Return it as session.json holds it."""
        raw = dataclasses.asdict(self)
        raw["output"]["directory"] = str(self.output.directory)
        return {"schema": SCHEMA, **raw}


def _output_from_json(raw: dict[str, Any]) -> Output:
    """Return where the trace goes; a descriptor was that of the process that wrote the state."""
    owner = raw["owner"]
    place = (
        Path(raw["directory"]),
        Owner(owner["uid"], owner["gid"], tuple(owner["groups"])),
        (raw["identity"][0], raw["identity"][1]),
    )
    return Handed(*place, GONE) if "fd" in raw else Output(*place)


def _from_json(raw: dict[str, Any]) -> State:
    if raw.pop("schema") != SCHEMA:
        raise ValueError("another version wrote it")
    device, inode = raw.pop("trace")
    return State(
        output=_output_from_json(raw.pop("output")),
        trace=(device, inode),
        collector=Process(**raw.pop("collector")),
        driver=Process(**driver) if (driver := raw.pop("driver")) else None,
        **raw,
    )


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The directory; only root writes it, everybody may read it."""

    path: Path = DIRECTORY

    @property
    def session_file(self) -> Path:
        """The file of `State`."""
        return self.path / "session.json"

    @property
    def progress(self) -> Path:
        """The collector's counts while it runs."""
        return self.path / "progress"

    @property
    def collector_stats(self) -> Path:
        """The collector's stats when it has ended."""
        return self.path / "collector.stats"

    @property
    def collector_log(self) -> Path:
        """The collector's messages."""
        return self.path / "collector.log"

    def make(self) -> None:
        """Make it; CaptureError when something that root did not make is in its place."""
        try:
            with contextlib.suppress(FileExistsError):
                self.path.mkdir(mode=0o755)
                self.path.chmod(0o755)  # whatever the umask is
            found = self.path.lstat()
        except OSError as error:
            raise CaptureError(f"{self.path}: {error.strerror}", "run it as root") from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise CaptureError(
                f"{self.path}: not a directory that only root can write", "remove it"
            )

    @contextlib.contextmanager
    def locked(self, patience_s: float = LOCK_S) -> Iterator[None]:
        """Be the only command that starts or stops a session; wait for others for a while."""
        self.make()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self.path / "lock", flags, 0o600)
        except OSError as error:
            raise CaptureError(
                f"{self.path}: {error.strerror}", "is it on a read-only file system?"
            ) from error
        try:
            _lock(fd, patience_s)
            yield
        finally:
            os.close(fd)

    def create(self, path: Path) -> int:
        """Create one of the files again; return its descriptor."""
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = os.open(path, flags, 0o644)
        os.fchmod(fd, 0o644)
        return fd

    @contextlib.contextmanager
    def created(self, path: Path) -> Iterator[int]:
        """Create one of the files again, open inside the block."""
        fd = self.create(path)
        try:
            yield fd
        finally:
            os.close(fd)

    def read(self) -> State | None:
        """Return the session; None when there is none."""
        try:
            return _from_json(json.loads(self.session_file.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise CaptureError(
                f"{self.session_file}: unreadable: {error}",
                "end the process etrace_cat if one runs, then remove the file",
            ) from error

    def write(self, state: State) -> None:
        """Replace the state; a reader sees the old or the new one, whole."""
        temporary = self.path / "session.json.tmp"
        with open(self.create(temporary), "w", encoding="ascii") as file:  # noqa: PTH123
            json.dump(state.to_json(), file)
        temporary.replace(self.session_file)

    def clear(self) -> None:
        """Forget the session."""
        for path in (self.session_file, self.progress, self.collector_stats, self.collector_log):
            path.unlink(missing_ok=True)


def _lock(fd: int, patience_s: float) -> None:
    give_up = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > give_up:
                raise CaptureError(
                    "another etrace is starting or stopping a session", "wait for it, then retry"
                ) from error
            time.sleep(PAUSE_S)
        else:
            return
