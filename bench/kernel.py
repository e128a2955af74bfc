# SPDX-License-Identifier: Apache-2.0
"""What the kernel module costs, in instructions of a guest whose clock counts them.

QEMU's `-icount shift=0` makes an instruction of the guest a nanosecond: figures repeat within
one percent on any machine. They are no cycles: cache misses and contention are not in them.
init_on_alloc=0, for zeroing by `rep stosb` counts each byte as an instruction.

    PYTHONPATH=tests python3 bench/kernel.py [KERNEL...]
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from vm import kernels, machine
from vm.archive import ArchiveError, run
from vm.rig import BUILD, numbers

PROGRAMS = Path(__file__).resolve().parent / "kernel"
BOOT = machine.Boot(
    cpus=1,
    append=("init_on_alloc=0",),
    qemu=("-icount shift=0,sleep=off",),
    seconds=3600,
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what tracing adds to a native figure, and what is asked of it."""

    name: str
    traced: str
    native: str
    asked: int


ROWS = (
    Row("open+close, traced", "traced_open_close", "native_open_close", 2500),
    Row("fork+exec+exit, traced", "traced_fork_exec_exit", "native_fork_exec_exit", 12500),
    Row("getpid, traced", "traced_getpid", "native_getpid", 0),
    Row("getpid, untraced", "untraced", "native_getpid", 90),
    Row("getpid, untraced, --isolate", "untraced_isolated", "native_getpid", 0),
    Row("getpid, after rmmod", "after_getpid", "native_getpid", 0),
    Row("etrace_cat, a line", "etrace_cat_line", "", 1000),
    Row("trace_pipe, a line", "trace_pipe_line", "", 0),
)


def measure(name: str) -> dict[str, int]:
    """Boot the kernel called `name` and return the figures that bench.sh leaves."""
    kernel = kernels.find(name)
    work = BUILD / f"bench-{name}"
    shutil.rmtree(work, ignore_errors=True)
    (work / "bin").mkdir(parents=True)
    kernels.build_module(kernel, work)
    run("make", "-s", "-C", machine.GUEST, f"OUT={work}/bin")
    for source in sorted(PROGRAMS.glob("*.c")):
        flags = ("-O2", "-static", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
        run("gcc", *flags, "-o", work / "bin" / source.stem, source)
    ran = machine.run(kernel, work, "bench.sh", boot=BOOT)
    complaints = machine.complaints(ran.console)
    if ran.status or complaints:
        raise machine.MachineError(
            f"{kernel.release}: bench.sh ended with {ran.status}; see {work / machine.CONSOLE}\n"
            + "\n".join([*complaints, ran.console[-2000:]])
        )
    return numbers(work / "out" / "bench")


def table(name: str, figures: dict[str, int]) -> str:
    """Lay the figures of one kernel out as Markdown."""
    lines = [
        f"| {name}, instructions | native | with tracing | added | asked |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in ROWS:
        native = figures[row.native] if row.native else 0
        cells = [row.name, f"{native:,}" if native else "", f"{figures[row.traced]:,}"]
        cells += [f"{figures[row.traced] - native:+,}", f"{row.asked:,}" if row.asked else ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Measure each kernel and print its table."""
    try:
        for name in argv or [kernels.MACHINE]:
            print(table(name, measure(name)), end="\n\n", flush=True)
    except (ArchiveError, machine.MachineError, OSError) as error:
        print(f"bench/kernel.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
