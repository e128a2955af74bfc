# SPDX-License-Identifier: Apache-2.0
"""etrace_cat that runs on a make-believe tracefs, whose CPUs are pipes that the test writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from collector import program
from ring_buffer import Event, Instance, entry, page, plain_event

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
        assert self.process.wait(30) in {0, 2}
        return self.out.read_bytes()

    def wait_for(self, text: bytes) -> None:
        deadline = time.monotonic() + 30
        while self.out.read_bytes() != text:
            assert time.monotonic() < deadline, self.out.read_bytes()
            time.sleep(0.01)

    def stats(self) -> dict[str, int]:
        loaded: dict[str, int] = json.loads(self.stats_path.read_text())
        return loaded
