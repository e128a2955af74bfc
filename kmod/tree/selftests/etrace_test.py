#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Each program makes calls and prints the lines that etrace must record of them; both are compared.

Prints TAP, as kselftests do. Needs root, CONFIG_ETRACE and tracefs. Arguments choose programs by
name. Documentation/trace/etrace.rst describes the lines, programs/expect.h the programs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trace_lines

HERE = Path(__file__).resolve().parent
TRACEFS = Path("/sys/kernel/tracing")
INSTANCE = TRACEFS / "instances" / "etrace-selftest"
BUFFER_KIB = 4096
FAIL, SKIP = 1, 4  # KSFT_FAIL, KSFT_SKIP
NONE_OF = ("lost_events", "lost_records", "live", "untracked")


class NotRunError(Exception):
    """The program says nothing on this kernel; the message says why."""


def head_value(program: str, key: str) -> str:
    """Return what the comment at the head of a program says after `key:`."""
    text = (HERE / "programs" / f"{program.rpartition('_')[0]}.c").read_text()
    match = re.search(rf"^ \* {key}: (.*)$", text, re.MULTILINE)
    return match[1] if match else ""


def version(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a release."""
    return tuple(int(word) for word in re.findall(r"\d+", text)[:2])


def ectl(*words: str | Path, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run ectl, which drives etrace over generic netlink."""
    return subprocess.run([HERE / "ectl", *words], check=False, **options)  # type: ignore[call-overload, no-any-return]


def obstacle() -> str:
    """Return why nothing can be tested here, empty when all is there."""
    if os.geteuid():
        return "must be run as root"
    if not (TRACEFS / "instances").is_dir():
        subprocess.run(["mount", "-t", "tracefs", "none", TRACEFS], check=False)
    if not (TRACEFS / "instances").is_dir():
        return f"no tracefs at {TRACEFS}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if ectl("status", **quiet).returncode:
        subprocess.run(["modprobe", "etrace"], check=False)
    if ectl("status", **quiet).returncode:
        return "this kernel has no etrace: CONFIG_ETRACE"
    return ""


def make_instance() -> None:
    """Make an instance whose pipe has the lines and nothing else, and that overwrites none."""
    INSTANCE.mkdir(exist_ok=True)
    for name, value in {
        "options/overwrite": "0",
        "options/context-info": "0",
        "buffer_size_kb": str(BUFFER_KIB),
    }.items():
        (INSTANCE / name).write_text(value)


def drain() -> bytes:
    """Return the lines that were recorded."""
    descriptor = os.open(INSTANCE / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    pieces = []
    try:
        while piece := os.read(descriptor, 65536):
            pieces.append(piece)
    except BlockingIOError:
        pass
    finally:
        os.close(descriptor)
    return b"INITCWD=/\n" + b"".join(pieces)


def counters(said: bytes) -> dict[str, int]:
    """Read the lines `name value` whose values are numbers."""
    return {name.decode(): int(value) for name, value in re.findall(rb"(?m)^(\w+) (\d+)$", said)}


def lay_out(names: list[str], place: Path) -> None:
    """Copy the programs to PLACE/MODE/NAME: one executes the same program of the other mode."""
    for name in names:
        program = place_of(name, place)
        program.parent.mkdir(exist_ok=True)
        shutil.copy(HERE / name, program)


def place_of(name: str, place: Path) -> Path:
    """Return where a program lies while it runs."""
    program, _, mode = name.rpartition("_")
    return place / mode / program


def run(name: str, place: Path, folder: str) -> str:
    """Trace one program; return how its lines differ from those that it said, empty when equal."""
    since = head_value(name, "since")
    if since and version(os.uname().release) < version(since):
        raise NotRunError(f"makes a call of Linux {since}")
    program = place_of(name, place)
    options = head_value(name, "options").split()
    began_ns = time.monotonic_ns()
    done = ectl("run", "--instance", INSTANCE.name, *options, "--", program,
                cwd=folder, capture_output=True, stdin=subprocess.DEVNULL)  # fmt: skip
    trace = trace_lines.parse(drain())
    counts = counters(done.stderr)
    if not counts:
        return f"ectl ended with {done.returncode}: {done.stderr.decode(errors='replace')}"
    trace_lines.check_stamps(trace, began_ns, time.monotonic_ns())
    if found := trace_lines.compare_run(done.stdout, trace, os.fsencode(program)):
        return found
    if f"Exit|status={counts['exit']}".encode() not in [line.data for line in trace.lines]:
        return f"no Exit with status {counts['exit']}"
    bad = [f"{counter} is {counts[counter]}" for counter in NONE_OF if counts[counter]]
    return ", ".join(bad)


@contextmanager
def in_memory() -> Iterator[Path]:
    """Mount a tmpfs: programs link, open deleted files and O_TMPFILE; an overlay hides links."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def result(number: int, name: str, place: Path) -> bool:
    """Run one program and print its line; whether it did not fail."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        Path(folder).chmod(0o755)  # a program becomes somebody else
        try:
            difference = run(name, place, folder)
        except NotRunError as why:
            print(f"ok {number} {name} # SKIP {why}", flush=True)
            return True
        except (AssertionError, OSError, StopIteration) as error:
            difference = f"{type(error).__name__}: {error}"
    for line in difference.splitlines():
        print(f"# {line}")
    print(f"{'not ok' if difference else 'ok'} {number} {name}", flush=True)
    return not difference


def main(wanted: list[str]) -> int:
    """Run the programs; return the status of a kselftest."""
    print("TAP version 13")
    if why := obstacle():
        print(f"1..0 # SKIP {why}")
        return SKIP
    built = sorted(path.name for path in HERE.glob("*_[36][24]"))
    names = [name for name in built if not wanted or name in wanted]
    print(f"1..{len(names)}", flush=True)
    make_instance()
    with in_memory() as place:
        lay_out(names, place)
        results = [result(number, name, place) for number, name in enumerate(names, 1)]
    INSTANCE.rmdir()
    print(f"# Totals: pass:{sum(results)} fail:{len(results) - sum(results)}")
    return 0 if results and all(results) else FAIL


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
