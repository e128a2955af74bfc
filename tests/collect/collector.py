# SPDX-License-Identifier: Apache-2.0
"""etrace_cat under test: where it is, how it is run and what it left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from backends import need_tool
from collect.ring_buffer import Event, Instance, entry, page, plain_event
from trying import LIMIT_S, until

VARIABLE = "ETRACE_CAT"
TOP = Path(__file__).parents[2]


def program() -> Path:
    """Return etrace_cat; a missing one fails the test with what to do about it."""
    named = os.environ.get(VARIABLE)
    installed = Path(sysconfig.get_path("platlib")) / "etrace" / "libexec" / "etrace_cat"
    path = Path(named) if named else installed
    if not path.is_file():
        pytest.fail(f"{path} is missing: run `make build`, or set {VARIABLE} to a build")
    return path


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run left: status, output, messages and the stats."""

    status: int
    text: bytes
    messages: str
    stats: dict[str, Any]


def replay(instance: Path, *options: str | Path) -> Collected:
    """Print a saved instance."""
    return collect("--raw", instance, *options)


def collect(*options: str | Path, pass_fds: Sequence[int] = ()) -> Collected:
    """Run etrace_cat to its end."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as stats:
        try:
            done = subprocess.run(
                [program(), "--stats-fd", str(write_end), *options],
                capture_output=True,
                check=False,
                pass_fds=[write_end, *pass_fds],
                timeout=120,
            )
        finally:
            os.close(write_end)
        text = stats.read()
    counters = json.loads(text) if text else {}
    return Collected(done.returncode, done.stdout, done.stderr.decode(), counters)


def build(folder: Path, defines: list[str], libraries: list[str]) -> Path:
    """Build etrace_cat in `folder` and return it."""
    out = folder / "etrace_cat"
    native = TOP / "native"
    sources = [
        path for part in ("collect", "format") for path in sorted((native / part).glob("*.c"))
    ]
    own = ("output", "program", "report", "rlimits")
    sources += [native / "capture" / f"{name}.c" for name in own]
    includes = [f"-I{native}", f"-I{native}/format", f"-I{TOP}/kmod/include"]
    done = subprocess.run(
        ["gcc", "-std=gnu11", "-O1", "-D_GNU_SOURCE", '-DETRACE_VERSION="test"', *defines,
         *includes, *sources, "-o", out, *libraries],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stderr}\n(apt-get install gcc libzstd-dev)"
    return out


def decompressed(path: Path) -> bytes:
    """Return what a file of zstd frames holds."""
    done = subprocess.run(
        [need_tool("zstd", "zstd"), "-dc", path], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- etrace_cat on a make-believe tracefs, whose CPUs are pipes that the test writes


N_CPUS = 3


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def close(cpu: int, time_ns: int | None = None, upid: int = 1 << 22 | 5) -> Event:
    return plain_event(upid, time_ns or now_ns(), cpu, "Close", {"fd": cpu})


def content(*events: Event) -> bytes:
    return page(b"".join(entry(data) for event in events for data in event.records()))


class Live:
    """A running etrace_cat and the pipes that it takes for ring buffers."""

    def __init__(
        self,
        tracefs: Path,
        stack: ExitStack,
        option: str = "",
        fd: int = -1,
        *,
        output_fd: int | None = None,
        env: Mapping[str, str] | None = None,
        limit: Callable[[], object] | None = None,
        stats: bool = True,
    ) -> None:
        instance = Instance(tracefs / "instances/etrace")
        instance.write_description()
        self.instance = instance.path
        for number in range(N_CPUS):
            os.mkfifo(instance.cpu(number) / "trace_pipe_raw")
            (instance.cpu(number) / "stats").write_text("entries: 0\ndropped events: 0\n")
        self.out = tracefs / "out"
        self.stats_path = tracefs / "stats"
        ready_read, ready_write = os.pipe()
        extra = [option, str(fd)] if option else []
        extra += ["--stats", str(self.stats_path)] if stats else []
        output = ["-o", str(self.out)] if output_fd is None else ["--output-fd", str(output_fd)]
        passed = [n for n in (ready_write, fd, output_fd) if n is not None and n >= 0]
        self.process = stack.enter_context(
            subprocess.Popen(
                [program(), "--tracefs", tracefs, *output, "--ready-fd", str(ready_write), *extra],
                stderr=subprocess.PIPE, pass_fds=passed, env=env, preexec_fn=limit,  # noqa: PLW1509 (no threads here)
            )
        )  # fmt: skip
        stack.callback(self.process.kill)
        os.close(ready_write)
        with os.fdopen(ready_read, "rb") as ready:
            assert ready.read() == b"\n", self.messages()  # and then closed
        self.cpus: list[IO[bytes]] = [
            stack.enter_context((instance.cpu(n) / "trace_pipe_raw").open("wb", buffering=0))
            for n in range(N_CPUS)
        ]

    def messages(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read().decode()

    def write(self, cpu: int, *events: Event) -> None:
        self.cpus[cpu].write(content(*events))

    def end(self, number: int = signal.SIGTERM) -> bytes:
        self.process.send_signal(number)
        assert self.process.wait(LIMIT_S) in {0, 2}
        return self.out.read_bytes()

    def wait_for(self, text: bytes) -> None:
        until(lambda: self.out.read_bytes() == text, self.out.read_bytes)

    def stats(self) -> dict[str, int]:
        loaded: dict[str, int] = json.loads(self.stats_path.read_text())
        return loaded
