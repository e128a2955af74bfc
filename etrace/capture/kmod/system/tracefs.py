# SPDX-License-Identifier: Apache-2.0
"""The private ftrace instance: creation, options, loss counts.

Files: Documentation/trace/ftrace.rst of the kernel. `context-info=0` takes the columns off each
line, `overwrite=0` makes a full buffer refuse (and count) the newest record, not drop the oldest.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from etrace.errors import CaptureError

MOUNT_POINTS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
OPTIONS = {"options/context-info": "0", "options/overwrite": "0", "tracing_on": "1"}
BUFFER_SIZE = "buffer_size_kb"
#: the reader is woken when a buffer is this full, instead of half full
BUFFER_PERCENT = "buffer_percent"
WAKE_PERCENT = "25"
REMOVAL_S = 5.0
PAUSE_S = 0.05


def mount_point() -> Path:
    """Return where tracefs is mounted; CaptureError when it is nowhere."""
    for place in MOUNT_POINTS:
        try:
            if (place / "instances").is_dir():
                return place
        except PermissionError as error:
            raise CaptureError(f"{place}: only root can read it", "sudo etrace doctor") from error
    raise CaptureError("tracefs is not mounted", f"mount -t tracefs none {MOUNT_POINTS[0]}")


@dataclass(frozen=True, slots=True)
class BufferCounts:
    """Sums of per_cpu/cpu*/stats over the CPUs."""

    unread: int = 0
    overrun: int = 0
    dropped: int = 0


KEYS = {
    "entries": "unread",
    "overrun": "overrun",
    "commit overrun": "overrun",
    "dropped events": "dropped",
}


@dataclass(frozen=True, slots=True)
class Tracefs:
    """A mounted tracefs. `mkdir` and `rmdir` make and remove instances there."""

    mount: Callable[[], Path] = mount_point
    mkdir: Callable[[Path], None] = os.mkdir
    rmdir: Callable[[Path], None] = os.rmdir

    def instance(self, name: str) -> Instance:
        """Return the instance of that name, which may not exist."""
        return Instance(self, self.mount() / "instances" / name)


@dataclass(frozen=True, slots=True)
class Instance:
    """One ftrace instance."""

    tracefs: Tracefs
    path: Path

    @property
    def exists(self) -> bool:
        """Whether it is there."""
        return self.path.is_dir()

    def make(self) -> None:
        """Make it, with empty buffers; replace one of a dead session."""
        try:
            self.remove()
            self.tracefs.mkdir(self.path)
        except OSError as error:
            raise CaptureError(
                f"{self.path}: {error.strerror}",
                "another program uses an instance of this name: close its readers"
                if error.errno == errno.EBUSY
                else "is the kernel locked down? see `etrace doctor`",
            ) from error

    def remove(self) -> None:
        """Remove the instance and its buffers. OSError when a reader keeps it open."""
        give_up = time.monotonic() + REMOVAL_S
        while True:
            try:
                self.tracefs.rmdir(self.path)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > give_up:
                    raise
                time.sleep(PAUSE_S)
            else:
                return

    def configure(self, buffer_kib: int) -> None:
        """Write the options and the size of the buffers, and read each back."""
        for name, value in OPTIONS.items():
            self._write(name, value)
        self._write(BUFFER_SIZE, str(buffer_kib))
        with contextlib.suppress(CaptureError):  # only how early the reader is woken
            self._write(BUFFER_PERCENT, WAKE_PERCENT)
        wrong = self.changed_options()
        if wrong:
            raise CaptureError(
                f"{self.path}: {', '.join(wrong)} did not take effect",
                "does another tool change this instance? end it",
            )
        if (size := self._buffer_kib()) < buffer_kib:
            raise CaptureError(
                f"{self.path / BUFFER_SIZE}: {size} instead of {buffer_kib}",
                "not enough memory: give a smaller --buffer-size",
            )

    def changed_options(self) -> list[str]:
        """Return `option=value` for each option that differs from what configure() wrote."""
        found = {name: self._read(name) for name in OPTIONS}
        return [
            f"{name.rpartition('/')[2]}={value}"
            for name, value in found.items()
            if value != OPTIONS[name]
        ]

    def counts(self) -> BufferCounts:
        """Return the counts of the ring buffer itself."""
        sums = {"unread": 0, "overrun": 0, "dropped": 0}
        for file in self.path.glob("per_cpu/cpu*/stats"):
            for line in file.read_text().splitlines():
                key, _, value = line.partition(":")
                if key in KEYS:
                    sums[KEYS[key]] += int(value)
        return BufferCounts(**sums)

    def _buffer_kib(self) -> int:
        # "7 (expanded: 1408)" while the buffers have their boot size
        return int(self._read(BUFFER_SIZE).split()[0])

    def _read(self, name: str) -> str:
        return (self.path / name).read_text().strip()

    def _write(self, name: str, value: str) -> None:
        path = self.path / name
        try:
            # not Path.write_text, which would make the file where there is none
            fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(fd, value.encode())
            finally:
                os.close(fd)
        except OSError as error:
            hint = (
                "not enough memory: give a smaller --buffer-size"
                if error.errno == errno.ENOMEM
                else "is the kernel's ftrace complete? see `etrace doctor`"
            )
            raise CaptureError(f"{path}: cannot write {value}: {error.strerror}", hint) from error
